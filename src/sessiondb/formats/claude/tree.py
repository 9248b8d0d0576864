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

from collections.abc import Container, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    list_or_item,
    text,
    value_at,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.lines import Line
from sessiondb.formats.kit.links import Links
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: Releases before 1.0.86 gave new uuids to the lines that they copied.
_RENAMING = late_pattern(r"0\.|1\.0\.(?:[0-7]?\d|8[0-5])(?!\d)")
#: The counts that are the same on each line of an answer.
_INPUT_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class FurtherLine(NamedTuple):
    """A further line of an answer."""

    #: The number of records since the first line of the answer.
    distance: int
    line: Line


@dataclass(slots=True, eq=False)
class MessagePlace:
    """A message: its lines, and what it is linked to."""

    #: Its first line.
    line: Line
    #: The number of that line's record among those of the session, from 0.
    number: int
    #: Its id.
    name: str
    #: Its parent for `SourceMessage`.
    parent: Any
    #: An id that all copies of the message have, if that is not its uuid.
    usage: str | None = None
    #: The message of the answer that a result is to.
    result_of: str | None = None
    #: The first message that the compaction of a summary keeps, if they follow it.
    first_kept: str | None = None
    #: Whether the messages that the compaction keeps precede its summary.
    is_of_branch: bool = False
    #: The other lines of an answer.
    further: Sequence[FurtherLine] = ()


@dataclass(slots=True, eq=False)
class AnswerPlace(MessagePlace):
    """An answer, and the results that follow it."""

    further: list[FurtherLine] = field(default_factory=list)
    #: The counts of its input, as they are stated.
    input_counts: tuple[str, ...] = ()
    #: The number of prompts before it.
    prompt_count: int = 0
    #: The calls that have a result.
    answered_calls: set[str] = field(default_factory=set)
    #: The message of its last result.
    last_result: str | None = None


class AnswerKey(NamedTuple):
    """The ids that are the same on each line of an answer."""

    response: str
    request: str | None


class KeptSegment(NamedTuple):
    """The lines that a compaction keeps, before or after its summary."""

    first: str
    last: str
    is_before: bool


class _UserLine(NamedTuple):
    """A line of the user: a digest of its text, and whether the user typed it."""

    place: MessagePlace
    digest: str
    is_typed: bool


