"""The sessions of ``logs.db``, each once, from cheap stamps of rows.

A conversation that was continued by a release of the newer generation is in both: its
thread then begins with a copy of the responses. These keep what only they know, their
tokens and times, so the copies are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import take, without, without_none
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.order import parents_first
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import fields
from sessiondb.formats.llm.database import Logs, Row, Written
from sessiondb.formats.llm.responses import response_messages
from sessiondb.formats.llm.threads import Step, Walk, step_message, walk
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession

SOURCE = "llm"
_OF_SESSION = frozenset({"id", "tip_message_hash"})


@dataclass(slots=True)
class Head:
    """What rows of tables of sessions say of one, and what changes with it."""

    name: str
    conversation: Row | None = None
    thread: Row | None = None
    written: Written | None = None
    spent: list[Any] | None = None

    @property
    def parent(self) -> str | None:
        """The thread that this one was forked from."""
        named = (self.thread or {}).get("forked_from")
        return named if isinstance(named, str) else None

    @property
    def facts(self) -> list[Any]:
        """What changes with the session; the tip is a hash of the whole thread."""
        written = self.written
        last = written and [len(written.numbers), written.numbers[-1], written.last]
        return [self.conversation, self.thread, last, self.spent]

    def times(self) -> list[int]:
        """Return the times of its first and last answers, those that are known."""
        stated = [*(self.written or ())[1:], *(self.spent or ())[2:]]
        # A fork exists from the time when it was made, its messages before that.
        if self.thread is not None and (self.parent or not stated):
            stated = [self.thread.get("datetime_utc"), *stated]
        return [time for time in map(time_in_utc, stated) if time is not None]


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file, originals first; raises `SourceError`."""
    logs = Logs(path)
    with logs.reading():
        logs.file.check_complete()
        try:
            heads = {}
            for item in _heads(logs):
                if isinstance(item, Problem):
                    yield item
                else:
                    heads[item.name] = item
            yield from _sessions(logs, heads)
        except Error as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


def _heads(logs: Logs) -> Iterator[Head | Problem]:
    found: dict[Any, Head] = {}
    if logs.has_responses:
        for row in logs.records("SELECT * FROM conversations"):
            _head(found, row["id"]).conversation = row
        for name, written in logs.written():
            _head(found, name).written = written
    if logs.has_threads:
        for row in logs.records("SELECT * FROM threads"):
            _head(found, row["id"]).thread = row
        for name, spent in logs.spent():
            _head(found, name).spent = spent

    for name, head in found.items():
        if usable_id(name):
            yield head
        else:
            yield Problem(str(logs.path), f"session {abridged(name)} has no usable id")


def _head(found: dict[Any, Head], name: Any) -> Head:
    return found.setdefault(name, Head(name))


def _sessions(logs: Logs, heads: dict[str, Head]) -> Iterator[SourceSession | Problem]:
    size, time = stamp(logs.path) or (None, None)
    for name, cut in parents_first(heads, lambda name: heads[name].parent):
        head = heads[name]
        if cut:
            why = f"session {abridged(name)} is its own ancestor"
            yield Problem(str(logs.path), why)
        session = _session(logs, head, is_cut=cut)
        yield replace(session, size=size, mtime_ns=time)


def _session(logs: Logs, head: Head, *, is_cut: bool) -> SourceSession:
    """Return what the rows of a session say of it."""
    row = {**(head.thread or {}), **without_none(head.conversation or {})}
    rest = without_none(without(_OF_SESSION, row))
    known = take(rest, fields.SESSION)
    if head.parent and not is_cut and usable_id(head.parent):
        known.update(parent_source_id=rest.pop("forked_from"), relation="fork")

    facts = json.dumps(head.facts, default=repr).encode()
    times = head.times()
    session = SourceSession(
        SOURCE,
        head.name,
        str(logs.path),
        hashlib.sha256(facts).hexdigest(),
        time_created=min(times, default=None),
        time_updated=max(times, default=None),
        data=rest,
        **known,
    )
    return replace(session, complete=partial(_complete, logs, session, head))


