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

from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import text

from sessiondb.arguments import one_of
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
    terms_of_messages,
)
from sessiondb.schema import session

#: How many of the newest matches ``rank`` and ``time`` sort.
WINDOW = 2_000
#: If a round needed more than ``DENSE`` matches for each session, the next one fetches
#: only ``FEW`` in all, since every further match of a session is skipped.
DENSE, FEW = 4, 16
ORDERS = ("newest", "time", "rank")
#: Filters that no title passes: it has neither a role nor a tool.
_NOT_OF_TITLES = frozenset({"role", "tool"})
_PLACE, _SESSION = itemgetter(0), itemgetter(1)
MARKS = ("\u2039", "\u203a")
#: place, session, seq, message id, snippet; for a match in parts also its sort key.
_Row = tuple[Any, ...]


class _Place(NamedTuple):
    """The end of a page, where the next one begins.

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


_terms = terms_of_messages(
    role="m.role = :role",
    tool="p.tool = :tool",
    cursor=f"{_INDEX.place} < :cursor",
    seen=f"p.session_id NOT IN {list_text('seen')}",
    top=f"{_INDEX.place} <= :top",
    last=f"{_INDEX.place} >= :last",
    literals=_INDEX.literal,
)
_TIMES = {"since": "s.time_updated >= :since", "until": "s.time_updated < :until"}
#: A title is of no message: its time is that of the last use of the session.
_terms_of_titles = terms_of_messages(
    cursor=f"{_INDEX.place} < :cursor", literals=_INDEX.literal_title, **_TIMES
)
_OF_MESSAGE = "CROSS JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq"


#: Keys by which the orders sort the window, smallest first. The time is the part's:
#: that of its message is a row elsewhere in the file, and would double the cost.
_KEYS = {"rank": _INDEX.rank, "time": "-p.time_created"}
_NEED_MESSAGE = frozenset({"role", "since", "until"})


@lru_cache(maxsize=256)
def _statement(shape: tuple[str, ...], order: str, shown: bool) -> Statement:
    """Return the query for matches, newest first, as many as ``:rows``.

    Its columns are place, session, seq, message id, snippet and sort key; message id
    and snippet are NULL unless *shown*, and the key is NULL for newest first.
    """
    hit, joins = "NULL, NULL", _message_for(shape)
    if shown:
        hit, joins = f"m.id, {_SNIPPET}", _OF_MESSAGE
    columns = f"p.session_id, p.seq, {hit}, {_KEYS.get(order, 'NULL')}"
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
    """Return the query for sessions whose title matches, except for those shown before.

    These are the sessions in the parameter *shown* if the shape has it, else all that
    have a match in their parts, up to *top*.
    """
    kept = tuple(name for name in shape if name not in ("shown", "top"))
    shown = f"s.id NOT IN {list_text('shown')}"
    if "shown" not in shape:
        matches = _INDEX.part_matches(literal="literals" in shape)
        timed = _terms(tuple(filter(_TIMES.__contains__, shape)))
        shown = (
            "NOT EXISTS (SELECT 1 FROM part AS p JOIN message AS m "
            "ON m.session_id = p.session_id AND m.seq = p.seq "
            f"WHERE p.session_id = s.id AND {matches} "
            f"AND p.rid <= :top{timed})"
        )

    columns = (
        "s.id, (SELECT min(seq) FROM message WHERE session_id = s.id), "
        "(SELECT id FROM message WHERE session_id = s.id ORDER BY seq LIMIT 1), "
        f"{_INDEX.snippet(MARKS, 'session')}"
    )
    terms = f" AND s.message_count > 0 AND {shown}{_terms_of_titles(kept)}"
    sql = _INDEX.titles(columns, terms)
    return Statement(lambda: text(sql))


def _params(
    query: str, filters: Filters, role: str | None, tool: str | None
) -> dict[str, Any]:
    """Return the parameters of a search; their names say which terms a query has."""
    own = {"role": role, "tool": tool}
    return {
        **filters.params(),
        **filters.exclusions(),
        **{n: check_text(value, n) for n, value in own.items() if value is not None},
        **_INDEX.query(query).params(),
    }


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
    params = _params(query, filters, role, tool)
    place = _Place(order) if cursor is None else _place_of(cursor, order)

    found, place = yield from _page(params, order, all_hits, limit, place)
    hits = yield from _hits(base, params["match"], found)
    return Page(hits, None if place.phase == "end" else encode_cursor(*place))


def _place_of(cursor: str, order: str) -> _Place:
    """Return the place that a cursor names; raises `InvalidInputError`."""
    place = _Place(*decode_cursor(cursor, str, int, int, int))
    # Titles come after the matches, of which there may be none.
    fits = {
        order: 1 <= place.last <= place.top,
        "titles": min(place.top, place.last) >= 0,
    }
    if place.passed < 0 or not fits.get(place.phase):
        raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")

    return place


def _page(
    params: dict[str, Any], order: str, all_hits: bool, limit: int, place: _Place
) -> Read[tuple[list[_Row], _Place]]:
    """Return the matches of a page, those of titles last, and where the next begins."""
    if order == "newest":
        found, place = yield from _newest(params, all_hits, limit, place)
        before: dict[str, Any] = {"top": place.top}
    else:
        window = yield from _window(params, order, place.top)
        found, place = _of_window(window, all_hits, limit, place)
        before = {"shown": as_list(sorted(set(map(_SESSION, window))))}

    if place.phase != "titles":
        return found, place
    if not _NOT_OF_TITLES.isdisjoint(params):
        return found, _Place("end")

    room = limit - len(found)
    if room == 0:
        return found, place
    more, place = yield from _in_titles({**params, **before}, room, place)
    return found + more, place


@dataclass(slots=True)
class _Gathered:
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


def _window(params: dict[str, Any], order: str, top: int) -> Read[list[_Row]]:
    """Return the newest matches in this order; of later pages those up to *top*."""
    bounded = _within(params, top=top)
    statement = _statement(_names(bounded), order, False)
    rows = yield statement, {**bounded, "rows": WINDOW}

    # Sorted here: SQL would sort before the LIMIT, and so score every match there is.
    # Among equals the newest stays first, as the sort is stable.
    return sorted(rows, key=itemgetter(5))


def _of_window(
    window: list[_Row], all_hits: bool, limit: int, place: _Place
) -> tuple[list[_Row], _Place]:
    """Return one page of the window, and where the next one begins."""
    if place.phase == "titles":
        return [], place

    # By the last hit, as rows before it may be gone; by their number if it is gone
    # itself.
    places = list(map(_PLACE, window))
    first = place.passed
    if place.last in places:
        first = places.index(place.last) + 1

    earlier = [] if all_hits else window[:first]
    found = _Gathered(limit, not all_hits, set(map(_SESSION, earlier)))
    left = found.take(window[first:])

    top = place.top or max(places, default=0)
    if left is None:
        return found.rows, _Place("titles", top)
    last = found.rows[-1][0]
    return found.rows, place._replace(top=top, last=last, passed=first + left)


def _newest(
    params: dict[str, Any], all_hits: bool, limit: int, place: _Place
) -> Read[tuple[list[_Row], _Place]]:
    """Walk backwards, in rounds that each skip the sessions of earlier ones."""
    if place.phase == "titles":
        return [], place

    seen = [] if all_hits else (yield from _seen(params, place))
    found = _Gathered(limit, not all_hits, set(seen))
    below, per_session = place.last, 1 if all_hits else 3
    while True:
        more = _within(params, cursor=below)
        if found.seen:
            more["seen"] = as_list(sorted(found.seen))

        # One more than fits shows whether there are more.
        room = limit - len(found.rows) + 1
        limited = room * per_session if per_session <= DENSE else FEW
        statement = _statement(_names(more), "newest", all_hits)
        rows = yield statement, {**more, "rows": limited}

        left = found.take(rows)
        top = place.top or max(map(_PLACE, found.rows), default=0)
        if left is not None:
            return found.rows, _Place("newest", top, found.rows[-1][0])
        if len(rows) < limited:
            return found.rows, _Place("titles", top)

        # The next round fetches as many for each session as this one needed.
        added = room - (limit - len(found.rows) + 1)
        below, per_session = rows[-1][0], len(rows) // max(1, added) + 1


def _seen(params: dict[str, Any], place: _Place) -> Read[list[str]]:
    """Return the sessions that the pages up to *place* have shown."""
    if not place.last:
        return []
    walked = {**params, "top": place.top, "last": place.last}
    rows = yield _shown_before(_names(walked)), walked
    return [session_id for (session_id,) in rows]


def _within(params: dict[str, Any], **places: int) -> dict[str, Any]:
    """Return *params* with the bounds among *places* that are set; 0 is not."""
    return params | {name: place for name, place in places.items() if place}


def _names(params: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(set(params) - {"match"}))


def _in_titles(
    params: dict[str, Any], limit: int, place: _Place
) -> Read[tuple[list[_Row], _Place]]:
    more = _within(params, cursor=place.last)
    rows = yield _titles(_names(more)), {**more, "rows": limit + 1}

    if len(rows) <= limit:
        return rows, _Place("end")
    return rows[:limit], place._replace(last=rows[limit - 1][0])


def _hits(base: str | None, match: str, found: list[_Row]) -> Read[tuple[Hit, ...]]:
    """Return matches as hits; message and snippet of most are read only here."""
    if not found:
        return ()

    shown: dict[int, tuple[str, str]] = {}
    rids = [row[0] for row in found if row[3] is None]
    if rids:
        ends = {"low": min(rids), "high": max(rids)}
        rows = yield _SHOWN, {"match": match, "rids": as_list(rids), **ends}
        shown = {rid: (mid, snippet) for rid, mid, snippet in rows}

    rows = yield _SESSIONS, {"ids": as_list(sorted(set(map(_SESSION, found))))}
    sessions = {item.id: item for item in listed(rows, base)}

    hits = []
    for rid, sid, seq, mid, snippet, *_ in found:
        part = shown.get(rid) if mid is None else (mid, snippet)
        # A delete in a shell may leave index entries without their rows.
        if part is not None and sid in sessions:
            hits.append(Hit(sessions[sid], seq, *part))

    return tuple(hits)
