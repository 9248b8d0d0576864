"""The messages of one session of OpenCode 2, read on demand, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import as_object, fitting, within
from sessiondb.formats.kit.json import OddRecordError, check_id, load_object
from sessiondb.formats.opencode.forks import Fork, first_id
from sessiondb.formats.opencode.messages import Messages, Readable
from sessiondb.formats.opencode.v1.messages import with_output
from sessiondb.formats.opencode.v2.drafts import message_draft
from sessiondb.formats.opencode.v2.instructions import Epoch, sources_of
from sessiondb.formats.opencode.v2.sqlite import Row, Unexplained
from sessiondb.model import MessageDraft, PartDraft, Problem, SourceMessage, Tokens
from sessiondb.model.source import STATED_TOTAL, TOTAL_AFTER, sum_event_id

#: The last line of an output that was cut.
_SAVED = re.compile(r"\[full output saved to ([^\n\]]+)\]")
#: Sums of floats made in another order differ in their last digits.
_ROUND = 9


class Rows(Readable, Protocol):
    """A store of generation 2."""

    home: Path

    def each(self, session: str) -> Iterator[Row]:
        """Read the messages of a session in order."""

    def unexplained(self, session: str, fork: Fork | None) -> Unexplained:
        """A session's cost besides its messages."""

    def epoch(self, session: str) -> Epoch | None:
        """Return the instructions of a session; None if there are none."""

    def project(self, session: str) -> str:
        """Return the id of a session's project."""


class MessagesV2(Messages[Rows]):
    """The messages of a session of generation 2, and their problems.

    The session's cost besides them (OpenCode generates a title) comes first, in a fork
    after what it copied. Its instructions are sources of the first prompt that they
    were given with.
    """

    def _read(self) -> Iterator[SourceMessage | Problem]:
        copied = 0 if self._fork is None else len(self._fork.copies)
        messages = map(self._message, self._records.each(self._session))
        yield from islice(messages, copied)
        yield from self._spent()
        epoch = self._records.epoch(self._session)
        if epoch is None:
            yield from messages
            return

        # A fork has instructions of its own, not those of what it copied.
        yield from islice(messages, max(epoch.before - copied, 0))
        for message in messages:
            if isinstance(message, SourceMessage) and message.draft.role == "user":
                yield _with_parts(message, sources_of(epoch))
                break
            yield message
        yield from messages

    def place(self) -> tuple[str, str | None]:
        """Return unknown: the record of a session of generation 2 has the directory."""
        return "", None

    def _spent(self) -> Iterator[SourceMessage]:
        more = self._records.unexplained(self._session, self._fork)
        counts = [fitting(count, _is_positive) for count in more.tokens.columns()]
        tokens = Tokens(*counts)
        if round(more.cost, _ROUND) <= 0 and not tokens.known:
            return

        facts: dict[str, Any] = {STATED_TOTAL: more.total}
        if more.after is not None:
            facts[TOTAL_AFTER] = more.after
        yield SourceMessage(
            MessageDraft(
                "event",
                id=sum_event_id(self._session),
                kind="usage",
                cost=fitting(round(more.cost, _ROUND), _is_positive),
                tokens=tokens,
                data=facts,
            )
        )

    def _message(self, row: Row) -> SourceMessage | Problem:
        try:
            check_id(row.id)
            check_id(row.type)
            record = load_object(row.raw)
            draft = message_draft(
                row.type, record, row.id, time_created=row.time_created
            )
        except OddRecordError as error:
            where = self._records.where(self._session)
            return self._problem(where, f"message {abridged(row.id)} {error}")

        parts = tuple(self._with_output(part, draft) for part in draft.parts)
        if parts != draft.parts:
            draft = replace(draft, parts=parts)
        return SourceMessage(
            draft,
            usage_id=first_id(self._fork, row.id),
            open=draft.time_completed is None,
        )

    def _with_output(self, part: PartDraft, message: MessageDraft) -> PartDraft:
        if part.type != "tool":
            return part
        is_shell = message.role == "event"
        named = self._named_by_shell(part, message) if is_shell else _named(part)
        return with_output(part, self._records.home, named)

    def _named_by_shell(self, part: PartDraft, message: MessageDraft) -> str | None:
        """Return the file with the complete output of a user's command.

        None if uncut.
        """
        if within(message.data.get("output"), "truncated") is not True:
            return None
        return f"shell/{self._records.project(self._session)}/{part.call_id}.out"


def _with_parts(message: SourceMessage, more: Iterable[PartDraft]) -> SourceMessage:
    draft = message.draft
    return replace(message, draft=replace(draft, parts=(*draft.parts, *more)))


def _named(part: PartDraft) -> Any:
    """Return the file with the complete output of a call; None if nothing was cut."""
    details = as_object(within(part.data.get("state"), "metadata"))
    if details.get("truncated") is not True:
        return None
    saved = _SAVED.search(part.text or "")
    return saved[1] if saved else details.get("outputPath")


def _is_positive(value: Any) -> bool:
    return value is not None and value > 0
