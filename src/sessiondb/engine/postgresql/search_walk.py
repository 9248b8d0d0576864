"""The candidates of a search, newest first: see `search_statements`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sessiondb.engine.postgresql.search_query import read_match, read_possible
from sessiondb.engine.postgresql.search_statements import (
    MatchShape,
    is_narrow,
    match_statement,
    place_statement,
    session_match_statement,
    session_statement,
)
from sessiondb.engine.search_index import BOUNDS
from sessiondb.engine.sql import Read, Rows, as_list

#: The newest places, which are walked whatever the word is. If so many times as many
#: places seem to have enough matches, these are walked.
_WINDOW, _MOST_WINDOWS = 200, 50
#: The same if only few sessions may pass.
_NARROW_WINDOW = 2_000
#: Matches that are looked up rather than walked, at least, and for each that is wanted.
_MOST_PLACES, _MOST_TIMES = 1_000, 5
#: Matches in a few sessions that are looked up at once.
_PLACES_AT_ONCE = 200
#: Sessions, and messages of them, in which all matches are looked up.
_MOST_SESSIONS, _MOST_MESSAGES = 200, 5_000
_LAST_PLACE = (1 << 63) - 1


class Candidate(NamedTuple):
    """A part that has the words of a query."""

    place: int
    session_id: str
    seq: int
    sort_key: Any
    #: Whether its entry does not say all: its words are in several chunks, of which one
    #: has a word of the query, or they may have to be in a row, and it lost places.
    is_partial: int
    #: Whether its message has other parts; False if nothing depends on them.
    has_siblings: int
    #: The id of its message, and its columns `TEXTS_OF_PART`, if these are read.
    message_id: str | None = None
    texts: tuple[Any, ...] = ()

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Candidate:
        """Return the candidate of a row, with message and texts if it has them."""
        if len(row) <= _OWN_COLUMNS:
            return cls._make([*row, None, ()])
        own, message_id = row[:_OWN_COLUMNS], row[_OWN_COLUMNS]
        return cls._make([*own, message_id, tuple(row[_OWN_COLUMNS + 1 :])])


_OWN_COLUMNS = len(Candidate._fields) - 2


class MatchWalk:
    """A walk from the newest candidate to the oldest, some at a time."""

    def __init__(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        order: str,
        *,
        is_once: bool = False,
        has_texts: bool = False,
    ) -> None:
        """With *is_once* it passes over further candidates of a session.

        With *has_texts* candidates have the id of their message, and their texts.
        """
        self._params = {**params, **words_of(params)}
        before = params.get("cursor", _LAST_PLACE)
        self._params["before"] = min(before, params.get("top", _LAST_PLACE - 1) + 1)
        self._params.setdefault("last", 0)
        bounds = set(bounds_in(params)) - {"cursor", "top", "last"}
        if "in_order" in self._params:
            bounds.add("in_order")
        self._shape = MatchShape(
            tuple(terms), tuple(sorted(bounds)), order, is_once, has_texts
        )
        #: Whether the newest places tell how many matches the others have.
        self._may_be_enough = True
        #: Whether the sessions may be so few that all their matches are looked up.
        self._may_be_few = any(is_narrow(term) for term in terms)
        #: Whether all remaining places are walked.
        self._is_walk = False
        #: Places of candidates that are looked up, newest last.
        self._places: list[int] = []
        #: Whether there are no more candidates but those.
        self._is_at_end = False

    @property
    def is_done(self) -> bool:
        """Whether there are no more candidates."""
        return self._is_at_end and not self._places

    def read(self, most: int) -> Read[list[Candidate]]:
        """Return about *most* of the next candidates; none at the end."""
        while not self.is_done:
            if self._places:
                rows = yield from self._look_up(most)
            else:
                rows = yield from self._read_matches(most)
            if rows:
                return self._candidates(rows)
        return []

    def _candidates(self, rows: Rows) -> list[Candidate]:
        """Return each part once, or each session."""
        candidates = [Candidate.of_row(row) for row in rows]
        if not self._shape.is_once:
            return candidates
        by_session: dict[str, Candidate] = {}
        for candidate in candidates:
            by_session.setdefault(candidate.session_id, candidate)
        seen = json.loads(self._params.get("seen", "[]"))
        self._params["seen"] = as_list([*seen, *by_session])
        self._shape = self._shape._replace(
            bounds=tuple(sorted({*self._shape.bounds, "seen"}))
        )
        return list(by_session.values())

    def _read_matches(self, most: int) -> Read[Rows]:
        """Read the next matches, however many there are of them."""
        limit = _limit(most)
        bounds = {
            "window": _NARROW_WINDOW if self._may_be_few else _WINDOW,
            "enough": -(-limit // _MOST_WINDOWS),
            "reach": _WINDOW * _MOST_WINDOWS,
            "many": max(_MOST_PLACES, _MOST_TIMES * limit) + 1,
            "is_far": int(not self._may_be_few),
        }
        if self._is_walk:
            bounds |= {"enough": 0, "reach": _LAST_PLACE // 2}
        elif not self._may_be_enough:
            bounds["enough"] = limit
        statement = match_statement(self._shape._replace(limit=limit))
        rows = yield statement, self._params | bounds
        matches = [row[2:] for row in rows if row[2] is not None]
        unwalked, unlooked, *_ = rows[0]
        if len(matches) == limit:
            self._params["before"] = matches[-1][0]
        elif unlooked is not None:
            self._params["before"] = unlooked
        elif unwalked is None or unwalked <= self._params["last"]:
            self._is_at_end = True
        else:
            self._params["before"] = unwalked
            if self._may_be_enough:
                self._may_be_enough = False
            else:
                self._may_be_few, self._is_walk = False, True
                yield from self._find_in_sessions()
        return matches

    def _find_in_sessions(self) -> Read[None]:
        """Find the places of matches in the sessions that pass, if these are few."""
        sessions = yield (
            session_statement(self._shape),
            {**self._params, "many": _MOST_SESSIONS + 1},
        )
        messages = sum([message_count for _, message_count in sessions])
        if len(sessions) > _MOST_SESSIONS or messages > _MOST_MESSAGES:
            return
        ids = as_list([session_id for session_id, _ in sessions])
        bounds = (*self._shape.bounds, "before", "last")
        shape = self._shape._replace(bounds=bounds)
        rows = yield session_match_statement(shape), {**self._params, "ids": ids}
        self._places = sorted({row[0] for row in rows})
        self._is_at_end = True

    def _look_up(self, most: int) -> Read[Rows]:
        """Read the next of the matches whose places are known."""
        at_once = max(most, _PLACES_AT_ONCE)
        places = self._places[-at_once:]
        del self._places[-at_once:]
        params = {**self._params, "places": as_list(places)}
        return (yield place_statement(self._shape), params)


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
