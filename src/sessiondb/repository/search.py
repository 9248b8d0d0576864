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
from typing import Any

from sessiondb.arguments import one_of
from sessiondb.engine.query import Cover
from sessiondb.engine.search_index import SearchIndex
from sessiondb.engine.sql import as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit, Page
from sessiondb.repository import Read, engine_in_use
from sessiondb.repository.hits import (
    GatheredHits,
    Matches,
    Row,
    SearchPlace,
    list_of_places,
    list_of_sessions,
    place_of,
    read_hits,
    read_titles,
    search_filters,
    session_of,
    with_bounds,
)
from sessiondb.repository.scanning import read_scanned_page
from sessiondb.repository.sessions import Filters, check_limit, encode_cursor

#: How many of the newest matches ``rank`` and ``time`` sort.
WINDOW = 2_000
#: How many of those that only several parts of a message have together.
SPREAD_WINDOW = 200
#: If a round needed more than ``DENSE`` matches for each session, the next one fetches
#: only ``FEW`` in all, since every further match of a session is skipped.
DENSE, FEW = 4, 16
ORDERS = ("newest", "time", "rank")


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
    engine = yield from engine_in_use()
    index = engine.search
    meant = index.query(query)
    narrowing = search_filters(engine, filters, role, tool)
    params = narrowing.params | meant.params()
    # A call is searched by itself: the rest of its answer is no call of that tool.
    has_messages = tool is None and role != "tool"
    if has_messages:
        params |= meant.of_messages()
    if meant.match is None:
        return (
            yield from read_scanned_page(
                base,
                Matches(index, narrowing, params),
                order=order,
                all_hits=all_hits,
                limit=limit,
                place=place,
            )
        )

    spread = None

    if has_messages and meant.covers:
        if cursor is None:
            rarest = yield from _rarest_cover(index, meant.covers)
            place = place._replace(cover=rarest)
        if place.cover >= len(meant.covers):
            raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")
        cover = meant.covers[place.cover]
        spread = {**params, "match": cover.match, "spread": cover.spread}
        spread.pop("comparison", None)
        spread.pop("together", None)

    matches = Matches(index, narrowing, params, spread)
    rows, place = yield from _read_page(matches, order, all_hits, limit, place)
    queries = [walked["match"] for walked in matches.walks]
    hits = yield from read_hits(base, index, queries, rows)
    return Page(hits, None if place.phase == "end" else encode_cursor(*place))


def _rarest_cover(index: SearchIndex, covers: Sequence[Cover]) -> Read[int]:
    """Return which cover has the fewest matches among the newest parts."""
    if len(covers) == 1:
        return 0
    return (yield from index.rarest([cover.match for cover in covers]))


def _read_page(
    matches: Matches, order: str, all_hits: bool, limit: int, place: SearchPlace
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
    room = limit - len(rows)
    titles, place = yield from read_titles(matches, matched, room, place)
    return rows + titles, place


def _sorted_page(
    matches: Matches, order: str, all_hits: bool, limit: int, place: SearchPlace
) -> Read[tuple[list[Row], list[Row], SearchPlace]]:
    """Return a page of the newest matches in this order, these, and the next place."""
    if matches.spread is not None and not place.top:
        place = place._replace(top=(yield from matches.index.newest_place()))

    window = yield from _read_window(matches, order, place.top)
    if matches.spread is not None and order == "time":
        window += yield from _read_spread(
            matches, matches.spread, window, order, place.top
        )
        window.sort(key=_sort_key)

    rows, end = _page_of_window(window, all_hits, limit, place)
    if matches.spread is not None and order == "rank" and end.phase == "titles":
        # Matches within one part come first: most pages end before the rest is needed.
        window += yield from _read_spread(
            matches, matches.spread, window, order, place.top
        )
        rows, end = _page_of_window(window, all_hits, limit, place)
    return rows, window, end


def _read_window(matches: Matches, order: str, top: int) -> Read[list[Row]]:
    """Return the newest matches in this order; of later pages those up to *top*."""
    bounded = with_bounds(matches.params, top=top)
    rows = yield from matches.index.matches(
        matches.filters.of_parts, bounded, order=order, is_shown=False, rows=WINDOW
    )
    # Sorted here: SQL would sort before the LIMIT, and so score every match there is.
    # Among equals the newest stays first, as the sort is stable.
    return sorted(rows, key=_sort_key)


def _read_spread(
    matches: Matches, spread: dict[str, Any], window: list[Row], order: str, top: int
) -> Read[list[Row]]:
    """Return the newest matches of several parts, as many as are sorted with a window.

    If that is full, none of them is older than all of it.
    """
    walked = {**spread, "top": top, "found": list_of_places(window)}
    if len(window) == WINDOW:
        walked["last"] = min([row[0] for row in window])
    rows = yield from matches.index.matches(
        matches.filters.of_parts,
        walked,
        order=order,
        is_shown=False,
        rows=SPREAD_WINDOW,
    )
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
    matches: Matches, all_hits: bool, limit: int, place: SearchPlace
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
        sessions = None if all_hits else room
        rows = yield from _newest_matches(matches, bounds, most, sessions)

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
    matches: Matches, bounds: dict[str, Any], most: int, sessions: int | None
) -> Read[list[Row]]:
    """Return at most *most* matches within *bounds*, of one part and of several.

    With *sessions* the page has room for so many, each once.
    """
    index, terms = matches.index, matches.filters.of_parts
    rows = yield from index.matches(
        terms,
        matches.params | bounds,
        order="newest",
        is_shown=sessions is None,
        rows=most,
        sessions=sessions,
    )
    if matches.spread is None:
        return rows

    # Older ones than the last of these would not be on the page.
    is_full = sessions is not None and len({row[1] for row in rows}) >= sessions
    walked = {**matches.spread, **bounds, "found": list_of_places(rows)}
    if len(rows) == most or is_full:
        walked["last"] = rows[-1][0]
    # Few of these are shown, so their snippets are read later.
    spread_rows = yield from index.matches(
        terms, walked, order="newest", is_shown=False, rows=most
    )
    merged = sorted([*rows, *spread_rows], key=lambda row: row[0], reverse=True)
    return merged[:most]


def _shown_sessions(matches: Matches, place: SearchPlace) -> Read[list[str]]:
    """Return the sessions with matches from the first page up to *place*."""
    shown: set[str] = set()
    for params in matches.walks:
        walked = {**params, "top": place.top, "last": place.last}
        shown.update(
            (yield from matches.index.sessions(matches.filters.of_parts, walked))
        )
    return sorted(shown)
