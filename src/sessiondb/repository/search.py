"""Full-text search.

The engine has the index; this module has filters, orders, pages and the contents of a
hit. Newest first walks the index backwards and stops at the limit, whatever the number
of matches; the other orders sort the newest `WINDOW` matches that pass the filters.
Sessions whose title alone matches come last.

A cursor names the newest match that the first page saw and the last hit shown. The
hits of earlier pages follow from these, so a cursor is short, and writes between two
pages neither repeat nor hide a hit. (Pages by rank may: scores change with every
write.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.arguments import one_of
from sessiondb.engine.base import SNIPPET_MARKS
from sessiondb.engine.default import ENGINE
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit, Page
from sessiondb.model.tools import names_of_tool
from sessiondb.repository import Read
from sessiondb.repository.decode import listed
from sessiondb.repository.sessions import (
    Filters,
    check_limit,
    check_text,
    decode_cursor,
    encode_cursor,
    terms_of_messages,
)

#: How many of the newest matches ``rank`` and ``time`` sort.
WINDOW = 2_000
#: If a round needed more than ``DENSE`` matches for each session, the next one fetches
#: only ``FEW`` in all, since every further match of a session is skipped.
DENSE, FEW = 4, 16
ORDERS = ("newest", "time", "rank")
#: The marks around the words of a snippet that match.
MARKS = SNIPPET_MARKS
#: Parameters that the search index compares with its own entries.
_BOUNDS = frozenset("cursor top last seen comparison shown scanned own_id".split())
#: place, session, seq, message id, snippet; for a match in parts also its sort key.
_Row = tuple[Any, ...]


class _SearchPlace(NamedTuple):
    """The end of a page, where the next one begins."""

    #: The order, ``titles`` or ``end``.
    phase: str
    #: The place of the newest match that the first page saw.
    top: int = 0
    #: That of the last hit shown; 0: none yet.
    last: int = 0
    #: The number of rows before the next one in a sorted window.
    passed: int = 0


@lru_cache(maxsize=256)
def match_statement(names: tuple[str, ...], order: str, is_shown: bool) -> Statement:
    """Return the query for matches in parts with the parameters *names*."""
    sql = ENGINE.search.matches(
        _terms_of_parts(names), _bounds_in(names), order=order, is_shown=is_shown
    )
    return ComposedStatement(sql)


@lru_cache(maxsize=256)
def _session_statement(names: tuple[str, ...]) -> Statement:
    """Return the query for the sessions that earlier pages have shown, newest first."""
    sql = ENGINE.search.sessions(_terms_of_parts(names), _bounds_in(names))
    return ComposedStatement(sql)


@lru_cache(maxsize=256)
def _title_statement(names: tuple[str, ...]) -> Statement:
    """Return the query for sessions whose title alone matches.

    Those of the parameter *shown* are left out if it is among *names*, else all that
    have a match in their parts, up to *top*.
    """
    # A title is of no message: its time is that of the last use of the session.
    terms = terms_of_messages(
        _filters_in(names),
        since="s.time_updated >= :since",
        until="s.time_updated < :until",
    )
    times = [name for name in names if name in ("since", "until")]
    sql = ENGINE.search.titles(terms, _bounds_in(names), terms_of_messages(times))
    return ComposedStatement(sql)


def _terms_of_parts(names: Iterable[str]) -> list[str]:
    return terms_of_messages(
        _filters_in(names),
        role="m.role = :role",
        tool=f"lower(p.tool) IN {ENGINE.dialect.list_text('tool')}",
        # A result is where its call is, in the answer.
        tool_role="(m.role = 'tool' OR p.type = 'tool')",
    )


def _filters_in(names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in _BOUNDS]


def _bounds_in(names: Iterable[str]) -> list[str]:
    return [name for name in names if name in _BOUNDS]


_SNIPPETS = ComposedStatement(ENGINE.search.snippets())
SESSIONS_BY_ID = Statement("repository.search.SESSIONS_BY_ID")


def search_params(
    query: str, filters: Filters, role: str | None, tool: str | None
) -> dict[str, Any]:
    """Return the parameters of a search; their names say which terms a query has.

    Raises `InvalidInputError`.
    """
    params = {
        **filters.params(),
        **filters.exclusions(),
        **ENGINE.search.query(query).params(),
    }
    if role == "tool":
        params["tool_role"] = 1
    elif role is not None:
        params["role"] = check_text(role, "role")
    if tool is not None:
        params["tool"] = as_list(names_of_tool(check_text(tool, "tool")))
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
    """Return one page of hits, one per session unless *all_hits*.

    No match is an empty page. Raises `InvalidInputError`.
    """
    one_of(order, ORDERS, "order")
    check_limit(limit)
    params = search_params(query, filters, role, tool)
    place = _SearchPlace(order) if cursor is None else _place_of(cursor, order)

    rows, place = yield from _read_page(params, order, all_hits, limit, place)
    hits = yield from _read_hits(base, params["match"], rows)
    return Page(hits, None if place.phase == "end" else encode_cursor(*place))


def _place_of(cursor: str, order: str) -> _SearchPlace:
    """Return the place that a cursor names; raises `InvalidInputError`."""
    place = _SearchPlace(*decode_cursor(cursor, str, int, int, int))
    if place.phase == order:
        is_possible = 1 <= place.last <= place.top
    elif place.phase == "titles":
        # Titles come after the matches, of which there may be none.
        is_possible = place.top >= 0 and place.last >= 0
    else:
        is_possible = False
    if place.passed < 0 or not is_possible:
        raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")

    return place


def _read_page(
    params: dict[str, Any], order: str, all_hits: bool, limit: int, place: _SearchPlace
) -> Read[tuple[list[_Row], _SearchPlace]]:
    """Return the matches of a page, those of titles last, and where the next begins."""
    if order == "newest":
        rows, place = yield from _newest_page(params, all_hits, limit, place)
        matched: dict[str, Any] = {"top": place.top}
    else:
        window = yield from _read_window(params, order, place.top)
        rows, place = _page_of_window(window, all_hits, limit, place)
        matched = {"shown": as_list(sorted({session_of(row) for row in window}))}

    if place.phase != "titles":
        return rows, place
    if not params.keys().isdisjoint(("role", "tool", "tool_role")):
        # No title passes: it has neither.
        return rows, _SearchPlace("end")

    room = limit - len(rows)
    if room == 0:
        return rows, place
    titles, place = yield from _title_page({**params, **matched}, room, place)
    return rows + titles, place


def session_of(row: _Row) -> str:
    """Return the session of a row."""
    return str(row[1])


@dataclass(slots=True)
class _GatheredHits:
    """The matches of a page, up to *limit*.

    ``seen`` are the sessions that are not shown again; empty if all hits are shown.
    """

    limit: int
    once: bool
    seen: set[str]
    rows: list[_Row] = field(default_factory=list)

    def take(self, rows: list[_Row]) -> int | None:
        """Add matches; return the index of the first that is left for the next page."""
        for index, row in enumerate(rows):
            if row[1] in self.seen:
                continue
            if len(self.rows) == self.limit:
                return index

            self.rows.append(row)
            if self.once:
                self.seen.add(row[1])

        return None


def _read_window(params: dict[str, Any], order: str, top: int) -> Read[list[_Row]]:
    """Return the newest matches in this order; of later pages those up to *top*."""
    bounded = _with_bounds(params, top=top)
    statement = match_statement(param_names(bounded), order, False)
    rows = yield statement, {**bounded, "rows": WINDOW}

    # Sorted here: SQL would sort before the LIMIT, and so score every match there is.
    # Among equals the newest stays first, as the sort is stable.
    return sorted(rows, key=lambda row: row[5])


def _page_of_window(
    window: list[_Row], all_hits: bool, limit: int, place: _SearchPlace
) -> tuple[list[_Row], _SearchPlace]:
    """Return one page of the window, and where the next one begins."""
    if place.phase == "titles":
        return [], place

    # By the last hit, as rows before it may be gone; by their number if it is gone
    # itself.
    places = [row[0] for row in window]
    first = place.passed
    if place.last in places:
        first = places.index(place.last) + 1

    shown = set() if all_hits else {session_of(row) for row in window[:first]}
    page = _GatheredHits(limit, not all_hits, shown)
    left = page.take(window[first:])

    top = place.top or max(places, default=0)
    if left is None:
        return page.rows, _SearchPlace("titles", top)
    last = page.rows[-1][0]
    return page.rows, place._replace(top=top, last=last, passed=first + left)


def _newest_page(
    params: dict[str, Any], all_hits: bool, limit: int, place: _SearchPlace
) -> Read[tuple[list[_Row], _SearchPlace]]:
    """Walk backwards, in rounds that each skip the sessions of earlier ones."""
    if place.phase == "titles":
        return [], place

    seen = [] if all_hits else (yield from _shown_sessions(params, place))
    page = _GatheredHits(limit, not all_hits, set(seen))
    cursor, per_session = place.last, 1 if all_hits else 3
    while True:
        bounded = _with_bounds(params, cursor=cursor)
        if page.seen:
            bounded["seen"] = as_list(sorted(page.seen))

        # One more than fits shows whether there are more.
        room = limit - len(page.rows) + 1
        most = room * per_session if per_session <= DENSE else FEW
        statement = match_statement(param_names(bounded), "newest", all_hits)
        rows = yield statement, {**bounded, "rows": most}

        left = page.take(rows)
        top = place.top or max([row[0] for row in page.rows], default=0)
        if left is not None:
            return page.rows, _SearchPlace("newest", top, page.rows[-1][0])
        if len(rows) < most:
            return page.rows, _SearchPlace("titles", top)

        # The next round fetches as many for each session as this one needed.
        added = room - (limit - len(page.rows) + 1)
        cursor, per_session = rows[-1][0], len(rows) // max(1, added) + 1


def _shown_sessions(params: dict[str, Any], place: _SearchPlace) -> Read[list[str]]:
    """Return the sessions that the pages up to *place* have shown."""
    if not place.last:
        return []
    walked = {**params, "top": place.top, "last": place.last}
    rows = yield _session_statement(param_names(walked)), walked
    return [session_id for (session_id,) in rows]


def _with_bounds(params: dict[str, Any], **places: int) -> dict[str, Any]:
    """Return *params* with the bounds among *places* that are set; 0 is not."""
    return params | {name: place for name, place in places.items() if place}


def param_names(params: dict[str, Any]) -> tuple[str, ...]:
    """Return the names that a statement is made for."""
    return tuple(sorted(set(params) - {"match"}))


def _title_page(
    params: dict[str, Any], limit: int, place: _SearchPlace
) -> Read[tuple[list[_Row], _SearchPlace]]:
    bounded = _with_bounds(params, cursor=place.last)
    rows = yield _title_statement(param_names(bounded)), {**bounded, "rows": limit + 1}

    if len(rows) <= limit:
        return rows, _SearchPlace("end")
    return rows[:limit], place._replace(last=rows[limit - 1][0])


def _read_hits(
    base: str | None, match: str, matches: list[_Row]
) -> Read[tuple[Hit, ...]]:
    """Return matches as hits; message and snippet of most are read only here."""
    if not matches:
        return ()

    shown: dict[int, tuple[str, str]] = {}
    places = [row[0] for row in matches if row[3] is None]
    if places:
        ends = {"low": min(places), "high": max(places)}
        rows = yield _SNIPPETS, {"match": match, "rids": as_list(places), **ends}
        shown = {place: (message_id, snippet) for place, message_id, snippet in rows}

    ids = sorted({session_of(row) for row in matches})
    rows = yield SESSIONS_BY_ID, {"ids": as_list(ids)}
    sessions = {item.id: item for item in listed(rows, base)}

    hits = []
    for place, session_id, seq, message_id, snippet, *_ in matches:
        part = shown.get(place) if message_id is None else (message_id, snippet)
        # A delete in a shell may leave index entries without their rows.
        if part is not None and session_id in sessions:
            hits.append(Hit(sessions[session_id], seq, *part))
    return tuple(hits)
