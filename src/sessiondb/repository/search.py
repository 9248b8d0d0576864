"""Full-text search.

A query is words: each is quoted, so that no character of it is syntax. Newest
first walks the index backwards and stops at the limit, whatever the number of
matches; the other orders sort the newest `WINDOW` matches that pass the filters.
Sessions whose title alone matches come last.

FTS5 answers one MATCH by one walk over its index. A statement that looks up
single rows of the search table (``rowid IN (…)``, or a join that begins
elsewhere) repeats the MATCH for each of them, so no statement here does.
"""

from __future__ import annotations

import json
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import text

from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit, Page
from sessiondb.repository import Read
from sessiondb.repository.decode import SELECT_SESSION, session_of
from sessiondb.repository.sessions import (
    Filters,
    check_limit,
    check_text,
    decode_cursor,
    encode_cursor,
)
from sessiondb.schema import session

#: How many of the newest matches ``rank`` and ``time`` sort.
WINDOW = 2_000
#: Of more matches in a session than these, a round takes few: all but one are for nothing.
DENSE, FEW = 4, 16
ORDERS = ("newest", "time", "rank")
MARKS = ("\u2039", "\u203a")
#: rowid, session, seq, message id, snippet; of a match in parts its sort key, too.
_Row = tuple[Any, ...]
#: Where a page ends: the phase (parts, titles, end), the place in it, sessions shown before.
_State = tuple[str, int, list[str]]
_SNIPPET = f"snippet(part_search, -1, '{MARKS[0]}', '{MARKS[1]}', '…', 16)"


def match_of(query: str) -> str:
    """Return *query* as an FTS5 expression of quoted words, all of which must occur.

    A trailing ``*`` makes a word a prefix. Raises `InvalidInputError` for no words.
    """
    if not isinstance(query, str):
        raise InvalidInputError(f"a query is a string, not {abridged(query)}")
    words = query.replace("\0", " ").encode("utf-8", "replace").decode().split()
    quoted = []
    for word in words:
        stem = word.rstrip("*")
        if not any(c.isalnum() for c in stem):
            continue
        escaped = stem.replace('"', '""')
        quoted.append(f'"{escaped}"' + ("*" if word.endswith("*") else ""))
    if not quoted:
        raise InvalidInputError("the query has no words", hint="search for letters or digits")
    return " ".join(quoted)


def _terms(shape: tuple[str, ...]) -> str:
    clauses = {
        "project_id": "s.project_id = :project_id",
        "source": "s.source = :source",
        "agent": "s.agent = :agent",
        "since": "m.time_created >= :since",
        "until": "m.time_created < :until",
        "title": "s.title LIKE :title ESCAPE '\\'",
        "role": "m.role = :role",
        "tool": "p.tool = :tool",
        "unarchived": "s.time_archived IS NULL",
        "own": "s.relation IS NOT 'subagent'",
        "cursor": "f.rowid < :cursor",
        "seen": "p.session_id NOT IN (SELECT value FROM json_each(:seen))",
    }
    return "".join(f" AND {clauses[name]}" for name in shape)


_OF_PART = "CROSS JOIN part AS p ON p.rid = f.rowid"
_OF_MESSAGE = "CROSS JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq"


#: What the orders sort the window by, smallest first. The time is the part's: that of
#: its message is a row elsewhere in the file, and would double what the window costs.
_KEYS = {"rank": "bm25(part_search)", "time": "-p.time_created"}
_NEED_MESSAGE = frozenset({"role", "since", "until"})


@lru_cache(maxsize=256)
def _statement(shape: tuple[str, ...], order: str, shown: bool) -> Statement:
    """Return the query for matches, newest first, as many as ``:rows``.

    Its columns are rowid, session, seq, message id, snippet and sort key; the
    message and its snippet are NULL unless *shown*, the key for newest first.
    """
    columns = f"m.id, {_SNIPPET}" if shown else "NULL, NULL"
    needs_message = shown or not _NEED_MESSAGE.isdisjoint(shape)
    sql = (
        f"SELECT f.rowid, p.session_id, p.seq, {columns}, {_KEYS.get(order, 'NULL')} "
        f"FROM part_search AS f {_OF_PART} {_OF_MESSAGE if needs_message else ''} "
        "CROSS JOIN session AS s ON s.id = p.session_id "
        "WHERE f.part_search MATCH :match AND s.time_deleted IS NULL "
        f"AND s.time_importing IS NULL{_terms(shape)} "
        "ORDER BY f.rowid DESC LIMIT :rows"
    )
    return Statement(lambda: text(sql))


