"""Calls and their results, shown together.

The text of a result is stored once, mostly with its call. A call is shown with the
last result of it on the path, else with its own text; a result whose record has
no text is shown with that of the call before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from sqlalchemy import and_, or_, select, text

from sessiondb.engine.sql import Statement, as_list, by_index, p, texts
from sessiondb.model import Message, Part
from sessiondb.repository import Read, Rows
from sessiondb.repository.decode import SELECT_PART, parts_by_seq, report_lost
from sessiondb.schema import part

_of_calls = and_(
    part.c.session_id == p("sid"),
    part.c.call_id.in_(texts("calls")),
)
_BY_CALL = by_index(part, "ix_part_call_id")
_CALLS = Statement(
    lambda: SELECT_PART.with_hint(*_BY_CALL).where(
        _of_calls, part.c.type == text("'tool'")
    )
)
_BY_RESULT = by_index(part, "ix_part_result")
_has_text = and_(
    part.c.type == text("'tool-result'"),
    or_(part.c.text.is_not(None), part.c.text_blob.is_not(None)),
)
_ANY_RESULT = Statement(
    lambda: (
        select(part.c.rid)
        .with_hint(*_BY_RESULT)
        .where(part.c.session_id == p("sid"), _has_text)
        .limit(1)
    )
)
_RESULTS = Statement(
    lambda: SELECT_PART.with_hint(*_BY_RESULT).where(_of_calls, _has_text)
)

#: call id → (its place, its text), in order.
Texts = dict[str | None, list[tuple[int, str | None]]]


@dataclass(slots=True)
class _Shown:
    """The calls in some messages: seqs of calls, places on the path of results."""

    calls: Texts = field(default_factory=dict)
    results: Texts = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    bare: set[str | None] = field(default_factory=set)

    def note(self, messages: list[Message]) -> None:
        """Find the calls, and the results without a text of their own."""
        for entry in messages:
            for item in entry.parts:
                if item.type == "tool" and item.call_id:
                    self.calls.setdefault(item.call_id, []).append(
                        (entry.seq, item.text)
                    )
                elif _is_bare(item):
                    self.bare.add(item.call_id)

    def part(self, seq: int, item: Part) -> Part:
        """Return a part of message *seq* with the text that belongs to it."""
        if item.type == "tool" and item.call_id in self.results and seq in self.places:
            return self._call(self.places[seq], item)
        if _is_bare(item) and item.call_id in self.calls:
            known = self.calls[item.call_id]
            before = [entry for entry in known if entry[0] < seq]
            return replace(item, text=(before or known)[-1][1])
        return item

    def _call(self, here: int, item: Part) -> Part:
        # An id that is used again for another call ends the search at that call.
        again = [self.places.get(seq, -1) for seq, _ in self.calls[item.call_id]]
        end = min((place for place in again if place > here), default=len(self.places))
        found = [entry for entry in self.results[item.call_id] if here < entry[0] < end]
        return replace(item, text=max(found, key=itemgetter(0))[1]) if found else item


def _is_bare(item: Part) -> bool:
    return item.type == "tool-result" and item.text is None and bool(item.call_id)


def _parts_of(session_id: str, rows: Rows) -> Read[list[tuple[int, Part]]]:
    """Return parts with the seqs of their messages, in order."""
    lost: list[str] = []
    parts = parts_by_seq(sorted(rows, key=itemgetter(0, 1)), session_id, lost)
    if lost:
        yield from report_lost(session_id, lost)
    return [(seq, item) for seq, items in parts.items() for item in items]


def with_results(
    session_id: str, messages: list[Message], path: Callable[[], Read[Sequence[int]]]
) -> Read[list[Message]]:
    """Return *messages* with calls and results resolved; *path* says what is live."""
    records = any(item.type == "tool-result" for m in messages for item in m.parts)
    found = yield _ANY_RESULT, {"sid": session_id}
    if not records and not found:
        return messages

    shown = _Shown()
    shown.note(messages)
    results: Rows = []
    if found:
        wanted = {"sid": session_id, "calls": as_list(sorted(map(str, shown.calls)))}
        results = yield _RESULTS, wanted
    if elsewhere := shown.bare.difference(shown.calls):
        where = {"sid": session_id, "calls": as_list(sorted(map(str, elsewhere)))}
        for seq, item in (yield from _parts_of(session_id, (yield _CALLS, where))):
            shown.calls.setdefault(item.call_id, []).append((seq, item.text))

    if results:
        shown.places = {seq: place for place, seq in enumerate((yield from path()))}
    live = [row for row in results if row[0] in shown.places]
    for seq, item in (yield from _parts_of(session_id, live)):
        place = shown.places[seq]
        shown.results.setdefault(item.call_id, []).append((place, item.text))
    return [
        replace(m, parts=tuple(shown.part(m.seq, item) for item in m.parts))
        for m in messages
    ]
