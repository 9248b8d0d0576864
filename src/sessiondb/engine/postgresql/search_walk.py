"""The candidates of a search, newest first: see `search_statements`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sessiondb.engine.postgresql.search_query import read_match, read_possible
from sessiondb.engine.postgresql.search_statements import (
    MatchShape,
    match_statement,
    newest_statement,
    probe_statement,
    session_match_statement,
    session_statement,
    walk_statement,
)
from sessiondb.engine.search_index import BOUNDS
from sessiondb.engine.sql import Read, Rows, Statement, as_list

#: The newest places, which are walked whatever the word is. If so many times as many
#: places seem to have enough matches, all are walked.
_WINDOW, _MOST_WINDOWS = 500, 20
#: Matches that are looked up, a few at once; more are walked.
_MOST_PLACES, _PLACES_AT_ONCE = 1_000, 200
#: Sessions, and messages of them, in which all matches are looked up.
_MOST_SESSIONS, _MOST_MESSAGES = 200, 5_000


class Candidate(NamedTuple):
    """A part that has the words of a query."""

    place: int
    session_id: str
    seq: int
    sort_key: Any
    #: Whether its words are in several chunks, of which one has a word of the query.
    is_split: int
    #: Whether its message has other parts; False if nothing depends on them.
    has_siblings: int


class MatchWalk:
    """A walk from the newest candidate to the oldest, some at a time."""

    def __init__(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        order: str,
        *,
        is_once: bool = False,
    ) -> None:
        """With *is_once* it passes over further candidates of a session."""
        self._shape = MatchShape(tuple(terms), (), order, is_once)
        self._params = {**params, **words_of(params)}
        #: What may answer the next read, in order.
        self._steps = [
            self._read_newest,
            self._read_rare,
            self._read_in_sessions,
            self._read_all,
        ]
        #: Places of candidates that are looked up, newest last.
        self._places: list[int] = []

    @property
    def is_done(self) -> bool:
        """Whether there are no more candidates."""
        return not self._steps and not self._places

    def read(self, most: int) -> Read[list[Candidate]]:
        """Return about *most* of the next candidates; none at the end."""
        while not self.is_done:
            if self._places:
                rows = yield from self._look_up()
            else:
                rows = yield from self._steps[0](most)
            if rows:
                self._params["cursor"] = rows[-1][0]
                return self._candidates(rows)
        return []

    def _candidates(self, rows: Rows) -> list[Candidate]:
        """Return each part once, in spite of its chunks, or each session."""
        candidates: dict[Any, Candidate] = {}
        for candidate in map(Candidate._make, rows):
            key = candidate.session_id if self._shape.is_once else candidate.place
            candidates.setdefault(key, candidate)
        if self._shape.is_once:
            seen = json.loads(self._params.get("seen", "[]"))
            self._params["seen"] = as_list([*seen, *candidates])
        return list(candidates.values())

    def _drop(self, step: Callable[[int], Read[Rows]]) -> None:
        self._steps = [each for each in self._steps if each != step]

    def _read_newest(self, most: int) -> Read[Rows]:
        """Walk the newest places, as long as they have enough."""
        limit = _limit(most)
        rows = yield from self._run(newest_statement, limit, window=_WINDOW)
        if len(rows) * _MOST_WINDOWS >= most:
            self._drop(self._read_rare)
        if len(rows) < limit:
            self._drop(self._read_newest)
        return rows

    def _read_rare(self, most: int) -> Read[Rows]:  # noqa: ARG002  they are few
        """Look up the places of all matches, if these are few."""
        self._drop(self._read_rare)
        params = {**self._params, "many": _MOST_PLACES + 1}
        rows = yield probe_statement(bounds_in(params)), params
        if len(rows) <= _MOST_PLACES:
            self._places = sorted([place for (place,) in rows])
            self._steps = []
        return []

    def _read_in_sessions(self, most: int) -> Read[Rows]:  # noqa: ARG002  they are few
        """Look up the places of matches in the sessions that pass, if these are few."""
        self._drop(self._read_in_sessions)
        sessions = yield from self._run(session_statement, many=_MOST_SESSIONS + 1)
        messages = sum([message_count for _, message_count in sessions])
        if len(sessions) <= _MOST_SESSIONS and messages <= _MOST_MESSAGES:
            ids = as_list([session_id for session_id, _ in sessions])
            rows = yield from self._run(session_match_statement, ids=ids)
            self._places = sorted({row[0] for row in rows})
            self._steps = []
        return []

    def _read_all(self, most: int) -> Read[Rows]:
        """Walk all entries."""
        limit = _limit(most)
        rows = yield from self._run(walk_statement, limit)
        if len(rows) < limit:
            self._steps = []
        return rows

    def _look_up(self) -> Read[Rows]:
        places = self._places[-_PLACES_AT_ONCE:]
        del self._places[-_PLACES_AT_ONCE:]
        return (yield from self._run(match_statement, places=as_list(places)))

    def _run(
        self, write: Callable[[MatchShape], Statement], limit: int = 0, **more: Any
    ) -> Read[Rows]:
        shape = self._shape._replace(bounds=bounds_in(self._params), limit=limit)
        return (yield write(shape), {**self._params, **more})


def _limit(most: int) -> int:
    """Return a number that is not less, of the few for which there are statements."""
    if most <= 64:
        return -(-most // 8) * 8
    return 1 << (most - 1).bit_length()


def words_of(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of the words that ``match`` among *params* looks up."""
    match = read_match(params["match"])
    words = {"words": match.words, "in_chunk": match.in_chunk}
    if match.in_order is not None:
        words["in_order"] = match.in_order
    if "comparison" in params:
        words |= read_possible(params["comparison"]).params()
    return words


def bounds_in(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the bounds among *params*, and ``in_order`` if it is there."""
    return tuple(sorted({*BOUNDS, "in_order"}.intersection(params)))