_SHOWN = Statement(
    lambda: text(
        f"SELECT f.rowid, m.id, {_SNIPPET} FROM part_search AS f {_OF_PART} {_OF_MESSAGE} "
        "WHERE f.part_search MATCH :match AND f.rowid BETWEEN :low AND :high "
        "AND +f.rowid IN (SELECT value FROM json_each(:rids))"
    )
)
_SESSIONS = Statement(
    lambda: SELECT_SESSION.where(session.c.id.in_(text("SELECT value FROM json_each(:ids)")))
)


@lru_cache(maxsize=256)
def _titles(shape: tuple[str, ...]) -> Statement:
    """Return the query for sessions whose title matches, but for those shown already.

    With *shown* in the shape these are the sessions named there, else all that
    have a match in their parts.
    """
    times = {"since": "s.time_updated >= :since", "until": "s.time_updated < :until"}
    kept = tuple(name for name in shape if name not in (*times, "shown"))
    bounds = "".join(f" AND {times[name]}" for name in shape if name in times)
    shown = "s.id NOT IN (SELECT value FROM json_each(:shown))"
    if "shown" not in shape:
        timed = _terms(tuple(name for name in shape if name in times))
        shown = (
            "NOT EXISTS (SELECT 1 FROM part AS p JOIN message AS m "
            "ON m.session_id = p.session_id AND m.seq = p.seq WHERE p.session_id = s.id "
            "AND p.rid IN (SELECT rowid FROM part_search WHERE part_search MATCH :match)"
            f"{timed})"
        )
    return Statement(
        lambda: text(
            "SELECT f.rowid, s.id, (SELECT min(seq) FROM message WHERE session_id = s.id), "
            "(SELECT id FROM message WHERE session_id = s.id ORDER BY seq LIMIT 1), "
            f"snippet(session_search, 0, '{MARKS[0]}', '{MARKS[1]}', '…', 16) "
            "FROM session_search AS f CROSS JOIN session AS s ON s.rid = f.rowid "
            "WHERE f.session_search MATCH :match AND s.time_deleted IS NULL "
            f"AND s.time_importing IS NULL AND s.message_count > 0 AND {shown}"
            f"{_terms(kept)}{bounds} ORDER BY f.rowid DESC LIMIT :rows OFFSET :skip"
        )
    )


def _params(query: str, filters: Filters, role: str | None, tool: str | None) -> dict[str, Any]:
    """Return the parameters of a search; their names say which terms a query has."""
    params = {**filters.params(), "match": match_of(query)}
    for name, value in (("role", role), ("tool", tool)):
        if value is not None:
            params[name] = check_text(value, name)
    if not filters.archived:
        params["unarchived"] = 1
    if not filters.subagents:
        params["own"] = 1
    return params


def search(
    base: str | None,
    query: str,
    filters: Filters,
    *,
    role: str | None = None,
    tool: str | None = None,
    order: str = "newest",
    all_hits: bool = False,
    limit: int = 20,
    cursor: str | None = None,
) -> Read[Page[Hit]]:
    """Return one page of hits, one per session unless *all_hits*; no match is an empty page."""
    if order not in ORDERS:
        raise InvalidInputError(f"order is one of {', '.join(ORDERS)}, not {abridged(order)}")
    check_limit(limit)
    params = _params(query, filters, role, tool)
    state: _State = ("parts", 0, [])
    if cursor is not None:
        phase, place, seen = decode_cursor(cursor, str, int, list)
        state = (phase, place, seen)

    found, state = yield from _page(params, order, all_hits, limit, state)
    hits = yield from _hits(base, params["match"], found)
    return Page(hits, None if state[0] == "end" else encode_cursor(*state))


