"""Full-text search.

The index is the engine's; here are filters, orders, pages and what a hit shows. Newest
first walks the index backwards and stops at the limit, whatever the number of
matches; the other orders sort the newest `WINDOW` matches that pass the filters.
Sessions whose title alone matches come last.

A cursor names the newest match that the first page saw and the last hit shown.
The hits shown before follow from these, so a cursor is short, and writes between two
pages neither repeat nor hide a hit. (Scores change with
every write, so pages by rank may.)
"""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import text

from sessiondb.engine.default import ENGINE
from sessiondb.engine.sql import Statement, as_list, list_text, texts
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit, Page
from sessiondb.repository import Read
from sessiondb.repository.decode import SELECT_SESSION, listed
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
#: place, session, seq, message id, snippet; of a match in parts its sort key, too.
_Row = tuple[Any, ...]


class _Place(NamedTuple):
    """Where a page ends, and the next one begins.

    *phase* is the order, ``titles`` or ``end``. *top* is the place of the newest match
    that the first page saw, *last* that of the last hit shown (0: none yet), *passed*
    the number of rows before the next one in a sorted window.
    """

    phase: str
    top: int = 0
    last: int = 0
    passed: int = 0


_INDEX = ENGINE.search
_SNIPPET = _INDEX.snippet(MARKS)


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
        "cursor": f"{_INDEX.place} < :cursor",
        "seen": f"p.session_id NOT IN {list_text('seen')}",
        "top": f"{_INDEX.place} <= :top",
        "last": f"{_INDEX.place} >= :last",
    }
    return "".join(f" AND {clauses[name]}" for name in shape)


_OF_MESSAGE = "CROSS JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq"


#: Keys by which the orders sort the window, smallest first. The time is the part's: that of
#: its message is a row elsewhere in the file, and would double what the window costs.
_KEYS = {"rank": _INDEX.rank, "time": "-p.time_created"}
_NEED_MESSAGE = frozenset({"role", "since", "until"})


@lru_cache(maxsize=256)
def _statement(shape: tuple[str, ...], order: str, shown: bool) -> Statement:
    """Return the query for matches, newest first, as many as ``:rows``.

    Its columns are place, session, seq, message id, snippet and sort key; the
    message and its snippet are NULL unless *shown*, the key for newest first.
    """
    hit = f"m.id, {_SNIPPET}" if shown else "NULL, NULL"
    columns = f"p.session_id, p.seq, {hit}, {_KEYS.get(order, 'NULL')}"
    joins = _OF_MESSAGE if shown else _message_for(shape)
    sql = _INDEX.newest(columns, joins, _terms(shape))
    return Statement(lambda: text(sql))


def _message_for(shape: tuple[str, ...]) -> str:
    """Return the join of the message, which only some terms need."""
    return "" if _NEED_MESSAGE.isdisjoint(shape) else _OF_MESSAGE


@lru_cache(maxsize=256)
def _shown_before(shape: tuple[str, ...]) -> Statement:
    """Return the query for the sessions that earlier pages have shown, newest first."""
    sql = _INDEX.sessions(_message_for(shape), _terms(shape))
    return Statement(lambda: text(sql))


_SHOWN = Statement(lambda: text(_INDEX.snippets(f"m.id, {_SNIPPET}", _OF_MESSAGE)))
_SESSIONS = Statement(lambda: SELECT_SESSION.where(session.c.id.in_(texts("ids"))))


@lru_cache(maxsize=256)
def _titles(shape: tuple[str, ...]) -> Statement:
    """Return the query for sessions whose title matches, but for those shown already.

    With *shown* in the shape these are the sessions named there, else all that
    have a match in their parts, up to *top*.
    """
    times = {"since": "s.time_updated >= :since", "until": "s.time_updated < :until"}
    kept = tuple(name for name in shape if name not in (*times, "shown", "top"))
    bounds = "".join(f" AND {times[name]}" for name in shape if name in times)
    shown = f"s.id NOT IN {list_text('shown')}"
    if "shown" not in shape:
        timed = _terms(tuple(name for name in shape if name in times))
        shown = (
            "NOT EXISTS (SELECT 1 FROM part AS p JOIN message AS m "
            "ON m.session_id = p.session_id AND m.seq = p.seq WHERE p.session_id = s.id "
            f"AND {_INDEX.part_matches} "
            f"AND p.rid <= :top{timed})"
        )
    columns = (
        "s.id, (SELECT min(seq) FROM message WHERE session_id = s.id), "
        "(SELECT id FROM message WHERE session_id = s.id ORDER BY seq LIMIT 1), "
        f"{_INDEX.snippet(MARKS, 'session')}"
    )
    terms = f" AND s.message_count > 0 AND {shown}{_terms(kept)}{bounds}"
    sql = _INDEX.titles(columns, terms)
    return Statement(lambda: text(sql))


def _params(
    query: str, filters: Filters, role: str | None, tool: str | None
) -> dict[str, Any]:
    """Return the parameters of a search; their names say which terms a query has."""
    params = {**filters.params(), "match": _INDEX.match(query)}
    for name, value in (("role", role), ("tool", tool)):
        if value is not None:
            params[name] = check_text(value, name)
    return params | filters.exclusions()


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
        raise InvalidInputError(
            f"order is one of {', '.join(ORDERS)}, not {abridged(order)}"
        )
    check_limit(limit)
    params = _params(query, filters, role, tool)
    place = _Place(order) if cursor is None else _place_of(cursor, order)

    found, place = yield from _page(params, order, all_hits, limit, place)
    hits = yield from _hits(base, params["match"], found)
    return Page(hits, None if place.phase == "end" else encode_cursor(*place))


