"""The sessions of ``logs.db``, each once, from cheap stamps of rows.

A conversation that was continued by a release of the newer generation is in both: its
thread then begins with a copy of the responses. These keep what only they know, their
tokens and times, so the copies are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeGuard

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import fitting, take, without, without_none
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import fields
from sessiondb.formats.llm.database import NOTHING, Logs, Row, Written
from sessiondb.formats.llm.responses import Unnamed, response_messages
from sessiondb.formats.llm.threads import Step, Walk, step_message, walk
from sessiondb.model import Problem, SourceMessage, SourceSession

SOURCE = "llm"
_OF_SESSION = frozenset({"id", "tip_message_hash"})


@dataclass(slots=True)
class Head:
    """The properties of a session in rows of its tables, and its digest."""

    name: str
    conversation: Row = field(default_factory=dict)
    thread: Row = field(default_factory=dict)
    written: Written = NOTHING
    spent: list[Any] = field(default_factory=list)

    @property
    def parent(self) -> str | None:
        """The thread that this one was forked from."""
        parent: str | None = fitting(self.thread.get("forked_from"), usable_id)
        return parent

    @property
    def facts(self) -> list[Any]:
        """The values that change with it; the tip is a hash of the complete thread."""
        numbers, _, last = self.written
        written = [len(numbers), *numbers[-1:], last]
        return [self.conversation, self.thread, written, self.spent]

    def times(self) -> list[int]:
        """Return the times at which it was made and answered, those that are known.

        A thread is made when its first answer is complete.
        """
        _, *answered = self.written
        stated = [*answered, *self.spent[2:], self.thread.get("datetime_utc")]
        known = map(time_in_utc, stated)
        return [time for time in known if time is not None]


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file, originals first; raises `SourceError`."""
    logs = Logs(path)
    with logs.reading():
        try:
            found = _heads(logs)
            for name in filterfalse(usable_id, found):
                why = f"session {abridged(name)} has no usable id"
                yield Problem(str(path), why)

            heads = {name: found[name] for name in filter(usable_id, found)}
            yield from _sessions(logs, heads)
        except Error as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


def _heads(logs: Logs) -> dict[Any, Head]:
    """Return the properties of each session by its name, which may be unusable."""
    found: dict[Any, Head] = {}
    for name, what, value in logs.about():
        setattr(found.setdefault(name, Head(name)), what, value)

    return found


def _sessions(logs: Logs, heads: dict[str, Head]) -> Iterator[SourceSession | Problem]:
    size, time = stamp(logs.path) or (None, None)

    def session(name: str, cut: bool) -> list[SourceSession]:
        found = _session(logs, heads[name], is_cut=cut)
        return [replace(found, size=size, mtime_ns=time)]

    return in_order(
        heads, lambda name: heads[name].parent, session, lambda _: logs.path
    )


def _session(logs: Logs, head: Head, *, is_cut: bool) -> SourceSession:
    """Return the properties in the rows of a session."""
    row = {**head.thread, **without_none(head.conversation)}
    rest = without_none(without(_OF_SESSION, row))
    known = take(rest, fields.SESSION)
    if head.parent and not is_cut:
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
    """Return a session with its messages and its live end; raises ValueError."""
    with logs.reading():
        try:
            found = walk(logs, head.name, head.thread.get("tip_message_hash"))
            messages = Messages(logs, head, found)
            messages.drop_copies()
            tools = logs.definitions(head.written.numbers, head.name)
        except Error as error:
            raise ValueError(f"cannot be read: {error}") from error

    data = {**session.data, "tools": tools} if tools else session.data
    return replace(session, leaf=messages.leaf, messages=messages, data=data)


class Messages:
    """The messages of a session and their problems; read again each time."""

    def __init__(self, logs: Logs, head: Head, found: Walk) -> None:
        self._logs = logs
        self._session = head.name
        self._responses = head.written.numbers
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
        unnamed = Unnamed()
        for number in self._responses:
            try:
                for draft in response_messages(self._logs, number, unnamed):
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
        # Most sessions are of one generation, and are not read for this.
        if not self._steps or not self._responses:
            return

        # Numbers, not messages: memory holds one message at a time.
        older = [(m.draft.id, _signature(m)) for m in self._older() if _is_message(m)]
        wanted = list(filter(None, map(itemgetter(1), older)))

        # A copy has no turn of its own, so it precedes the first answer of one.
        begun = takewhile(lambda step: not step.ends, self._steps)
        said = enumerate(map(self._signature_of, begun), 1)
        copies = list(filter(itemgetter(1), said))[: len(wanted)]
        if not wanted or list(map(itemgetter(1), copies)) != wanted:
            return

        end, _ = copies[-1]
        dropped = {step.name for step in self._steps[:end]}
        self._graft(dropped, older[-1][0])
        del self._steps[:end]

    def _graft(self, dropped: set[str], last: str | None) -> None:
        """Let the successors of *dropped* messages follow the *last* response."""
        for place, step in enumerate(self._steps):
            if step.above in dropped:
                self._steps[place] = step._replace(above=last)

        if self.leaf in dropped:
            self.leaf = last

    def _signature_of(self, step: Step) -> int:
        found = self._step(step)
        return _signature(found) if _is_message(found) else 0


def _is_message(item: SourceMessage | Problem) -> TypeGuard[SourceMessage]:
    return isinstance(item, SourceMessage)


def _signature(message: SourceMessage) -> int:
    """Return a number for the words of a message, 0 if a copy may omit it.

    A system prompt is sent once, and an empty answer has no message. Spaces may differ:
    a prompt with fragments is one text there and several ones here.
    """
    draft = message.draft
    if draft.role == "system" or not draft.parts:
        return 0

    texts = filter(None, (part.text for part in draft.parts))
    return hash((draft.role, "".join("".join(texts).split())))
