"""The sessions of ``logs.db``, each once, from cheap stamps of rows.

A conversation that was continued by a release of the newer generation is in both: its
thread then begins with a copy of the responses. Only these have their tokens and times,
so the copies are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    fitting,
    take_fields,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import fields
from sessiondb.formats.llm.database import NO_RESPONSES, LlmLogs, ResponseRows, Row
from sessiondb.formats.llm.responses import UnnamedCalls, response_messages
from sessiondb.formats.llm.threads import (
    ThreadStep,
    ThreadWalk,
    step_message,
    walk_thread,
)
from sessiondb.model import Problem, SourceMessage, SourceSession

SOURCE = "llm"
_IMPLIED = frozenset({"id", "tip_message_hash"})


@dataclass(slots=True)
class LlmHead:
    """The properties of a session in rows of its tables."""

    name: str
    #: Its row of ``conversations``.
    conversation: Row = field(default_factory=dict)
    #: Its row of ``threads``.
    thread: Row = field(default_factory=dict)
    responses: ResponseRows = NO_RESPONSES
    #: The values that change with its turns; see `LlmLogs.turn_facts`.
    turn_facts: list[Any] = field(default_factory=list)

    @property
    def parent(self) -> str | None:
        """The thread that this one was forked from."""
        parent: str | None = fitting(self.thread.get("forked_from"), usable_id)
        return parent

    @property
    def facts(self) -> list[Any]:
        """The values that change with it; the tip is a hash of the complete thread."""
        numbers = self.responses.numbers
        responses = [len(numbers), *numbers[-1:], self.responses.last_time]
        return [self.conversation, self.thread, responses, self.turn_facts]

    def known_times(self) -> list[int]:
        """Return the times of its creation and its answers, those that are known.

        A thread is created when its first answer is complete.
        """
        values = [
            self.responses.first_time,
            self.responses.last_time,
            *self.turn_facts[2:],
            self.thread.get("datetime_utc"),
        ]
        times = [time_in_utc(value) for value in values]
        return [time for time in times if time is not None]


def read_sessions(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file, originals first; raises `SourceError`."""
    logs = LlmLogs(path)
    with logs.reading():
        try:
            heads: dict[str, LlmHead] = {}
            for name, head in _read_heads(logs).items():
                if usable_id(name):
                    heads[name] = head
                else:
                    message = f"session {abridged(name)} has no usable id"
                    yield Problem(str(path), message)

            yield from _read_sessions(logs, heads)
        except Error as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


def _read_heads(logs: LlmLogs) -> dict[Any, LlmHead]:
    """Return the properties of each session by its name, which may be unusable."""
    heads: dict[Any, LlmHead] = {}

    def head_of(name: Any) -> LlmHead:
        return heads.setdefault(name, LlmHead(name))

    if logs.has_responses:
        for row in logs.conversation_rows():
            head_of(row["id"]).conversation = row
        for name, responses in logs.responses_by_conversation():
            head_of(name).responses = responses
    if logs.has_threads:
        for row in logs.thread_rows():
            head_of(row["id"]).thread = row
        for name, turn_facts in logs.turn_facts():
            head_of(name).turn_facts = turn_facts

    return heads


def _read_sessions(
    logs: LlmLogs, heads: dict[str, LlmHead]
) -> Iterator[SourceSession | Problem]:
    size, time = file_stamp(logs.path) or (None, None)

    def read_session(name: str, cut: bool) -> list[SourceSession]:
        session = _session_of(logs, heads[name], is_cut=cut)
        return [replace(session, size=size, mtime_ns=time)]

    return in_order(
        heads, lambda name: heads[name].parent, read_session, lambda _: logs.path
    )


def _session_of(logs: LlmLogs, head: LlmHead, *, is_cut: bool) -> SourceSession:
    """Return the properties in the rows of a session."""
    row = {**head.thread, **without_none(head.conversation)}
    data = without_none(without_keys(_IMPLIED, row))
    columns = take_fields(data, fields.SESSION)
    if head.parent and not is_cut:
        columns.update(parent_source_id=data.pop("forked_from"), relation="fork")

    facts = json.dumps(head.facts, default=repr).encode()
    times = head.known_times()
    session = SourceSession(
        SOURCE,
        head.name,
        str(logs.path),
        hashlib.sha256(facts).hexdigest(),
        time_created=min(times, default=None),
        time_updated=max(times, default=None),
        data=data,
        **columns,
    )
    return replace(session, complete=partial(_complete_session, logs, session, head))


