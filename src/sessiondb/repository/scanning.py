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

from functools import lru_cache
from typing import Any

from sessiondb.engine.default import ENGINE
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.model import Hit, Page
from sessiondb.repository import Read
from sessiondb.repository.hits import (
    GatheredHits,
    Row,
    SearchPlace,
    bounds_in,
    hits_of,
    list_of_sessions,
    param_names,
    read_titles,
    session_of,
    terms_of_parts,
)
from sessiondb.repository.sessions import encode_cursor

#: The bytes of text after which a page ends: about half a second.
SCANNED_BYTES = 64_000_000
#: The parts that one statement compares: a page ends between two.
PARTS_AT_ONCE = 200
#: The place of the newest part; 0 without any.
NEWEST_PLACE = Statement("repository.scanning.NEWEST_PLACE")
_PASSAGES = ComposedStatement(ENGINE.search.passages())


@lru_cache(maxsize=256)
def _scan_statement(names: tuple[str, ...], order: str) -> Statement:
    sql = ENGINE.search.scan(terms_of_parts(names), bounds_in(names), order=order)
    return ComposedStatement(sql)


@lru_cache(maxsize=256)
def _session_statement(names: tuple[str, ...]) -> Statement:
    sql = ENGINE.search.scanned_sessions(terms_of_parts(names), bounds_in(names))
    return ComposedStatement(sql)


def read_scanned_page(
    base: str | None,
    params: dict[str, Any],
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
            params, order, all_hits, limit, place
        )
        if order != "newest":
            rows = sorted(rows, key=lambda row: row[5])

    if place.phase == "titles":
        room = limit - len(rows)
        if not params.keys().isdisjoint(("role", "tool", "tool_role")):
            # No title passes: it has neither.
            place = SearchPlace("end")
        elif room:
            bounded = {**params, "top": place.top}
            titles, place = yield from read_titles(bounded, room, place)
            rows = rows + titles

    places = [row[0] for row in rows if row[3] is None]
    read = {"needles": params["needles"], "rids": as_list(places)}
    passages = (yield _PASSAGES, read) if places else []
    shown = {rid: (message, passage) for rid, message, passage in passages}
    hits = yield from hits_of(base, rows, shown)
    if place.phase == "end":
        return Page(hits)
    return Page(hits, encode_cursor(*place), searched_to=searched_to)


def _scan(
    params: dict[str, Any], order: str, all_hits: bool, limit: int, place: SearchPlace
) -> Read[tuple[list[Row], SearchPlace, int | None]]:
    """Return what is found from *place* on, where that ends, and the time there."""
    if not place.top:
        ((newest,),) = yield NEWEST_PLACE, {}
        place = place._replace(top=newest)

    page = GatheredHits(limit, not all_hits, set())
    cursor, left, searched_to = place.last or place.top + 1, SCANNED_BYTES, None
    while left > 0 and len(page.rows) < limit:
        bounded = {**params, "cursor": cursor}
        if page.seen:
            bounded["seen"] = as_list(sorted(page.seen))
        statement = _scan_statement(param_names(bounded), order)
        rows = yield statement, {**bounded, "rows": PARTS_AT_ONCE}
        if not all_hits and place.last:
            page.seen |= yield from _shown_before(params, rows, page.seen, place)

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
    params: dict[str, Any], rows: list[Row], seen: set[str], place: SearchPlace
) -> Read[set[str]]:
    """Return the sessions among the hits of *rows* that an earlier page has shown."""
    hit_rows = [row for row in rows if row[6] and session_of(row) not in seen]
    if not hit_rows:
        return set()

    walked = {**params, "top": place.top, "last": place.last}
    statement = _session_statement(param_names(walked))
    sessions = yield statement, {**walked, "ids": list_of_sessions(hit_rows)}
    return {session_id for (session_id,) in sessions}
