"""The lines of a transcript as messages: which are one, and which one each follows.

An answer has a line for each block, all with the same ``message.id``; other lines may
be between them, since results come while it is still being written. Each result names
the line of its call, so that the chain of ``parentUuid`` passes all of them but one:
here they follow one another. A line whose parent is not in the file follows the one
before it, and one that begins a chain follows nothing. The boundary of a compaction
follows the conversation before it. The user may have the latest messages summed up:
those become a branch, and the summary follows the ones before it.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    listed,
    text,
    within,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.lines import Line
from sessiondb.formats.kit.links import Links

Record = dict[str, Any]
#: The keys that are the same on each line of an answer: its id, and the request's.
_Key: TypeAlias = tuple[str, str | None]
#: Releases before 1.0.86 gave new uuids to the lines that they copied.
_RENAMING = re.compile(r"0\.|1\.0\.(?:[0-7]?\d|8[0-5])(?!\d)")
#: The counts that are the same on each line of an answer.
_SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Joined(NamedTuple):
    """A further line of an answer, and the number of records since its first one."""

    after: int
    line: Line


@dataclass(slots=True, eq=False)
class Place:
    """A message: its first line, and its parent for `SourceMessage`.

    ``number`` is that of its record among those of the session, from 0. ``usage`` is an
    id that all copies of the message have, if that is not its uuid. ``result_of`` is
    the message that a result is to, ``kept`` the first one that the compaction of a
    summary keeps, if they follow it; ``is_of_branch`` is whether they precede it.
    ``further`` are the other lines of an answer.
    """

    line: Line
    number: int
    name: str
    parent: Any
    usage: str | None = None
    result_of: str | None = None
    kept: str | None = None
    is_of_branch: bool = False
    further: Sequence[Joined] = ()


@dataclass(slots=True, eq=False)
class Answer(Place):
    """An answer, and the results that follow it."""

    sent: tuple[Any, ...] = ()
    prompts: int = 0
    further: list[Joined] = field(default_factory=list)
    last_result: str | None = None
    answered: set[str] = field(default_factory=set)


class _Segment(NamedTuple):
    """The first and last line that a compaction keeps, before or after its summary."""

    first: str
    last: str
    is_before: bool


class _Said(NamedTuple):
    """A line of the user: a digest of its text, and whether the user typed it."""

    place: Place
    digest: str
    is_typed: bool


class Tree:
    """The messages of one transcript, line by line in their order.

    ``places`` are the messages, and ``count`` is the number of records.
    """

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.count = 0
        self._links = Links("parentUuid")
        #: The messages by the uuids of their lines.
        self._ids = self._links.ids
        #: The answers by these keys of their lines, and by the calls in them.
        self._open: dict[_Key, Answer] = {}
        self._calls: dict[str, Answer] = {}
        #: The usage ids of answers, and of prompts whose copies have other uuids.
        self._responses: set[str] = set()
        #: The answers by their own messages, and by those with their results.
        self._answers: dict[str, Answer] = {}
        #: Of lines of the user whose copies have other uuids: the answer before each,
        #: and those since the last answer.
        self._after: dict[str, str | None] = {}
        self._said: list[_Said] = []
        #: The number of prompts.
        self._prompts = 0
        #: The lines that begin a chain, with what each follows if it is summed up.
        self._cuts: dict[str, tuple[Place, str]] = {}
        #: The messages that the last compaction keeps.
        self._segment: _Segment | None = None

    def add(self, record: Record, line: Line) -> None:
        """Add the next line: a message, or a further line of an answer."""
        number, self.count = self.count, self.count + 1
        key = _key(record)
        own = as_string(record.get("uuid"))
        if key is not None and self._joins(key, own, number, line, record):
            return

        # Before it has a name: no line is its own parent.
        parent = self._parent(record)
        before = parent is None and self._message_at(record.get("logicalParentUuid"))
        is_new = own not in self._ids
        known = line, number, self._name(record, own), parent

        if key is not None:
            # An id that a gateway gives several answers is that of the first one.
            is_own = not is_new or key[0] not in self._responses
            self._add_answer(Answer(*known, key[0] if is_own else None), key, record)
            return

        place = Place(*known)
        self.places.append(place)
        if before:
            self._cuts[own] = place, before
        if record.get("type") == "user":
            self._add_said(place, record)
        # A prompt that was typed while the model worked.
        self._prompts += fields.is_queued(record)

    def end_of(self, uuid: str | None) -> str | None:
        """Return the message of a line, or the last result of its answer."""
        return self._last(self._known(uuid)) or None

    # -- answers -------------------------------------------------------------------

    def _joins(
        self, key: _Key, own: str, number: int, line: Line, record: Record
    ) -> bool:
        """Add a line to the answer that it is a further one of, if there is one."""
        answer = self._open.get(key)
        if answer is None or own in self._ids or not self._continues(answer, record):
            return False

        self._ids[own or answer.name] = answer.name
        answer.further.append(Joined(number - answer.number, line))
        self._called(answer, record)
        return True

    def _continues(self, answer: Answer, record: Record) -> bool:
        """Return whether a line is one more of an answer with the same id.

        Some gateways give all answers one id: without a request, the line must follow
        one of the answer, or be sent the same and nothing asked since.
        """
        above = self._known(record.get("parentUuid"))
        if _request(record) is not None or above == answer.name:
            return True

        return (answer.sent, answer.prompts) == (_sent(record), self._prompts)

    def _add_answer(self, answer: Answer, key: _Key, record: Record) -> None:
        answer.sent, answer.prompts = _sent(record), self._prompts
        self.places.append(answer)
        self._open[key] = self._answers[answer.name] = answer
        self._called(answer, record)

        self._responses.add(key[0])
        self._name_answered(answer, key[0])

    def _called(self, answer: Answer, record: Record) -> None:
        named = (block.get("id") for block in fields.blocks_of(record))
        self._calls.update(dict.fromkeys(filter(text, named), answer))

    # -- lines of the user -------------------------------------------------------------

    def _add_said(self, place: Place, record: Record) -> None:
        """Add a line with results, a summary or a prompt."""
        calls = calls_answered(record)
        answer = next(filter(None, map(self._calls.get, calls)), None)
        if answer is not None:
            self._add_result(place, answer, calls, record)
            return

        if not calls and record.get("isMeta") is not True:
            self._prompts += 1
        if _loses_uuid(record):
            self._name_said(_Said(place, *_text_said(record)))
        if record.get("isCompactSummary") is True:
            self._add_summary(place, record)

    def _name_said(self, said: _Said) -> None:
        """Name a line by the answer before it, until there is one to it."""
        place = said.place
        answer = self._answers.get(place.parent)
        before = answer.usage if answer else self._after.get(place.parent)
        self._after[place.name] = before

        self._said.append(said)
        if before is not None:
            self._use(place, f"{said.digest} {before}")

    def _name_answered(self, answer: Answer, response: str) -> None:
        """Name the prompt of an answer by it, with what was added to the prompt."""
        above, is_found = answer.parent, False
        for place, digest, is_typed in reversed(self._said):
            if place.name != above or (is_typed and is_found):
                continue
            self._use(place, f"{response} {digest}")
            above, is_found = place.parent, is_found or is_typed

        self._said.clear()

    def _use(self, place: Place, usage: str) -> None:
        """Give a line its usage id; the same text on another branch is not a copy."""
        if usage not in self._responses:
            self._responses.add(usage)
            place.usage = usage

    def _add_result(
        self, place: Place, answer: Answer, calls: set[str], record: Record
    ) -> None:
        """Let a result follow the one before it to the same answer."""
        place.result_of = answer.name
        # A second result of one call is on a branch of its own.
        if calls & answer.answered:
            return

        if answer.usage is not None and _loses_uuid(record):
            place.usage = f"{answer.usage} {min(calls)!a}"
        place.parent = answer.last_result or place.parent
        answer.answered |= calls
        answer.last_result = place.name
        self._answers[place.name] = answer

    def _add_summary(self, place: Place, record: Record) -> None:
        """Join both sides of a compaction: its boundary cuts the chain of uuids.

        The boundary follows its logical parent, so that the path is the complete
        conversation; one without a summary cuts the path, too. The line after the last
        one that was kept follows the summary.
        """
        cut, before = self._cuts.pop(as_string(record.get("parentUuid")), (place, ""))
        cut.parent = before or cut.parent

        segment, self._segment = self._segment, None
        if segment is None:
            return
        place.is_of_branch = segment.is_before
        if not segment.is_before:
            place.kept = self._ids[segment.first]
            self._ids[segment.last] = place.name

    # -- links -------------------------------------------------------------------

    def _name(self, record: Record, own: str) -> str:
        if own in self._ids or not usable_id(own):
            name = self._links.made(record)
        else:
            name = own

        self._ids.setdefault(own or name, name)
        return name

    def _parent(self, record: Record) -> Any:
        """Return the parent of a line: of one beside the chain, the one before it.

        A boundary follows the last message that its compaction keeps, since the program
        puts the summary before those.
        """
        above = record.get("parentUuid", ...)
        if above is not None:
            return self._message_at(above) or ...

        self._segment = segment = self._preserved(record)
        return None if segment is None else self._ids[segment.last]

    def _known(self, uuid: Any) -> str:
        """Return the message of a line; "" for none."""
        return self._ids.get(as_string(uuid), "")

    def _message_at(self, uuid: Any) -> str:
        """Return the message of a line, for results the last one of their answer."""
        known = self._known(uuid)
        is_answer = known in self._answers and self._answers[known].name == known
        return known if is_answer else self._last(known)

    def _last(self, name: str) -> str:
        """Return the last result of the answer that a message is part of, or itself."""
        answer = self._answers.get(name)
        return (answer and answer.last_result) or name

    def _preserved(self, record: Record) -> _Segment | None:
        """Return what the compaction of a boundary keeps."""
        held = record.get("compactMetadata")
        stated = (within(held, f"preserved{name}") for name in ("Segment", "Messages"))
        kept = dict(ChainMap(*map(as_object, stated)))
        ends = [kept.get("headUuid"), kept.get("tailUuid")]
        uuids = as_list(kept.get("uuids")) or ends

        first, last = str(uuids[0]), str(uuids[-1])
        is_before = kept.get("anchorUuid") == record.get("uuid")
        is_known = {first, last} <= self._ids.keys()
        return _Segment(first, last, is_before) if is_known else None


def _loses_uuid(record: Record) -> bool:
    """Return whether a release wrote a line that gave its copies new uuids."""
    return _RENAMING.match(as_string(record.get("version"))) is not None


def _text_said(record: Record) -> tuple[str, bool]:
    """Return a digest of the text of a prompt, and whether the user typed it.

    A copy may have the text in a block.
    """
    content = within(record, "message", "content")
    blocks = (item if text(item) else within(item, "text") for item in listed(content))
    said = "\n".join(filter(text, blocks))
    digest = sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return digest, not (fields.is_added(record) or fields.is_injected(said))


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


class Leaf:
    """The line that the session continues from, as the program finds it.

    A line that no other one follows is walked back to a prompt or an answer; of those,
    the latest counts that is not beside the conversation.
    """

    def __init__(self) -> None:
        #: The prompt or answer at or above each line, in the order of the lines.
        self._near: dict[str | None, str | None] = {None: None}
        self._hidden: set[str | None] = set()
        self._followed: set[str | None] = {None}

    def add(self, record: Record) -> None:
        """Look at the next line that is a link of the chain."""
        own = as_text(record.get("uuid"))
        if own in self._near:
            return

        above = as_text(record.get("parentUuid"))
        self._followed.add(above)
        is_said = record["type"] in fields.SAID
        self._near[own] = own if is_said else self._near.get(above)
        if any(map(record.get, _HIDING)):
            self._hidden.add(own)

    @property
    def uuid(self) -> str | None:
        """The uuid of that line; None without a prompt or an answer."""
        ends = self._near.keys() - self._followed
        leaves = set(map(self._near.__getitem__, ends))
        shown = leaves - self._hidden - {None}
        return next(filter((shown or leaves).__contains__, reversed(self._near)), None)
