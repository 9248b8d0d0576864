"""The lines of a transcript as messages: which are one, and which one each follows.

An answer has a line for each block, all with the same ``message.id``; other lines may
be between them, since results come while it is still being written. Each result hangs
off the line of its call, so that the chain of ``parentUuid`` alone goes past all of
them but one: here they follow one another. A line whose parent is not in the file
follows the one before it, and one that begins a chain follows nothing. The boundary of
a compaction follows the conversation before it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    text,
    within,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.links import Links

Record = dict[str, Any]
#: The keys that are the same on each line of an answer: its id, and the request's.
_Key: TypeAlias = tuple[str, str | None]
#: The counts that are the same on each line of an answer.
_SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Place(NamedTuple):
    """The message that a line is, and its parent for `SourceMessage`.

    ``joins`` is the number of the answer's first line if this one is a further one,
    ``answer`` the answer that a result is to, ``kept`` the first message that the
    compaction of a summary keeps, ``response`` the provider's id of an answer.
    """

    name: str
    parent: Any
    joins: int | None = None
    answer: str | None = None
    kept: str | None = None
    response: str | None = None


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
        self._links = Links("parentUuid")
        #: The messages by the uuids of their lines.
        self._ids = self._links.ids
        #: The answers by these keys of their lines, and by the calls in them.
        self._open: dict[_Key | None, _Answer] = {}
        self._calls: dict[str, _Answer] = {}
        #: The answers by their own messages, and by those with their results.
        self._answers: dict[str, _Answer] = {}
        self._prompts = 0
        #: The first line that the last compaction keeps, and the last one.
        self._segment: tuple[str, str] | None = None

    def place(self, record: Record, number: int) -> Place:
        """Return the place of the next line."""
        key = _key(record)
        answer = self._open.get(key)
        own = as_string(record.get("uuid"))
        if answer and own not in self._ids and self._continues(answer, record):
            self._ids[own or answer.name] = answer.name
            self._called(answer, record)
            return Place(answer.name, None, answer.number)

        # Before it has a name: no line is its own parent.
        parent = self._parent(record)
        name = self._name(record, own)
        if key is not None:
            found = _Answer(name, number, _sent(record), self._prompts)
            self._open[key] = self._answers[name] = found
            self._called(found, record)
            return Place(name, parent, response=key[0])

        if record.get("type") == "user":
            return self._asked(record, name, parent)

        # A prompt that was typed while the model worked.
        self._prompts += fields.is_queued(record)
        return Place(name, parent)

    def end_of(self, uuid: str | None) -> str | None:
        """Return the message of a line, or the last result of its answer."""
        return self._last(self._known(uuid)) or None

    def _asked(self, record: Record, name: str, parent: Any) -> Place:
        """Return the place of a line with results, a summary or a prompt."""
        calls = calls_answered(record)
        answer = next(filter(None, map(self._calls.get, calls)), None)

        if answer is not None:
            parent = self._after_results(answer, name, parent, calls)
            return Place(name, parent, answer=answer.name)

        if not calls and record.get("isMeta") is not True:
            self._prompts += 1
        return Place(name, parent, kept=self._kept(record, name))

    def _called(self, answer: _Answer, record: Record) -> None:
        named = (block.get("id") for block in fields.blocks_of(record))
        self._calls.update(dict.fromkeys(filter(text, named), answer))

    def _continues(self, answer: _Answer, record: Record) -> bool:
        """Return whether a line is one more of an answer with the same id.

        Some gateways give all answers one id: without a request, the line must follow
        one of the answer, or be sent the same and nothing asked since.
        """
        above = self._known(record.get("parentUuid"))
        if _request(record) is not None or above == answer.name:
            return True

        return (answer.sent, answer.prompts) == (_sent(record), self._prompts)

    def _name(self, record: Record, own: str) -> str:
        if own in self._ids or not usable_id(own):
            name = self._links.made(record)
        else:
            name = own

        self._ids.setdefault(own or name, name)
        return name

    def _parent(self, record: Record) -> Any:
        """Return the parent of a line: of one beside the chain, the one before it."""
        above = record.get("parentUuid", ...)
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
        if as_string(record.get("uuid")) not in self._summarised:
            return None

        return self._message_at(record.get("logicalParentUuid")) or None

    def _known(self, uuid: Any) -> str:
        """Return the message of a line; "" for none."""
        return self._ids.get(as_string(uuid), "")

    def _message_at(self, uuid: Any) -> str:
        """Return the message of a line, for results the last one of their answer."""
        known = self._known(uuid)
        is_answer = known in self._answers and self._answers[known].name == known
        return known if is_answer else self._last(known)

    def _preserved(self, record: Record) -> tuple[str, str] | None:
        """Return the ends of what a boundary keeps; the program puts it after it."""
        held = record.get("compactMetadata")
        segment = as_object(within(held, "preservedSegment"))
        ends = [segment.get("headUuid"), segment.get("tailUuid")]
        uuids = as_list(within(held, "preservedMessages", "uuids")) or ends

        first, last = str(uuids[0]), str(uuids[-1])
        return (first, last) if {first, last} <= self._ids.keys() else None

    def _kept(self, record: Record, name: str) -> str | None:
        if record.get("isCompactSummary") is not True or self._segment is None:
            return None

        first, last = self._segment
        found, self._segment = self._ids[first], None
        # The line after the last one that was kept follows the summary here.
        self._ids[last] = name
        return found

    def _last(self, name: str) -> str:
        """Return the last result of the answer that a message is part of, or itself."""
        answer = self._answers.get(name)
        return (answer and answer.last_result) or name

    def _after_results(
        self, answer: _Answer, name: str, parent: Any, calls: set[str]
    ) -> Any:
        """Return the parent of a result: the one before it to the same answer."""
        # A second result of one call is on a branch of its own.
        if calls & answer.answered:
            return parent

        after = answer.last_result or parent
        answer.answered |= calls
        answer.last_result = name
        self._answers[name] = answer
        return after


def calls_answered(record: Record) -> set[str]:
    """Return the ids of the calls whose results a line of the user has."""
    blocks = filter(_is_result, fields.blocks_of(record))
    return {as_string(block.get("tool_use_id")) for block in blocks}


def _is_result(block: Record) -> bool:
    return block.get("type") == "tool_result"


def _key(record: Record) -> _Key | None:
    """Return what is the same on each line of an answer; None for any other line."""
    if record.get("type") != "assistant" or "other_lines" in record:
        return None

    name = within(record, "message", "id")
    return (name, _request(record)) if clean_name(name) else None


def _request(record: Record) -> str | None:
    named = map(as_text, (record.get("requestId"), record.get("requestRef")))
    return next(filter(None, named), None)


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

    #: The prompt or answer at or above each line, and the order of the lines.
    _near: dict[str, str | None] = field(default_factory=dict)
    _order: dict[str | None, int] = field(default_factory=dict)
    _hidden: set[str | None] = field(default_factory=set)
    _followed: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Look at the next line that is a link of the chain."""
        own = as_text(record.get("uuid"))
        if own is None or own in self._order:
            return

        above = as_string(record.get("parentUuid"))
        self._order[own] = len(self._order)
        self._followed.add(above)
        is_said = record["type"] in fields.SAID
        self._near[own] = own if is_said else self._near.get(above)
        if any(map(record.get, _HIDING)):
            self._hidden.add(own)

    @property
    def uuid(self) -> str | None:
        """The uuid of that line; None without a prompt or an answer."""
        ends = self._near.keys() - self._followed
        leaves = set(map(self._near.__getitem__, ends)) - {None}
        shown = leaves - self._hidden
        return max(shown or leaves, key=self._order.__getitem__, default=None)