def _page(
    params: dict[str, Any], order: str, all_hits: bool, limit: int, state: _State
) -> Read[tuple[list[_Row], _State]]:
    """Return the matches of one page, those of titles last, and where the next begins."""
    found: list[_Row] = []
    titled = params
    if order == "newest":
        if state[0] == "parts":
            found, state = yield from _newest(params, all_hits, limit, state)
    else:
        window = yield from _window(params, order)
        titled = {**params, "shown": json.dumps(sorted({row[1] for row in window}))}
        if state[0] == "parts":
            found, state = _of_window(window, all_hits, limit, state)

    if state[0] == "titles" and not params.keys().isdisjoint(("role", "tool")):
        state = ("end", 0, [])  # a title has neither
    if state[0] == "titles" and len(found) < limit:
        more, state = yield from _in_titles(titled, limit - len(found), state[1])
        found += more
    return found, state


def _window(params: dict[str, Any], order: str) -> Read[list[_Row]]:
    """Return the newest matches in the order asked for."""
    statement = _statement(_names(params), order, False)
    rows = yield statement, {**params, "rows": WINDOW}
    # Sorted here: SQL would sort before the LIMIT, and so score every match there is.
    # Among equals the newest stays first, as the sort is stable.
    return sorted(rows, key=itemgetter(5))


def _of_window(
    window: list[_Row], all_hits: bool, limit: int, state: _State
) -> tuple[list[_Row], _State]:
    """Return one page of the window, and where the next one begins."""
    found: list[_Row] = []
    _, place, before = state
    seen = set(before)
    for index, row in enumerate(window[place:], place):
        if not all_hits and row[1] in seen:
            continue
        if len(found) == limit:
            return found, ("parts", index, [] if all_hits else sorted(seen))
        found.append(row)
        seen.add(row[1])
    return found, ("titles", 0, [])


def _newest(
    params: dict[str, Any], all_hits: bool, limit: int, state: _State
) -> Read[tuple[list[_Row], _State]]:
    """Walk backwards, in rounds that each pass by the sessions of those before."""
    found: list[_Row] = []
    _, place, seen = state
    per_session = 1 if all_hits else 3
    while True:
        # One more than fits says whether there are more.
        asked = (limit - len(found) + 1) * per_session if per_session <= DENSE else FEW
        more = {**params, **({"cursor": place} if place else {})}
        if seen:
            more["seen"] = json.dumps(seen)
        rows = yield _statement(_names(more), "newest", all_hits), {**more, "rows": asked}
        before = len(found)
        for row in rows:
            if not all_hits and row[1] in seen:
                continue
            if len(found) == limit:
                return found, ("parts", found[-1][0], seen)
            found.append(row)
            seen = seen if all_hits else [*seen, row[1]]
        if len(rows) < asked:
            return found, ("titles", 0, [])
        place, per_session = rows[-1][0], len(rows) // max(1, len(found) - before) + 1


def _names(params: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(set(params) - {"match"}))


def _in_titles(params: dict[str, Any], limit: int, skip: int) -> Read[tuple[list[_Row], _State]]:
    rows = yield _titles(_names(params)), {**params, "rows": limit + 1, "skip": skip}
    if len(rows) > limit:
        return rows[:limit], ("titles", skip + limit, [])
    return rows, ("end", 0, [])


def _hits(base: str | None, match: str, found: list[_Row]) -> Read[tuple[Hit, ...]]:
    if not found:
        return ()
    shown: dict[int, tuple[str, str]] = {}
    if rids := [row[0] for row in found if row[3] is None]:
        where = {"match": match, "low": min(rids), "high": max(rids), "rids": json.dumps(rids)}
        shown = {rid: (mid, snippet) for rid, mid, snippet in (yield _SHOWN, where)}
    rows = yield _SESSIONS, {"ids": json.dumps(sorted({row[1] for row in found}))}
    sessions = {row[0]: session_of(row, base) for row in rows}
    return tuple(
        Hit(sessions[sid], seq, *(shown[rid] if mid is None else (mid, snippet)))
        for rid, sid, seq, mid, snippet, *_ in found
    )
