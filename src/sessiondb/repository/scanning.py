"""A scan of texts, newest first: for what the index of words does not know.

A part inside of words, ``*illes*``, could be anywhere. Where a query has ordinary words
as well, the index names the candidates; one of such parts alone reads the texts
themselves, at most `SCANNED_BYTES` for a page. So a page may be empty and have a next
one, which continues where it ended; `Page.searched_to` is how far back it came. Orders
other than the newest sort each page.

A session that an earlier page has shown is not shown again. No cursor could name them
all: a session that is found is scanned from where its page began up to the top.
Sessions whose title alone matches come when all texts have been read.
"""

from __future__ import annotations

from sessiondb.engine.sql import as_list
from sessiondb.model import Hit, Page
from sessiondb.repository import Read
from sessiondb.repository.hits import (
    GatheredHits,
    Matches,
    Row,
    SearchPlace,
    hits_of,
    read_titles,
    session_of,
)
from sessiondb.repository.sessions import encode_cursor

#: The bytes of text after which a page ends: about half a second.
SCANNED_BYTES = 64_000_000
#: The parts that one statement compares: a page ends between two.
PARTS_AT_ONCE = 200


def read_scanned_page(
    base: str | None,
    matches: Matches,
    *,
    order: str,
    all_hits: bool,
    limit: int,
    place: SearchPlace,
) -> Read[Page[Hit]]:
    """Return one page of the parts, or messages, in which the needles are found."""
    rows: list[Row] = []
    searched_to = None
    if place.phase != "titles":
        rows, place, searched_to = yield from _scan(
            matches, order, all_hits, limit, place
        )
        if order != "newest":
            rows = sorted(rows, key=lambda row: row[5])

    if place.phase == "titles":
        room = limit - len(rows)
        titles, place = yield from read_titles(matches, {"top": place.top}, room, place)
        rows = rows + titles

    places = [row[0] for row in rows if row[3] is None]
    shown: dict[int, tuple[str, str]] = {}
    if places:
        needles = matches.params["needles"]
        shown = yield from matches.index.passages(needles, places)
    hits = yield from hits_of(base, rows, shown)
    if place.phase == "end":
        return Page(hits)
    return Page(hits, encode_cursor(*place), searched_to=searched_to)


def _scan(
    matches: Matches, order: str, all_hits: bool, limit: int, place: SearchPlace
) -> Read[tuple[list[Row], SearchPlace, int | None]]:
    """Return what is found from *place* on, where that ends, and the time there."""
    if not place.top:
        place = place._replace(top=(yield from matches.index.newest_place()))

    page = GatheredHits(limit, not all_hits, set())
    cursor, left, searched_to = place.last or place.top + 1, SCANNED_BYTES, None
    while left > 0 and len(page.rows) < limit:
        bounded = {**matches.params, "cursor": cursor}
        if page.seen:
            bounded["seen"] = as_list(sorted(page.seen))
        rows = yield from matches.index.scan(
            matches.filters.of_parts, bounded, order=order, rows=PARTS_AT_ONCE
        )
        if not all_hits and place.last:
            page.seen |= yield from _shown_before(matches, rows, page.seen, place)

        for row in rows:
            *_, is_hit, size, time = row
            left -= size
            cursor, searched_to = row[0], time
            if is_hit:
                page.take([row])
            if left <= 0 or len(page.rows) == limit:
                break
        else:
            if len(rows) < PARTS_AT_ONCE:
                ended = place._replace(phase="titles", last=0)
                return page.rows, ended, None

    return page.rows, place._replace(last=cursor), searched_to


def _shown_before(
    matches: Matches, rows: list[Row], seen: set[str], place: SearchPlace
) -> Read[set[str]]:
    """Return the sessions among the hits of *rows* that an earlier page has shown."""
    hits = {session_of(row) for row in rows if row[6]} - seen
    if not hits:
        return set()

    walked = {**matches.params, "top": place.top, "last": place.last}
    shown = yield from matches.index.scanned_sessions(
        matches.filters.of_parts, walked, sorted(hits)
    )
    return set(shown)
