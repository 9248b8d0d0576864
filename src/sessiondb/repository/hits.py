"""The parts that all searches share: filters, places, titles, the contents of a hit."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.base import SNIPPET_MARKS, Engine
from sessiondb.engine.search_index import SearchIndex
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit
from sessiondb.model.tools import names_of_tool
from sessiondb.repository import Read
from sessiondb.repository.decode import listed
from sessiondb.repository.sessions import (
    Filters,
    check_text,
    decode_cursor,
    terms_of_messages,
)

#: The marks around the words of a snippet that match.
MARKS = SNIPPET_MARKS
#: place, session, seq, message id, snippet; for a match in parts also its sort key.
Row = tuple[Any, ...]


class SearchPlace(NamedTuple):
    """The end of a page, where the next one begins."""

    #: The order, ``titles`` or ``end``.
    phase: str
    #: The place of the newest match that the first page saw.
    top: int = 0
    #: That of the last hit shown; 0: none yet.
    last: int = 0
    #: The number of rows before the next one in a sorted window.
    passed: int = 0
    #: Which of the covers of the query finds what several parts have.
    cover: int = 0


class SearchFilters(NamedTuple):
    """The filters of a search, as terms for an engine's index."""

    #: The parameters of the terms.
    params: dict[str, Any]
    #: The terms that a match in a part has to pass.
    of_parts: tuple[str, ...]
    #: Those that a match in a title has to pass; None if no title passes.
    of_titles: tuple[str, ...] | None
    #: Those of ``of_parts`` that ``of_titles`` has of the session: times of messages.
    of_times: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of a query: what the index is asked for."""

    index: SearchIndex
    filters: SearchFilters
    #: The parameters of the filters and of the query.
    params: dict[str, Any]
    #: Those for what several parts of a message have; None if one part has it all.
    spread: dict[str, Any] | None = None

    @property
    def walks(self) -> list[dict[str, Any]]:
        """The parameters of each walk."""
        return [self.params] if self.spread is None else [self.params, self.spread]


#: The sessions of the list parameter ``ids``, as lists have them.
SESSIONS_BY_ID = Statement("repository.hits.SESSIONS_BY_ID")


def search_filters(
    engine: Engine, filters: Filters, role: str | None, tool: str | None
) -> SearchFilters:
    """Return the terms of filters for the index of *engine*.

    Raises `InvalidInputError`.
    """
    params: dict[str, Any] = {**filters.params(), **filters.exclusions()}
    if role == "tool":
        params["tool_role"] = 1
    elif role is not None:
        params["role"] = check_text(role, "role")
    if tool is not None:
        params["tool"] = as_list(names_of_tool(check_text(tool, "tool")))
    return SearchFilters(params, *_search_terms(engine, tuple(sorted(params))))


@lru_cache(maxsize=256)
def _search_terms(
    engine: Engine, names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...] | None, tuple[str, ...]]:
    """Return the terms of the filters *names*: of parts, of titles, and of times."""
    of_parts = terms_of_messages(
        names,
        role="m.role = :role",
        tool=f"lower(p.tool) IN {engine.dialect.list_text('tool', str)}",
        # A result is where its call is, in the answer.
        tool_role="(m.role = 'tool' OR p.type = 'tool')",
    )
    times = [name for name in names if name in ("since", "until")]
    of_times = terms_of_messages(times)
    if not {"role", "tool", "tool_role"}.isdisjoint(names):
        # A title has neither.
        return of_parts, None, of_times

    # A title is of no message: its time is that of the last use of the session.
    of_titles = terms_of_messages(
        names,
        since="s.time_updated >= :since",
        until="s.time_updated < :until",
    )
    return of_parts, of_titles, of_times


def place_of(cursor: str, order: str) -> SearchPlace:
    """Return the place that a cursor names; raises `InvalidInputError`."""
    place = SearchPlace(*decode_cursor(cursor, str, int, int, int, int))
    if place.phase == order:
        is_possible = 1 <= place.last <= place.top
    elif place.phase == "titles":
        # Titles come after the matches, of which there may be none.
        is_possible = place.top >= 0 and place.last >= 0
    else:
        is_possible = False
    if place.passed < 0 or place.cover < 0 or not is_possible:
        raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")

    return place


def session_of(row: Row) -> str:
    """Return the session of a row."""
    return str(row[1])


@dataclass(slots=True)
class GatheredHits:
    """The matches of a page, up to *limit*.

    ``seen`` are the sessions that are not shown again; empty if all hits are shown.
    """

    limit: int
    once: bool
    seen: set[str]
    rows: list[Row] = field(default_factory=list)

    def take(self, rows: list[Row]) -> int | None:
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


def list_of_sessions(rows: Iterable[Row]) -> str:
    """Return the sessions of rows, as a list parameter."""
    return as_list(sorted({session_of(row) for row in rows}))


def list_of_places(rows: Iterable[Row]) -> str:
    """Return the places of rows, as a list parameter."""
    return as_list([row[0] for row in rows])


def with_bounds(params: dict[str, Any], **places: int) -> dict[str, Any]:
    """Return *params* with the bounds among *places* that are set; 0 is not."""
    return params | {name: place for name, place in places.items() if place}


def read_titles(
    matches: Matches, bounds: dict[str, Any], limit: int, place: SearchPlace
) -> Read[tuple[list[Row], SearchPlace]]:
    """Return sessions whose title alone matches, and where the next page begins.

    *bounds* say which sessions are left out, as they match otherwise.
    """
    filters = matches.filters
    if filters.of_titles is None:
        return [], SearchPlace("end")
    if limit == 0:
        return [], place

    bounded = with_bounds(matches.params | bounds, cursor=place.last)
    rows = yield from matches.index.titles(
        filters.of_titles, bounded, filters.of_times, rows=limit + 1
    )
    if len(rows) <= limit:
        return rows, SearchPlace("end")
    return rows[:limit], place._replace(last=rows[limit - 1][0])


def read_hits(
    base: str | None, index: SearchIndex, queries: Iterable[str], matches: list[Row]
) -> Read[tuple[Hit, ...]]:
    """Return matches as hits; message and snippet of most are read only here.

    Each is a match of one of *queries*, values of ``match``.
    """
    shown: dict[int, tuple[str, str]] = {}
    for match in queries:
        places = [row[0] for row in matches if row[3] is None and row[0] not in shown]
        if places:
            shown |= yield from index.snippets(match, places)
    return (yield from hits_of(base, matches, shown))


def hits_of(
    base: str | None, matches: list[Row], shown: dict[int, tuple[str, str]]
) -> Read[tuple[Hit, ...]]:
    """Return matches as hits; *shown* has message and snippet of those without."""
    if not matches:
        return ()

    rows = yield SESSIONS_BY_ID, {"ids": list_of_sessions(matches)}
    sessions = {item.id: item for item in listed(rows, base)}

    hits = []
    for place, session_id, seq, message_id, snippet, *_ in matches:
        part = shown.get(place) if message_id is None else (message_id, snippet)
        # A delete in a shell may leave index entries without their rows.
        if part is not None and session_id in sessions:
            hits.append(Hit(sessions[session_id], seq, *part))
    return tuple(hits)