class ClaudeTree:
    """The messages of one transcript, line by line in their order.

    ``places`` are the messages, and ``count`` is the number of records.
    """

    def __init__(self) -> None:
        self.places: list[MessagePlace] = []
        self.count = 0
        self._links = Links("parentUuid")
        #: The messages by the uuids of their lines.
        self._ids = self._links.ids
        self._answers_by_key: dict[AnswerKey, AnswerPlace] = {}
        self._answers_by_call: dict[str, AnswerPlace] = {}
        #: The answers by their own messages, and by those with their results.
        self._answers: dict[str, AnswerPlace] = {}
        #: The usage ids of answers, and of prompts whose copies have other uuids.
        self._usage_ids: set[str] = set()
        #: Of lines of the user whose copies have other uuids: the usage id of the
        #: answer before each, and the lines since the last answer.
        self._usage_before: dict[str, str | None] = {}
        self._unanswered: list[_UserLine] = []
        self._prompt_count = 0
        #: The lines that begin a chain, with what each follows if it is summed up.
        self._boundaries: dict[str, tuple[MessagePlace, str]] = {}
        #: The messages that the last compaction keeps.
        self._segment: KeptSegment | None = None

    def add(self, record: Record, line: Line) -> None:
        """Add the next line: a message, or a further line of an answer."""
        number = self.count
        self.count += 1
        key = answer_key(record)
        uuid = as_string(record.get("uuid"))
        if key is not None:
            answer = self._answers_by_key.get(key)
            if answer is not None and self._is_further_line(answer, uuid, record):
                self._ids[uuid or answer.name] = answer.name
                answer.further.append(FurtherLine(number - answer.number, line))
                self._add_calls(answer, record)
                return

        # Before it has a name: no line is its own parent.
        parent = self._resolve_parent(record)
        logical_parent = ""
        if parent is None:
            logical_parent = self._message_at(record.get("logicalParentUuid"))
        is_repeated = uuid in self._ids
        name = self._name_line(record, uuid)

        if key is not None:
            # An id that a gateway gives several answers is that of the first one.
            is_taken = key.response in self._usage_ids and not is_repeated
            usage = None if is_taken else key.response
            self._add_answer(
                AnswerPlace(line, number, name, parent, usage), key, record
            )
            return

        place = MessagePlace(line, number, name, parent)
        self.places.append(place)
        if logical_parent:
            self._boundaries[uuid] = place, logical_parent
        if record.get("type") == "user":
            self._add_user_line(place, record)
        # A prompt that was typed while the model worked.
        if fields.is_queued(record):
            self._prompt_count += 1

    def end_of(self, uuid: str | None) -> str | None:
        """Return the message of a line, or the last result of its answer."""
        name = self._message_of_line(uuid)
        answer = self._answers.get(name)
        if answer is not None and answer.last_result:
            return answer.last_result
        return name or None

    # -- answers -------------------------------------------------------------------

    def _is_further_line(self, answer: AnswerPlace, uuid: str, record: Record) -> bool:
        """Return whether a line is one more of an answer with the same ids.

        Some gateways give all answers one id: without a request, the line must follow
        one of the answer, or have the same input and no prompt since.
        """
        if uuid in self._ids:
            return False
        if _request_of(record) is not None:
            return True
        if self._message_of_line(record.get("parentUuid")) == answer.name:
            return True
        is_same_input = answer.input_counts == input_counts(record)
        return is_same_input and answer.prompt_count == self._prompt_count

    def _add_answer(self, answer: AnswerPlace, key: AnswerKey, record: Record) -> None:
        answer.input_counts = input_counts(record)
        answer.prompt_count = self._prompt_count
        self.places.append(answer)
        self._answers_by_key[key] = answer
        self._answers[answer.name] = answer
        self._add_calls(answer, record)

        self._usage_ids.add(key.response)
        self._identify_prompt(answer, key.response)

    def _add_calls(self, answer: AnswerPlace, record: Record) -> None:
        for block in fields.blocks_of(record):
            call = block.get("id")
            if text(call):
                self._answers_by_call[call] = answer

    # -- lines of the user -------------------------------------------------------------

    def _add_user_line(self, place: MessagePlace, record: Record) -> None:
        """Add a line with results, a summary or a prompt."""
        calls = calls_answered(record)
        for call in calls:
            answer = self._answers_by_call.get(call)
            if answer is not None:
                self._add_result(place, answer, calls, record)
                return

        if not calls and record.get("isMeta") is not True:
            self._prompt_count += 1
        if _loses_uuid(record):
            self._identify_by_answer_before(_user_line(place, record))
        if record.get("isCompactSummary") is True:
            self._add_summary(place, record)

    def _identify_by_answer_before(self, line: _UserLine) -> None:
        """Identify a line by the answer before it, until there is one to it."""
        place = line.place
        answer = self._answers.get(place.parent)
        if answer is not None:
            usage = answer.usage
        else:
            usage = self._usage_before.get(place.parent)

        self._usage_before[place.name] = usage
        self._unanswered.append(line)
        if usage is not None:
            self._set_usage(place, f"{line.digest} {usage}")

    def _identify_prompt(self, answer: AnswerPlace, response: str) -> None:
        """Identify the prompt of an answer by it, with what was added to the prompt."""
        name = answer.parent
        has_prompt = False
        for place, digest, is_typed in reversed(self._unanswered):
            if place.name != name or (is_typed and has_prompt):
                continue
            self._set_usage(place, f"{response} {digest}")
            name = place.parent
            if is_typed:
                has_prompt = True

        self._unanswered.clear()

    def _set_usage(self, place: MessagePlace, usage: str) -> None:
        """Give a line its usage id; the same text on another branch is not a copy."""
        if usage not in self._usage_ids:
            self._usage_ids.add(usage)
            place.usage = usage

    def _add_result(
        self, place: MessagePlace, answer: AnswerPlace, calls: list[str], record: Record
    ) -> None:
        """Let a result follow the one before it to the same answer."""
        place.result_of = answer.name
        # A second result of one call is on a branch of its own.
        if not answer.answered_calls.isdisjoint(calls):
            return

        if answer.usage is not None and _loses_uuid(record):
            place.usage = f"{answer.usage} {min(calls)!a}"
        if answer.last_result is not None:
            place.parent = answer.last_result
        answer.answered_calls.update(calls)
        answer.last_result = place.name
        self._answers[place.name] = answer

    def _add_summary(self, place: MessagePlace, record: Record) -> None:
        """Join both sides of a compaction: its boundary cuts the chain of uuids.

        The boundary follows its logical parent, so that the path is the complete
        conversation; one without a summary cuts the path, too. The line after the last
        one that was kept follows the summary.
        """
        parent_uuid = as_string(record.get("parentUuid"))
        if parent_uuid in self._boundaries:
            boundary, logical_parent = self._boundaries.pop(parent_uuid)
            boundary.parent = logical_parent

        segment, self._segment = self._segment, None
        if segment is None:
            return
        if segment.is_before:
            place.is_of_branch = True
        else:
            place.first_kept = self._ids[segment.first]
            self._ids[segment.last] = place.name

    # -- links -------------------------------------------------------------------

    def _name_line(self, record: Record, uuid: str) -> str:
        """Return the id of a new message: its uuid, unless that is taken or odd."""
        if uuid in self._ids or not usable_id(uuid):
            name = self._links.make_id(record)
        else:
            name = uuid

        self._ids.setdefault(uuid or name, name)
        return name

    def _resolve_parent(self, record: Record) -> Any:
        """Return the parent of a line: of one beside the chain, the one before it.

        A boundary follows the last message that its compaction keeps, since the program
        puts the summary before those.
        """
        parent_uuid = record.get("parentUuid", ...)
        if parent_uuid is not None:
            return self._message_at(parent_uuid) or ...

        self._segment = kept_segment(record, self._ids)
        return None if self._segment is None else self._ids[self._segment.last]

    def _message_of_line(self, uuid: Any) -> str:
        """Return the message of a line; "" if it is not known."""
        return self._ids.get(as_string(uuid), "")

    def _message_at(self, uuid: Any) -> str:
        """Return the message of a line, for results the last one of their answer."""
        name = self._message_of_line(uuid)
        answer = self._answers.get(name)
        if answer is None or answer.name == name:
            return name
        return answer.last_result or name


