"""The lines of a transcript as messages: which are one, and which one each follows.

An answer has a line for each block, all with the same ``message.id``; other lines may
be between them, since results come while it is still being written. Each result hangs
off the line of its call, so that the chain of ``parentUuid`` alone goes past all of
them but one: here they follow one another. A line whose parent is not in the file
follows the one before it, and one that begins a chain follows nothing. The boundary of
a compaction follows the conversation before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    clean_name,
    fitting,
    text,
    within,
)
from sessiondb.formats.kit.json import usable_id

Record = dict[str, Any]
#: How an id begins that a line does not have itself.
MADE = "~"
#: The counts that are the same on each line of an answer.
_SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Place(NamedTuple):
    """The message that a line is, and its parent for `SourceMessage`.

    ``joins`` is the number of the answer's first line if this one is a further one,
    ``answer`` the answer that a result is to, ``kept`` the first message that the
    compaction of a summary keeps.
    """

    name: str
    parent: Any
    joins: int | None = None
    answer: str | None = None
    kept: str | None = None


@dataclass(slots=True)
class _Answer:
    """An answer: its message, its first line, and the results that follow it."""

    name: str
    number: int
    sent: tuple[Any, ...]
    prompts: int
    last_result: str | None = None
    answered: set[str] = field(default_factory=set)


class Tree:
    """The messages of one transcript, line by line in their order.

    *summarised* are the uuids of the boundaries that a summary follows.
    """

    def __init__(self, summarised: Collection[Any] = ()) -> None:
        self._summarised = summarised
        #: The messages by the uuids of their lines, and all ids that are taken.
        self._ids: dict[str | None, str] = {}
        self._taken: set[str] = set()
        #: The answers by what is the same on their lines, and by their message.
        self._open: dict[tuple[str, str | None], _Answer] = {}
        self._answers: dict[str | None, _Answer] = {}
        #: The answers by the calls in them, and by the messages with their results.
        self._calls: dict[str, _Answer] = {}
        self._result_of: dict[str | None, _Answer] = {}
        self._prompts = 0
        #: The first line that the last compaction keeps, and the last one.
        self._segment: tuple[str, str] | None = None

    def place(self, record: Record, number: int) -> Place:
        """Return the place of the next line."""
        key = _key(record)
        answer = self._open.get(key) if key else None
        own = as_text(record.get("uuid"))
        if answer and own not in self._ids and self._continues(answer, record):
            if own is not None:
                self._ids[own] = answer.name
            self._called(answer, record)
            return Place(answer.name, None, answer.number)

        # Before it has a name: no line is its own parent.
        parent, calls = self._parent(record), calls_answered(record)
        name = self._name(record, own)
        if key:
            found = _Answer(name, number, _sent(record), self._prompts)
            self._open[key] = self._answers[name] = found
            self._called(found, record)
        elif calls:
            parent = self._after_results(name, parent, calls)
        elif record.get("type") == "user" and record.get("isMeta") is not True:
            self._prompts += 1
        to = self._answer_to(calls)
        kept = self._kept(record, name)
        return Place(name, parent, answer=to.name if to else None, kept=kept)

    def end_of(self, uuid: str | None) -> str | None:
        """Return the message of a line, or the last result of its answer."""
        return self._last(self._ids.get(uuid))

    def _answer_to(self, calls: set[str]) -> _Answer | None:
        return next(filter(None, map(self._calls.get, calls)), None)

    def _called(self, answer: _Answer, record: Record) -> None:
        named = (block.get("id") for block in fields.blocks_of(record))
        self._calls.update(dict.fromkeys(filter(text, named), answer))

    def _continues(self, answer: _Answer, record: Record) -> bool:
        """Return whether a line is one more of an answer with the same id.

        Some gateways give all answers one id: without a request, the line must follow
        one of the answer, or be sent the same and nothing asked since.
        """
        above = self._ids.get(as_text(record.get("parentUuid")))
        if _request(record) is not None or above == answer.name:
            return True

        return (answer.sent, answer.prompts) == (_sent(record), self._prompts)

    def _name(self, record: Record, own: str | None) -> str:
        if own is None or not usable_id(own) or own in self._taken:
            name = self._made(record)
        else:
            name = own
        self._taken.add(name)
        if own is not None:
            self._ids.setdefault(own, name)
        return name

    def _made(self, record: Record) -> str:
        content = json.dumps(record, sort_keys=True)
        name = digest = f"{MADE}{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{digest}-{number}"

        return name

    def _parent(self, record: Record) -> Any:
        """Return the parent of a line: of one beside the chain, the one before it."""
        if "parentUuid" not in record:
            return ...
        above = record["parentUuid"]
        if above is None:
            return self._before_cut(record)
        return self._message_at(above) or ...

    def _before_cut(self, record: Record) -> str | None:
        """Return the parent of a line that begins a chain: None for most.

        A boundary follows the last message that its compaction keeps, else its logical
        parent, so that the path is the complete conversation. The program does not walk
        past it: there the summary cuts the context. A boundary without one cuts here.
        """
        self._segment = segment = self._preserved(record)
        if segment is not None:
            return self._ids[segment[1]]
        if record.get("uuid") not in self._summarised:
            return None

        return self._message_at(record.get("logicalParentUuid"))

    def _message_at(self, uuid: Any) -> str | None:
        """Return the message of a line, for results the last one of their answer."""
        known = self._ids.get(as_text(uuid))
        return self._last(known) if known in self._result_of else known

    def _preserved(self, record: Record) -> tuple[str, str] | None:
        """Return the ends of what a boundary keeps; the program puts it after it."""
        held = as_object(record.get("compactMetadata"))
        segment = as_object(held.get("preservedSegment"))
        uuids = as_list(within(held, "preservedMessages", "uuids"))
        ends = segment.get("headUuid"), segment.get("tailUuid")
        first, last = map(as_text, (uuids[0], uuids[-1]) if uuids else ends)

        if first is None or last is None or not {first, last} <= self._ids.keys():
            return None
        return first, last

    def _kept(self, record: Record, name: str) -> str | None:
        if record.get("isCompactSummary") is not True or self._segment is None:
            return None
        first, last = self._segment
        found, self._segment = self._ids[first], None
        # What follows the last line that was kept follows the summary here.
        self._ids[last] = name
        return found

    def _last(self, name: str | None) -> str | None:
        """Return the last result of the answer that a message is part of, or itself."""
        answer = self._answers.get(name) or self._result_of.get(name)
        return (answer and answer.last_result) or name

    def _after_results(self, name: str, parent: Any, calls: set[str]) -> Any:
        """Return the parent of a result: the one before it to the same answer."""
        answer = self._answer_to(calls)
        # A second result of one call is on a branch of its own.
        if answer is None or calls & answer.answered:
            return parent

        after = answer.last_result or parent
        answer.answered |= calls
        answer.last_result = name
        self._result_of[name] = answer
        return after


def calls_answered(record: Record) -> set[str]:
    """Return the ids of the calls whose results a line has."""
    if record.get("type") != "user":
        return set()
    blocks = filter(_is_result, fields.blocks_of(record))
    return {fitting(block.get("tool_use_id"), text, "") for block in blocks}


def _is_result(block: Record) -> bool:
    return block.get("type") == "tool_result"


def _key(record: Record) -> tuple[str, str | None] | None:
    """Return what is the same on each line of an answer; None for any other line."""
    if record.get("type") != "assistant" or "other_lines" in record:
        return None
    name = within(record, "message", "id")
    return (name, _request(record)) if clean_name(name) else None


def _request(record: Record) -> str | None:
    named = as_text(record.get("requestId")) or as_text(record.get("requestRef"))
    return named or None


def _sent(record: Record) -> tuple[Any, ...]:
    usage = within(record, "message", "usage")
    return tuple(repr(within(usage, name)) for name in _SENT)


#: Keys of lines beside the conversation.
_HIDING = ("isSidechain", "teamName")


@dataclass(slots=True)
class Leaf:
    """The line that the session continues from, as the program finds it.

    A line that no other one follows is walked back to a prompt or an answer; of those,
    the latest counts that is not beside the conversation.
    """

    _near: dict[str, str] = field(default_factory=dict)
    _order: dict[str, int] = field(default_factory=dict)
    _hidden: set[str] = field(default_factory=set)
    _followed: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Look at the next line."""
        kind, own = as_text(record.get("type")), as_text(record.get("uuid"))
        if own is None or kind not in fields.CHAIN or own in self._order:
            return

        above = as_text(record.get("parentUuid")) or ""
        self._order[own] = len(self._order)
        self._followed.add(above)
        near = own if kind in fields.SAID else self._near.get(above)
        if near is not None:
            self._near[own] = near
        if any(map(record.get, _HIDING)):
            self._hidden.add(own)

    @property
    def uuid(self) -> str | None:
        """The uuid of that line; None without a prompt or an answer."""
        ends = self._near.keys() - self._followed
        leaves = set(map(self._near.__getitem__, ends))
        shown = leaves - self._hidden
        return max(shown or leaves, key=self._order.__getitem__, default=None)
