"""The message that each entry follows, and the tokens that it adds.

An entry names its parent, but the entries of one answer and the results of its calls
are a chain with side branches there: each result names the entry of its call. Here they
follow one another, as in an import, so that the live path has all of them. An answer
states its usage on each of its entries, and it is counted once.

Memory holds the newest entries. An older one is known to the database, and continued
from like any other; only the rest of its answer is not known any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from sessiondb.adapters.claude_agent.entries import name_of_uuid
from sessiondb.dataclass import dataclass, field
from sessiondb.formats.claude import fields
from sessiondb.formats.claude.tree import (
    AnswerKey,
    KeptSegment,
    MessagePlace,
    answer_key,
    calls_answered,
    input_counts,
    kept_segment,
)
from sessiondb.formats.kit.fields import as_list, as_object, value_at
from sessiondb.formats.kit.lines import Line
from sessiondb.formats.providers.anthropic.fields import tokens_of
from sessiondb.model import Tokens

#: Entries that are remembered of a session, and that are read to continue it.
REMEMBERED, REREAD = 5000, 64
_NO_LINE = Line(0, 0)


@dataclass(slots=True, eq=False)
class AnswerEntries:
    """The entries of an answer, and the results of its calls."""

    key: AnswerKey
    input_counts: tuple[str, ...]
    #: The number of prompts before it.
    prompt_count: int
    #: The newest of its entries and results.
    tail: str
    #: Its entries, without the results.
    names: set[str]
    #: Its calls, and those of them that have a result.
    calls: set[str] = field(default_factory=set)
    answered_calls: set[str] = field(default_factory=set)
    #: The usage that its entries have stated so far.
    tokens: Tokens = Tokens()

    def count(self, usage: Tokens | None) -> Tokens | None:
        """Return the part of the usage of its next entry that was not stated before."""
        if usage is None:
            return None
        further: list[int | None] = []
        total: list[int | None] = []
        pairs = zip(usage.columns(), self.tokens.columns(), strict=True)
        for count, counted in pairs:
            is_more = count is not None and (counted is None or count > counted)
            further.append((count or 0) - (counted or 0) if is_more else None)
            total.append(count if is_more else counted)
        self.tokens = Tokens(*total)
        tokens = Tokens(*further)
        return tokens if tokens.known else None


class LinkedEntry(NamedTuple):
    """An entry as a message: its place, and what it states of an answer."""

    place: MessagePlace
    #: The usage that no earlier entry of its answer stated.
    tokens: Tokens | None = None
    #: Whether an earlier entry is of the same answer.
    is_further: bool = False


class EntryLinks:
    """The newest entries of a transcript, and what the next ones are linked to."""

    def __init__(self) -> None:
        #: Whether all entries are remembered.
        self.is_complete = True
        #: The messages that are known, the newest last, each with the one that is
        #: continued from in its place.
        self._names: OrderedDict[str, str] = OrderedDict()
        #: The answers by their entries and results.
        self._answers: dict[str, AnswerEntries] = {}
        self._answers_by_key: dict[AnswerKey, AnswerEntries] = {}
        self._answers_by_call: dict[str, AnswerEntries] = {}
        self._prompt_count = 0
        #: What the last compaction keeps.
        self._segment: KeptSegment | None = None
        #: The newest message.
        self.last: str | None = None
        #: The newest prompt, answer or result, and one that is not of a sidechain.
        self._newest_said: str | None = None
        self._newest_shown: str | None = None

    @property
    def end(self) -> str | None:
        """The message where the conversation continues; None without any."""
        return self._newest_shown or self._newest_said

    def unknown(self, names: Collection[str]) -> list[str]:
        """Return those of some messages that are not remembered."""
        return [name for name in names if name not in self._names]

    def remember(self, names: Collection[str]) -> None:
        """Remember messages that the database has, so that entries may follow them."""
        for name in names:
            self._names[name] = name

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, entry: Mapping[str, Any], name: str) -> LinkedEntry:
        """Add the next entry, whose message will have the id *name*."""
        record: dict[str, Any] = dict(entry)
        place = MessagePlace(_NO_LINE, 0, name, self._parent_of(record))
        linked = LinkedEntry(place)
        match record.get("type"):
            case "assistant":
                linked = self._add_entry_of_answer(place, record)
            case "user":
                self._add_entry_of_user(place, record)
            case "attachment" if fields.is_queued(record):
                self._prompt_count += 1

        self._names[name] = name
        self.last = name
        if record.get("type") in ("user", "assistant"):
            self._add_said(place, record)
        self._forget_oldest()
        return linked

    # -- answers ---------------------------------------------------------------------

    def _add_entry_of_answer(
        self, place: MessagePlace, record: dict[str, Any]
    ) -> LinkedEntry:
        key, usage = answer_key(record), _tokens_in(record)
        if key is None:
            return LinkedEntry(place, usage)

        answer = self._answers_by_key.get(key)
        is_further = answer is not None and self._is_of_answer(answer, place, record)
        if answer is None or not is_further:
            counts = input_counts(record)
            answer = AnswerEntries(key, counts, self._prompt_count, place.name, set())
            self._answers_by_key[key] = answer
        elif self._answers.get(place.parent) is answer:
            place.parent = answer.tail

        answer.tail = place.name
        answer.names.add(place.name)
        self._answers[place.name] = answer
        for block in fields.blocks_of(record):
            if isinstance(block.get("id"), str):
                answer.calls.add(block["id"])
                self._answers_by_call[block["id"]] = answer
        return LinkedEntry(place, answer.count(usage), is_further)

    def _is_of_answer(
        self, answer: AnswerEntries, place: MessagePlace, record: dict[str, Any]
    ) -> bool:
        """Return whether an entry is one more of an answer with the same ids.

        Some gateways give all answers one id, see `formats.claude.tree`.
        """
        if answer.key.request is not None or place.parent in answer.names:
            return True
        is_same_input = answer.input_counts == input_counts(record)
        return is_same_input and answer.prompt_count == self._prompt_count

    # -- entries of the user -----------------------------------------------------------

    def _add_entry_of_user(self, place: MessagePlace, record: dict[str, Any]) -> None:
        calls = calls_answered(record)
        for call in calls:
            answer = self._answers_by_call.get(call)
            # A second result of one call is on a branch of its own.
            if answer is not None and answer.answered_calls.isdisjoint(calls):
                if self._answers.get(place.parent, answer) is answer:
                    place.parent = answer.tail
                answer.tail = place.name
                answer.answered_calls.update(calls)
                self._answers[place.name] = answer
                return

        if not calls and record.get("isMeta") is not True:
            self._prompt_count += 1
        if record.get("isCompactSummary") is True:
            self._add_summary(place)

    def _add_summary(self, place: MessagePlace) -> None:
        """Let the entry after those that a compaction keeps follow its summary."""
        segment, self._segment = self._segment, None
        if segment is None:
            return
        if segment.is_before:
            place.is_of_branch = True
        else:
            place.first_kept = name_of_uuid(segment.first)
            self._names[name_of_uuid(segment.last)] = place.name

    # -- links -------------------------------------------------------------------------

    def _parent_of(self, record: dict[str, Any]) -> str | None:
        """Return the message that an entry follows; without a parent the one before."""
        parent_uuid = record.get("parentUuid", ...)
        if parent_uuid is not None:
            if not isinstance(parent_uuid, str):
                return self.last
            return self._message_of(parent_uuid) or self.last

        self._segment = kept_segment(record, self)
        if self._segment is not None:
            return self._message_of(self._segment.last)
        logical_uuid = record.get("logicalParentUuid")
        return self._message_of(logical_uuid) if isinstance(logical_uuid, str) else None

    def _message_of(self, uuid: str) -> str | None:
        """Return the message to continue from in the place of one; None if unknown."""
        name = self._names.get(name_of_uuid(uuid))
        answer = self._answers.get(name or "")
        if answer is None or name in answer.names:
            return name
        return answer.tail

    def _add_said(self, place: MessagePlace, record: dict[str, Any]) -> None:
        answer = self._answers.get(place.name)
        self._newest_said = place.name if answer is None else answer.tail
        if not record.get("isSidechain") and not record.get("teamName"):
            self._newest_shown = self._newest_said

    def _forget_oldest(self) -> None:
        while len(self._names) > REMEMBERED:
            name, _ = self._names.popitem(last=False)
            self.is_complete = False
            answer = self._answers.pop(name, None)
            if answer is None or name != answer.tail:
                continue
            if self._answers_by_key.get(answer.key) is answer:
                del self._answers_by_key[answer.key]
            for call in answer.calls:
                if self._answers_by_call.get(call) is answer:
                    del self._answers_by_call[call]


def referred_uuids(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the uuids of other entries by which an entry is linked."""
    segments = [
        as_object(value_at(entry.get("compactMetadata"), key))
        for key in ("preservedMessages", "preservedSegment")
    ]
    uuids = [entry.get("parentUuid"), entry.get("logicalParentUuid")]
    for segment in segments:
        uuids += [segment.get("headUuid"), segment.get("tailUuid")]
        line_uuids = as_list(segment.get("uuids"))
        uuids += [*line_uuids[:1], *line_uuids[-1:]]
    for uuid in uuids:
        if isinstance(uuid, str):
            yield uuid


def _tokens_in(record: dict[str, Any]) -> Tokens | None:
    """Return the usage that an entry of an answer states."""
    # An answer of the program itself states zeros, which no provider counted.
    if value_at(record, "message", "model") == fields.SYNTHETIC:
        return None
    return tokens_of(as_object(value_at(record, "message", "usage")))