def kept_segment(record: Record, uuids: Container[str]) -> KeptSegment | None:
    """Return the lines that the compaction of a boundary keeps.

    None if there are none, or if their ends are not among *uuids*.
    """
    metadata = record.get("compactMetadata")
    kept = {
        **as_object(value_at(metadata, "preservedMessages")),
        **as_object(value_at(metadata, "preservedSegment")),
    }
    ends = [kept.get("headUuid"), kept.get("tailUuid")]
    line_uuids = as_list(kept.get("uuids")) or ends
    first, last = str(line_uuids[0]), str(line_uuids[-1])
    if first not in uuids or last not in uuids:
        return None
    return KeptSegment(first, last, kept.get("anchorUuid") == record.get("uuid"))


def calls_answered(record: Record) -> list[str]:
    """Return the ids of the calls whose results a line of the user has."""
    return [
        as_string(block.get("tool_use_id"))
        for block in fields.blocks_of(record)
        if block.get("type") == "tool_result"
    ]


def _user_line(place: MessagePlace, record: Record) -> _UserLine:
    # A copy may have the text in a block.
    content = value_at(record, "message", "content")
    texts = [
        item if text(item) else value_at(item, "text") for item in list_or_item(content)
    ]
    prompt = "\n".join(item for item in texts if text(item))
    digest = sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    is_typed = not fields.is_added(record) and not fields.is_injected(prompt)
    return _UserLine(place, digest, is_typed)


def _loses_uuid(record: Record) -> bool:
    """Return whether a release wrote a line that gave its copies new uuids."""
    return _RENAMING.match(as_string(record.get("version"))) is not None


def answer_key(record: Record) -> AnswerKey | None:
    """Return the ids of the answer that a line is of; None for any other line."""
    if record.get("type") != "assistant" or "other_lines" in record:
        return None

    response = value_at(record, "message", "id")
    return AnswerKey(response, _request_of(record)) if clean_name(response) else None


def _request_of(record: Record) -> str | None:
    return as_text(record.get("requestId")) or as_text(record.get("requestRef")) or None


def input_counts(record: Record) -> tuple[str, ...]:
    """Return the counts of an answer that are the same on each of its lines."""
    usage = value_at(record, "message", "usage")
    return tuple(repr(value_at(usage, key)) for key in _INPUT_COUNTS)
