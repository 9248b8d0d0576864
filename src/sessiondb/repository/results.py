"""Calls and their results, shown together.

The text of a result is stored once, mostly with its call. A call is shown with its
last result on the path, else with its own text; a result whose record has
no text is shown with that of the call above it, which it was stored with.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.sql import Statement, as_list
from sessiondb.model import Message, Part
from sessiondb.model.damage import Missing
from sessiondb.model.draft import ending
from sessiondb.repository import Read, Rows
from sessiondb.repository.decode import PART_COLUMNS, parts_of, report_missing
from sessiondb.repository.makers import copier

_CALLS = Statement("repository.results.CALLS")
_ANY_RESULT = Statement("repository.results.ANY_RESULT")
_RECORDS = Statement("repository.results.RECORDS")
_RESULTS = Statement("repository.results.RESULTS")
_NEAREST = Statement("repository.results.NEAREST")

_PART_COPY = copier(Part, "text", "status", "outcome")
_MESSAGE_COPY = copier(Message, "parts")
_PLACE = itemgetter(0)
_TYPE_OF = itemgetter(PART_COLUMNS.index("type"))
#: call id → (its place, a call or a result), in order.
Placed = dict[str | None, list[tuple[int, Part]]]
#: The types of parts that a result concerns.
_CALLED = ("tool", "tool-result")


@dataclass(slots=True)
class _Shown:
    """The calls in some messages of a session, and their results on the path.

    ``calls`` have the seqs of their messages, ``results`` their places on the path, and
    ``uses`` those of the calls that have results, in order; ``ended`` are those calls
    that a result was given to, ``bare`` the calls of records that have no text of their
    own. The messages are ``in order`` if their seqs grow. Any number of calls and
    results may have one id, so each is found by bisection.
    """

    session_id: str
    #: The parents of the messages by their seqs.
    parents: Mapping[int, int | None]
    calls: Placed = field(default_factory=dict)
    ended: Placed = field(default_factory=dict)
    results: Placed = field(default_factory=dict)
    uses: dict[str | None, list[int]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    bare: set[str | None] = field(default_factory=set)
    is_in_order: bool = True
    #: The nearest calls from messages up, by call id and seq, if there are several.
    nearest: dict[str | None, dict[int, Part | None]] = field(default_factory=dict)

    def collect(self, seqs: Sequence[int], rows: Rows, parts: list[Part]) -> None:
        """Find the calls, and the results without a text of their own."""
        placed = list(zip(rows, parts, strict=True))
        self.is_in_order = sorted(seqs) == list(seqs)
        if not self.is_in_order:
            place_of = {seq: place for place, seq in enumerate(seqs)}
            placed.sort(key=lambda entry: place_of[entry[0][0]])
        for row, item in placed:
            if not item.call_id:
                continue
            if item.type == "tool":
                _add_result(self.calls, row[0], item)
                self._add_ended(row[0], item)
            elif _is_bare(item):
                self.bare.add(item.call_id)

    def read_results(self, path: Callable[[], Read[Sequence[int]]]) -> Read[None]:
        """Find the results of the calls that are on *path*."""
        rows = yield _RESULTS, self._params_of(self.calls)
        if not rows:
            return

        live = yield from path()
        self.places = dict(zip(live, range(len(live)), strict=True))
        on_path = [row for row in rows if row[0] in self.places]
        parts = yield from _parts_of(self.session_id, on_path)
        for seq, item in parts:
            _add_result(self.results, self.places[seq], item)
        for results in self.results.values():
            results.sort(key=_PLACE)
        for call_id in self.results:
            calls = self.calls[call_id]
            self.uses[call_id] = sorted(self.places.get(seq, -1) for seq, _ in calls)

    def read_calls(self) -> Read[None]:
        """Find the calls of bare results that are in other messages."""
        elsewhere = self.bare.difference(self.ended)
        if not elsewhere:
            return

        rows = yield _CALLS, self._params_of(elsewhere)
        parts = yield from _parts_of(self.session_id, rows)
        for seq, item in parts:
            self._add_ended(seq, item)

    def _add_ended(self, seq: int, call: Part) -> None:
        # The same call may be in the log twice, and only one of them got the result.
        if call.status not in ("pending", "running"):
            _add_result(self.ended, seq, call)

    def _params_of(self, calls: Iterable[str | None]) -> dict[str, Any]:
        names = sorted(str(call) for call in calls)
        return {"sid": self.session_id, "calls": as_list(names)}

    def shown_part(self, seq: int, item: Part) -> Part:
        if item.type == "tool":
            return self._with_result(seq, item)
        if _is_bare(item):
            return self._with_text_of_call(seq, item)
        return item

    def _with_result(self, seq: int, call: Part) -> Part:
        """Return a call with its last result on the path, if there is one."""
        results = self.results.get(call.call_id)
        place_of_call = self.places.get(seq)
        if results is None or place_of_call is None:
            return call

        # An id that is used again for another call ends the search at that call.
        uses = self.uses[call.call_id]
        next_use = bisect_right(uses, place_of_call)
        end = uses[next_use] if next_use < len(uses) else len(self.places)
        count = bisect_left(results, end, key=_PLACE)
        if not count or results[count - 1][0] <= place_of_call:
            return call

        # Of several in one message it is the first.
        place, _ = results[count - 1]
        _, last = results[bisect_left(results, place, key=_PLACE)]
        status, outcome = ending(last.outcome, failed=last.status == "error")
        return _PART_COPY.make(call, last.text, status, outcome)

    def _with_text_of_call(self, seq: int, result: Part) -> Part:
        """Return a bare result with the text of the last call that ended before it."""
        calls = self.ended.get(result.call_id)
        if calls is None:
            return result

        # One of another branch may come before the result, and is not its own.
        shown = self.nearest.get(result.call_id, {}).get(seq)
        if shown is None and self.is_in_order:
            _, shown = calls[bisect_left(calls, seq, key=_PLACE) - 1]
        elif shown is None:
            earlier = [entry for entry in calls if entry[0] < seq]
            _, shown = (earlier or calls)[-1]
        return _PART_COPY.make(result, shown.text, result.status, result.outcome)

    def find_call_above(self, seq: int, result: Part) -> Read[None]:
        """Find the nearest ended call from the message of a result up, of several.

        Any number of results may have one id, so what was walked is not walked again.
        """
        calls = self.ended.get(result.call_id, [])
        if len(calls) < 2:
            return
        if result.call_id not in self.nearest:
            self.nearest[result.call_id] = dict(calls)
        nearest = self.nearest[result.call_id]
        walked: dict[int, None] = {}
        place: int | None = seq
        while place is not None and place not in nearest and place not in walked:
            if place not in self.parents:
                # The path goes through messages that were not read.
                params = {"sid": self.session_id, "call": result.call_id}
                rows = yield _NEAREST, {**params, "leaf": place, "least": 0}
                place = rows[0][0] if rows else None
                break
            walked[place] = None
            place = self.parents[place]
        call = None if place is None else nearest.get(place)
        nearest.update(dict.fromkeys(walked, call))


def _add_result(placed: Placed, place: int, item: Part) -> None:
    placed.setdefault(item.call_id, []).append((place, item))


def _is_bare(item: Part) -> bool:
    """Return whether a part is a result without a text of its own."""
    return item.type == "tool-result" and item.text is None


def _parts_of(session_id: str, rows: Rows) -> Read[list[tuple[int, Part]]]:
    """Return parts with the seqs of their messages, in order."""
    missing: list[Missing] = []
    in_order = sorted(rows, key=itemgetter(0, 1))
    parts = yield from parts_of(session_id, in_order, missing)
    yield from report_missing(session_id, missing)
    return [(row[0], item) for row, item in zip(in_order, parts, strict=True)]


def show_results(
    session_id: str,
    parents: Mapping[int, int | None],
    rows: Rows,
    parts: list[Part],
    path: Callable[[], Read[Sequence[int]]],
) -> Read[None]:
    """Put calls with their results, and results with their texts, in place of *parts*.

    *parents* has the parent of each message of the parts by its seq, in the order of
    the messages, *rows* the rows of the parts; *path* returns the live path.
    """
    types = set(map(_TYPE_OF, rows))
    if types.isdisjoint(_CALLED):
        return
    stored_results = yield _ANY_RESULT, {"sid": session_id}
    if not stored_results and "tool-result" not in types:
        return

    shown = _Shown(session_id, parents)
    shown.collect(list(parents), rows, parts)
    if stored_results:
        yield from shown.read_results(path)
    yield from shown.read_calls()
    for row, item in zip(rows, parts, strict=True):
        if _is_bare(item):
            yield from shown.find_call_above(row[0], item)
    for index, row in enumerate(rows):
        parts[index] = shown.shown_part(row[0], parts[index])


def with_own_results(session_id: str, path: list[Message]) -> Read[list[Message]]:
    """Return the messages of a *path* without results of other branches.

    A call whose result is a record, but not one of these messages, has none here.
    """
    parts = [item for message in path for item in message.parts if item.call_id]
    answered = {item.call_id for item in parts if item.type == "tool-result"}
    calls = {item.call_id for item in parts if item.type == "tool"} - answered
    if not calls:
        return path

    names = as_list(sorted(str(call) for call in calls))
    rows = yield _RECORDS, {"sid": session_id, "calls": names}
    elsewhere = {call_id for (call_id,) in rows}
    return [_with_open_calls(message, elsewhere) for message in path]


def _with_open_calls(message: Message, calls: Collection[str]) -> Message:
    """Return *message* with the calls named *calls* as they were without a result."""
    parts = [
        _PART_COPY.make(item, None, "pending", None)
        if item.type == "tool" and item.call_id in calls
        else item
        for item in message.parts
    ]
    return _MESSAGE_COPY.make(message, tuple(parts))