def _complete_session(
    logs: LlmLogs, session: SourceSession, head: LlmHead
) -> SourceSession:
    """Return a session with its messages and its live end; raises ValueError."""
    with logs.reading():
        try:
            walk = walk_thread(logs, head.name, head.thread.get("tip_message_hash"))
            messages = LlmMessages(logs, head, walk)
            messages.drop_copies()
            tools = logs.tool_definitions(head.responses.numbers, head.name)
        except Error as error:
            raise ValueError(f"cannot be read: {error}") from error

    data = {**session.data, "tools": tools} if tools else session.data
    return replace(session, leaf=messages.leaf, messages=messages, data=data)


class LlmMessages:
    """The messages of a session and their problems; read again each time."""

    def __init__(self, logs: LlmLogs, head: LlmHead, walk: ThreadWalk) -> None:
        self._logs = logs
        self._session = head.name
        self._responses = head.responses.numbers
        self._steps = walk.steps
        self._missing = walk.missing
        self.leaf = walk.leaf

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one message, and the names of all."""
        with self._logs.reading():
            try:
                yield from self._read_responses()
                for step in self._steps:
                    yield self._read_step(step)
            except Error as error:
                yield self._problem_of_session(
                    f"its other messages cannot be read: {error}"
                )

        for name in self._missing:
            yield self._problem_of_session(f"message {abridged(name)} is missing")

    def _read_responses(self) -> Iterator[SourceMessage | Problem]:
        """Yield the messages of the older generation."""
        unnamed_calls = UnnamedCalls()
        for number in self._responses:
            try:
                for draft in response_messages(self._logs, number, unnamed_calls):
                    yield SourceMessage(draft)
            except OddRecordError as error:
                yield self._problem_of_session(f"response {number} {error}")

    def _read_step(self, step: ThreadStep) -> SourceMessage | Problem:
        try:
            draft, turn = step_message(self._logs, step)
        except OddRecordError as error:
            return self._problem_of_session(f"message {abridged(step.name)} {error}")

        return SourceMessage(draft, parent=step.parent, usage_id=turn)

    def _problem_of_session(self, message: str) -> Problem:
        return Problem(
            str(self._logs.path), f"session {abridged(self._session)}: {message}"
        )

    # -- in both generations -----------------------------------------------------

    def drop_copies(self) -> None:
        """Leave out the steps that copy the responses, if there is one for each."""
        # Most sessions are of one generation, and are not read for this.
        if not self._steps or not self._responses:
            return

        # Numbers, not messages: memory holds one message at a time.
        signatures: list[int] = []
        last_response = None
        for item in self._read_responses():
            if isinstance(item, Problem):
                continue
            last_response = item.draft.id
            signature = _signature_of(item)
            if signature:
                signatures.append(signature)

        end = self._end_of_copies(signatures)
        dropped = {step.name for step in self._steps[:end]}
        del self._steps[:end]
        for position, step in enumerate(self._steps):
            if step.parent in dropped:
                self._steps[position] = step._replace(parent=last_response)
        if self.leaf in dropped:
            self.leaf = last_response

    def _end_of_copies(self, signatures: list[int]) -> int:
        """Return the number of steps up to the copy of the last message.

        0 unless the steps copy all messages with *signatures*, in their order.
        """
        copied = 0
        for number, step in enumerate(self._steps):
            if copied == len(signatures):
                return number
            # A copy has no turn of its own, so it precedes the first answer of one.
            if step.is_answer:
                return 0

            signature = _signature_of(self._read_step(step))
            if not signature:
                continue
            if signature != signatures[copied]:
                return 0
            copied += 1

        return len(self._steps) if copied == len(signatures) else 0


def _signature_of(item: SourceMessage | Problem) -> int:
    """Return a number for the words of a message, 0 if a copy may omit it.

    A system prompt is sent once, and an empty answer has no message. Spaces may differ:
    a prompt with fragments is one text there and several ones here.
    """
    if isinstance(item, Problem) or item.draft.role == "system" or not item.draft.parts:
        return 0

    texts = [part.text or "" for part in item.draft.parts]
    return hash((item.draft.role, "".join("".join(texts).split())))