def _complete(logs: Logs, session: SourceSession, head: Head) -> SourceSession:
    """Return a session with its messages, and where it goes on; raises ValueError."""
    with logs.reading():
        try:
            found = Walk()
            if logs.has_threads:
                tip = (head.thread or {}).get("tip_message_hash")
                found = walk(logs, head.name, tip)
            messages = Messages(logs, head, found)
            messages.drop_copies()
            tools = _definitions(logs, head)
        except Error as error:
            raise ValueError(f"cannot be read: {error}") from error

    data = {**session.data, "tools": tools} if tools else session.data
    return replace(session, leaf=messages.leaf, messages=messages, data=data)


class Messages:
    """The messages of a session and their problems; read again each time."""

    def __init__(self, logs: Logs, head: Head, found: Walk) -> None:
        self._logs = logs
        self._session = head.name
        self._responses = head.written.numbers if head.written else ()
        self._steps = found.steps
        self._missing = found.missing
        self.leaf = found.leaf

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one message, and the names of all."""
        with self._logs.reading():
            try:
                yield from self._older()
                for step in self._steps:
                    yield self._step(step)
            except Error as error:
                yield self._problem(f"its other messages cannot be read: {error}")
        for name in self._missing:
            yield self._problem(f"message {abridged(name)} is missing")

    def _older(self) -> Iterator[SourceMessage | Problem]:
        for number in self._responses:
            try:
                for draft in response_messages(self._logs, number):
                    yield SourceMessage(draft)
            except OddRecordError as error:
                yield self._problem(f"response {number} {error}")

    def _step(self, step: Step) -> SourceMessage | Problem:
        try:
            draft, turn = step_message(self._logs, step)
        except OddRecordError as error:
            return self._problem(f"message {abridged(step.name)} {error}")
        return SourceMessage(draft, parent=step.above, usage_id=turn)

    def _problem(self, why: str) -> Problem:
        name = abridged(self._session)
        return Problem(str(self._logs.path), f"session {name}: {why}")

    # -- in both generations -----------------------------------------------------

    def drop_copies(self) -> None:
        """Leave out the steps that copy the responses, if there is one for each."""
        wanted, last = self._said()
        if not wanted:
            return

        dropped: set[str] = set()
        for step in self._steps:
            said = self._signature_of(step)
            if said is None or (said and said != wanted.pop(0)):
                return
            dropped.add(step.name)
            if not wanted:
                break
        else:
            return

        rest = self._steps[len(dropped) :]
        self._steps = [
            step._replace(above=last) if step.above in dropped else step
            for step in rest
        ]
        self.leaf = last if self.leaf in dropped else self.leaf

    def _said(self) -> tuple[list[int], str | None]:
        """Return what the responses say, and the name of the last message."""
        found: list[int] = []
        last = None
        for item in self._older() if self._steps else ():
            if isinstance(item, SourceMessage):
                last = item.draft.id
                found.append(_signature(item.draft))
        return list(filter(None, found)), last

    def _signature_of(self, step: Step) -> int | None:
        """Return what a step says; None for one that is no copy or cannot be read."""
        try:
            draft, turn = step_message(self._logs, step)
        except OddRecordError:
            return None
        return None if turn is not None else _signature(draft)


def _signature(draft: MessageDraft) -> int:
    """Return a number for what a message says, 0 for one that a copy may lack.

    A system prompt is sent once, and an empty answer has no message. Spaces may differ:
    a prompt with fragments is one text there and several ones here.
    """
    if draft.role == "system" or not draft.parts:
        return 0
    words = "".join(part.text or "" for part in draft.parts).split()
    return hash((draft.role, "".join(words))) or 1


def _definitions(logs: Logs, head: Head) -> list[Row]:
    """Return the tools that a model could call, each once."""
    numbers = head.written.numbers if head.written else ()
    used = {
        row["tool_id"] for n in numbers for row in logs.belonging("tool_responses", n)
    }
    if logs.has("turn_tools", "turn_id", "tool_id") and logs.has_threads:
        used.update(logs.tools_of(head.name))
    found = (logs.named("tools", "id", name) for name in sorted(used, key=str))
    return [row for row in found if row is not None]