def _place_of(cursor: str, order: str) -> _Place:
    """Return the place that a cursor names; raises `InvalidInputError`."""
    place = _Place(*decode_cursor(cursor, str, int, int, int))
    in_order = place.phase == order and 1 <= place.last <= place.top
    in_titles = place.phase == "titles" and min(place.top, place.last) >= 0
    if not (in_order or in_titles) or place.passed < 0:
        raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")
    return place


def _page(
    params: dict[str, Any], order: str, all_hits: bool, limit: int, place: _Place
) -> Read[tuple[list[_Row], _Place]]:
    """Return the matches of one page, those of titles last, and where the next begins."""
    found: list[_Row] = []
    if order == "newest":
        if place.phase == order:
            found, place = yield from _newest(params, all_hits, limit, place)
        titled = {**params, "top": place.top}
    else:
        window = yield from _window(params, order, place.top)
        titled = {**params, "shown": as_list(sorted({row[1] for row in window}))}
        if place.phase == order:
            found, place = _of_window(window, all_hits, limit, place)

    if place.phase == "titles" and not params.keys().isdisjoint(("role", "tool")):
        place = _Place("end")  # a title has neither
    if place.phase == "titles" and len(found) < limit:
        more, place = yield from _in_titles(titled, limit - len(found), place)
        found += more
    return found, place


def _window(params: dict[str, Any], order: str, top: int) -> Read[list[_Row]]:
    """Return the newest matches in the order asked for; of later pages those up to *top*."""
    bounded = {**params, **({"top": top} if top else {})}
    statement = _statement(_names(bounded), order, False)
    rows = yield statement, {**bounded, "rows": WINDOW}
    # Sorted here: SQL would sort before the LIMIT, and so score every match there is.
    # Among equals the newest stays first, as the sort is stable.
    return sorted(rows, key=itemgetter(5))


def _of_window(
    window: list[_Row], all_hits: bool, limit: int, place: _Place
) -> tuple[list[_Row], _Place]:
    """Return one page of the window, and where the next one begins."""
    found: list[_Row] = []
    top = place.top or max((row[0] for row in window), default=0)
    # By the last hit, as rows before it may be gone; by their number if it is gone itself.
    places = [row[0] for row in window]
    first = places.index(place.last) + 1 if place.last in places else place.passed
    seen = {row[1] for row in window[:first]}
    for index, row in enumerate(window[first:], first):
        if not all_hits and row[1] in seen:
            continue
        if len(found) == limit:
            return found, place._replace(top=top, last=found[-1][0], passed=index)
        found.append(row)
        seen.add(row[1])
    return found, _Place("titles", top)


def _newest(
    params: dict[str, Any], all_hits: bool, limit: int, place: _Place
) -> Read[tuple[list[_Row], _Place]]:
    """Walk backwards, in rounds that each pass by the sessions of those before."""
    found: list[_Row] = []
    below, top = place.last, place.top
    seen = [] if all_hits else (yield from _seen(params, place))
    per_session = 1 if all_hits else 3
    while True:
        # One more than fits says whether there are more.
        asked = (limit - len(found) + 1) * per_session if per_session <= DENSE else FEW
        more = {**params, **({"cursor": below} if below else {})}
        if seen:
            more["seen"] = as_list(seen)
        rows = yield (
            _statement(_names(more), "newest", all_hits),
            {**more, "rows": asked},
        )
        before = len(found)
        for row in rows:
            if not all_hits and row[1] in seen:
                continue
            if len(found) == limit:
                return found, _Place("newest", top, found[-1][0])
            found.append(row)
            top = top or row[0]
            seen = seen if all_hits else [*seen, row[1]]
        if len(rows) < asked:
            return found, _Place("titles", top)
        below, per_session = rows[-1][0], len(rows) // max(1, len(found) - before) + 1


def _seen(params: dict[str, Any], place: _Place) -> Read[list[str]]:
    """Return the sessions that the pages up to *place* have shown."""
    if not place.last:
        return []
    walked = {**params, "top": place.top, "last": place.last}
    rows = yield _shown_before(_names(walked)), walked
    return [session_id for (session_id,) in rows]


def _names(params: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(set(params) - {"match"}))


def _in_titles(
    params: dict[str, Any], limit: int, place: _Place
) -> Read[tuple[list[_Row], _Place]]:
    more = {**params, **({"cursor": place.last} if place.last else {})}
    rows = yield _titles(_names(more)), {**more, "rows": limit + 1}
    if len(rows) > limit:
        return rows[:limit], place._replace(last=rows[limit - 1][0])
    return rows, _Place("end")


def _hits(base: str | None, match: str, found: list[_Row]) -> Read[tuple[Hit, ...]]:
    if not found:
        return ()
    shown: dict[int, tuple[str, str]] = {}
    if rids := [row[0] for row in found if row[3] is None]:
        where = {
            "match": match,
            "low": min(rids),
            "high": max(rids),
            "rids": as_list(rids),
        }
        shown = {rid: (mid, snippet) for rid, mid, snippet in (yield _SHOWN, where)}
    rows = yield _SESSIONS, {"ids": as_list(sorted({row[1] for row in found}))}
    sessions = {item.id: item for item in listed(rows, base)}
    # A delete in a shell leaves index entries of what is gone.
    return tuple(
        Hit(sessions[sid], seq, *(shown[rid] if mid is None else (mid, snippet)))
        for rid, sid, seq, mid, snippet, *_ in found
        if sid in sessions and (mid is not None or rid in shown)
    )
