"""Full-text search.

The engine has the index; this module has filters, orders, pages and the contents of a
hit. Newest first walks the index backwards and stops at the limit, whatever the number
of matches; the other orders sort the newest `WINDOW` matches that pass the filters.
Sessions whose title alone matches come last.

All words are looked for in one message. A message that has them in several parts is
found by a second walk, of the rarest of them, as far back as the first one came. By
rank it comes after all that one part has.

A cursor names the newest match that the first page saw and the last hit shown. The
hits of earlier pages follow from these, so a cursor is short, and writes between two
pages neither repeat nor hide a hit. (Pages by rank may: scores change with every
write.)

Texts that no index knows are scanned for: see `scanning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.arguments import one_of
from sessiondb.engine.default import ENGINE
from sessiondb.engine.query import Cover
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit, Page
from sessiondb.repository import Read
from sessiondb.repository.hits import (
    GatheredHits,
    Row,
    SearchPlace,
    bounds_in,
    list_of_places,
    list_of_sessions,
    param_names,
    place_of,
    read_hits,
    read_titles,
    search_params,
    session_of,
    terms_of_parts,
    with_bounds,
)
from sessiondb.repository.scanning import NEWEST_PLACE, read_scanned_page
from sessiondb.repository.sessions import Filters, check_limit, encode_cursor

#: How many of the newest matches ``rank`` and ``time`` sort.
WINDOW = 2_000
#: How many of those that only several parts of a message have together.
SPREAD_WINDOW = 200
#: If a round needed more than ``DENSE`` matches for each session, the next one fetches
#: only ``FEW`` in all, since every further match of a session is skipped.
DENSE, FEW = 4, 16
ORDERS = ("newest", "time", "rank")


class _Matches(NamedTuple):
    """The matches of a query: the parameters of both walks."""

    params: dict[str, Any]
    #: Of what several parts of a message have; None if there is nothing like that.
    spread: dict[str, Any] | None


@lru_cache(maxsize=256)
def match_statement(names: tuple[str, ...], order: str, is_shown: bool) -> Statement:
    """Return the query for matches in parts with the parameters *names*."""
    sql = ENGINE.search.matches(
        terms_of_parts(names), bounds_in(names), order=order, is_shown=is_shown
    )
    return ComposedStatement(sql)


@lru_cache(maxsize=256)
def _session_statement(names: tuple[str, ...]) -> Statement:
    """Return the query for the sessions that earlier pages have shown, newest first."""
    sql = ENGINE.search.sessions(terms_of_parts(names), bounds_in(names))
    return ComposedStatement(sql)


@lru_cache(maxsize=64)
def _rarest_statement(number: int) -> Statement:
    """Return the query that compares so many covers."""
    sql = ENGINE.search.rarest(number)
    return ComposedStatement(sql)


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
    place = SearchPlace(order) if cursor is None else place_of(cursor, order)
    meant = ENGINE.search.query(query)
    params = search_params(meant, filters, role, tool)
    # A call is searched by itself: the rest of its answer is no call of that tool.
    has_messages = tool is None and role != "tool"
    if has_messages:
        params |= meant.of_messages()
    if meant.match is None:
        return (
            yield from read_scanned_page(
                base, params, order=order, all_hits=all_hits, limit=limit, place=place
            )
        )

    spread = None
    if has_messages and meant.covers:
        if cursor is None:
            place = place._replace(cover=(yield from _rarest(meant.covers)))
        if place.cover >= len(meant.covers):
            raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")
        cover = meant.covers[place.cover]
        spread = {**params, "match": cover.match, "spread": cover.spread}
        spread.pop("comparison", None)
        spread.pop("together", None)

    matches = _Matches(params, spread)
    rows, place = yield from _read_page(matches, order, all_hits, limit, place)
    queries = [walked["match"] for walked in matches if walked is not None]
    hits = yield from read_hits(base, queries, rows)
    return Page(hits, None if place.phase == "end" else encode_cursor(*place))


def _rarest(covers: Sequence[Cover]) -> Read[int]:
    """Return which cover has the fewest matches among the newest parts."""
    if len(covers) == 1:
        return 0
    matches = {f"cover{index}": cover.match for index, cover in enumerate(covers)}
    ((*places,),) = yield _rarest_statement(len(covers)), matches
    return places.index(min(places))


def _read_page(
    matches: _Matches, order: str, all_hits: bool, limit: int, place: SearchPlace
) -> Read[tuple[list[Row], SearchPlace]]:
    """Return the matches of a page, those of titles last, and where the next begins."""
    params = matches.params
    if order == "newest":
        is_first = place.top == 0
        rows, place = yield from _newest_page(matches, all_hits, limit, place)
        if matches.spread is None and "together" not in params:
            matched: dict[str, Any] = {"top": place.top}
        elif is_first or place.phase != "titles":
            matched = {"shown": list_of_sessions(rows)}
        else:
            all_pages = place._replace(last=1)
            shown = yield from _shown_sessions(matches, all_pages)
            matched = {"shown": as_list(shown)}
    else:
        rows, window, place = yield from _sorted_page(
            matches, order, all_hits, limit, place
        )
        matched = {"shown": list_of_sessions(window)}

    if place.phase != "titles":
        return rows, place
    if not params.keys().isdisjoint(("role", "tool", "tool_role")):
        # No title passes: it has neither.
        return rows, SearchPlace("end")

    room = limit - len(rows)
    if room == 0:
        return rows, place
    titles, place = yield from read_titles({**params, **matched}, room, place)
    return rows + titles, place


def _sorted_page(
    matches: _Matches, order: str, all_hits: bool, limit: int, place: SearchPlace
) -> Read[tuple[list[Row], list[Row], SearchPlace]]:
    """Return a page of the newest matches in this order, these, and the next place."""
    if matches.spread is not None and not place.top:
        ((newest,),) = yield NEWEST_PLACE, {}
        place = place._replace(top=newest)

    window = yield from _read_window(matches.params, order, place.top)
    if matches.spread is not None and order == "time":
        window += yield from _read_spread(matches.spread, window, order, place.top)
        window.sort(key=_sort_key)

    rows, end = _page_of_window(window, all_hits, limit, place)
    if matches.spread is not None and order == "rank" and end.phase == "titles":
        # Matches within one part come first: most pages end before the rest is needed.
        window += yield from _read_spread(matches.spread, window, order, place.top)
        rows, end = _page_of_window(window, all_hits, limit, place)
    return rows, window, end


def _read_window(params: dict[str, Any], order: str, top: int) -> Read[list[Row]]:
    """Return the newest matches in this order; of later pages those up to *top*."""
    bounded = with_bounds(params, top=top)
    statement = match_statement(param_names(bounded), order, False)
    rows = yield statement, {**bounded, "rows": WINDOW}

    # Sorted here: SQL would sort before the LIMIT, and so score every match there is.
    # Among equals the newest stays first, as the sort is stable.
    return sorted(rows, key=_sort_key)


def _read_spread(
    spread: dict[str, Any], window: list[Row], order: str, top: int
) -> Read[list[Row]]:
    """Return the newest matches of several parts, as many as are sorted with a window.

    If that is full, none of them is older than all of it.
    """
    walked = {**spread, "top": top, "found": list_of_places(window)}
    if len(window) == WINDOW:
        walked["last"] = min([row[0] for row in window])
    statement = match_statement(param_names(walked), order, False)
    rows = yield statement, {**walked, "rows": SPREAD_WINDOW}
    return sorted(rows, key=_sort_key)


def _sort_key(row: Row) -> Any:
    return row[5]


def _page_of_window(
    window: list[Row], all_hits: bool, limit: int, place: SearchPlace
) -> tuple[list[Row], SearchPlace]:
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
    page = GatheredHits(limit, not all_hits, shown)
    left = page.take(window[first:])

    top = place.top or max(places, default=0)
    if left is None:
        return page.rows, place._replace(phase="titles", top=top, last=0, passed=0)
    last = page.rows[-1][0]
    return page.rows, place._replace(top=top, last=last, passed=first + left)


def _newest_page(
    matches: _Matches, all_hits: bool, limit: int, place: SearchPlace
) -> Read[tuple[list[Row], SearchPlace]]:
    """Walk backwards, in rounds that each skip the sessions of earlier ones."""
    if place.phase == "titles":
        return [], place

    shown: list[str] = []
    if place.last and not all_hits:
        shown = yield from _shown_sessions(matches, place)
    page = GatheredHits(limit, not all_hits, set(shown))
    cursor, per_session = place.last, 1 if all_hits else 3
    while True:
        bounds: dict[str, Any] = {"cursor": cursor} if cursor else {}
        if page.seen:
            bounds["seen"] = as_list(sorted(page.seen))

        # One more than fits shows whether there are more.
        room = limit - len(page.rows) + 1
        most = room * per_session if per_session <= DENSE else FEW
        rows = yield from _newest_matches(matches, bounds, most, is_shown=all_hits)

        left = page.take(rows)
        top = place.top or max([row[0] for row in page.rows], default=0)
        if left is not None:
            return page.rows, place._replace(top=top, last=page.rows[-1][0])
        if len(rows) < most:
            return page.rows, place._replace(phase="titles", top=top, last=0)

        # The next round fetches as many for each session as this one needed.
        added = room - (limit - len(page.rows) + 1)
        cursor, per_session = rows[-1][0], len(rows) // max(1, added) + 1


def _newest_matches(
    matches: _Matches, bounds: dict[str, Any], most: int, *, is_shown: bool
) -> Read[list[Row]]:
    """Return at most *most* matches within *bounds*, of one part and of several."""
    walked = matches.params | bounds
    statement = match_statement(param_names(walked), "newest", is_shown)
    rows = yield statement, {**walked, "rows": most}
    if matches.spread is None:
        return list(rows)

    # Older ones than the last of these would not be on the page.
    walked = {**matches.spread, **bounds, "found": list_of_places(rows)}
    if len(rows) == most:
        walked["last"] = rows[-1][0]
    # Few of these are shown, so their snippets are read later.
    statement = match_statement(param_names(walked), "newest", False)
    spread_rows = yield statement, {**walked, "rows": most}
    merged = sorted([*rows, *spread_rows], key=lambda row: row[0], reverse=True)
    return merged[:most]


def _shown_sessions(matches: _Matches, place: SearchPlace) -> Read[list[str]]:
    """Return the sessions with matches from the first page up to *place*."""
    shown: set[str] = set()
    for params in matches:
        if params is not None:
            walked = {**params, "top": place.top, "last": place.last}
            rows = yield _session_statement(param_names(walked)), walked
            shown.update(session_id for (session_id,) in rows)
    return sorted(shown)
