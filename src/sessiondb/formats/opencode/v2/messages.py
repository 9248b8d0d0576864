"""The messages of one session of OpenCode 2, read on demand, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import as_object, value_at
from sessiondb.formats.kit.json import OddRecordError, check_id, load_object
from sessiondb.formats.opencode.forks import Fork, first_id
from sessiondb.formats.opencode.messages import OpenCodeMessages, ReadableStore
from sessiondb.formats.opencode.v1.messages import with_output
from sessiondb.formats.opencode.v2.drafts import message_draft
from sessiondb.formats.opencode.v2.instructions import Epoch, sources_of
from sessiondb.formats.opencode.v2.sqlite import MessageRow, Unexplained
from sessiondb.model import MessageDraft, PartDraft, Problem, SourceMessage, Tokens
from sessiondb.model.source import STATED_TOTAL, TOTAL_AFTER, sum_event_id
from sessiondb.patterns import late_pattern

#: The last line of an output that was cut.
_SAVED = late_pattern(r"\[full output saved to ([^\n\]]+)\]")
#: Sums of floats made in another order differ in their last digits.
_ROUND = 9


class StoreV2(ReadableStore, Protocol):
    """A store of generation 2."""

    home: Path

    def message_rows(self, session: str) -> Iterator[MessageRow]:
        """Read the messages of a session in order."""

    def unexplained_usage(self, session: str, fork: Fork | None) -> Unexplained:
        """A session's cost besides its messages."""

    def read_epoch(self, session: str) -> Epoch | None:
        """Return the instructions of a session; None if there are none."""

    def project_of(self, session: str) -> str:
        """Return the id of a session's project."""


class MessagesV2(OpenCodeMessages[StoreV2]):
    """The messages of a session of generation 2, and their problems.

    The session's cost besides them (OpenCode generates a title) comes first, in a fork
    after what it copied. Its instructions are sources of the first prompt that they
    were given with.
    """

    def _read_messages(self) -> Iterator[SourceMessage | Problem]:
        copied = 0 if self._fork is None else len(self._fork.copies)
        rows = self._records.message_rows(self._session)
        for row in islice(rows, copied):
            yield self._read_message(row)
        yield from self._usage_event()

        # A fork has instructions of its own, not those of what it copied.
        epoch = self._records.read_epoch(self._session)
        sources = [] if epoch is None else sources_of(epoch)
        first = 0 if epoch is None else epoch.message_count
        for index, row in enumerate(rows, copied):
            if not sources or index < first or row.type != "user":
                yield self._read_message(row)
                continue

            prompt = self._read_message(row)
            if isinstance(prompt, SourceMessage):
                parts = (*prompt.draft.parts, *sources)
                prompt = replace(prompt, draft=replace(prompt.draft, parts=parts))
                sources = []
            yield prompt

    def find_place(self) -> tuple[str, str | None]:
        """Return unknown: the record of a session of generation 2 has the directory."""
        return "", None

    def _usage_event(self) -> Iterator[SourceMessage]:
        """Yield an event with the cost besides the messages, if there is any."""
        usage = self._records.unexplained_usage(self._session, self._fork)
        counts = [
            count if count and count > 0 else None for count in usage.tokens.columns()
        ]
        tokens = Tokens(*counts)
        cost = round(usage.cost, _ROUND)
        if cost <= 0 and not tokens.known:
            return

        data: dict[str, Any] = {STATED_TOTAL: usage.total}
        if usage.after is not None:
            data[TOTAL_AFTER] = usage.after
        yield SourceMessage(
            MessageDraft(
                "event",
                id=sum_event_id(self._session),
                kind="usage",
                cost=cost if cost > 0 else None,
                tokens=tokens,
                data=data,
            )
        )

    def _read_message(self, row: MessageRow) -> SourceMessage | Problem:
        try:
            check_id(row.id)
            check_id(row.type)
            record = load_object(row.raw)
            draft = message_draft(
                row.type, record, row.id, time_created=row.time_created
            )
        except OddRecordError as error:
            path = self._records.path_of(self._session)
            return self._problem(path, f"message {abridged(row.id)} {error}")

        parts = tuple(self._with_output(part, draft) for part in draft.parts)
        if parts != draft.parts:
            draft = replace(draft, parts=parts)
        return SourceMessage(
            draft,
            usage_id=first_id(self._fork, row.id),
            open=draft.time_completed is None,
        )

    def _with_output(self, part: PartDraft, message: MessageDraft) -> PartDraft:
        """Return a part with the file of its complete output, if that was cut."""
        if part.type != "tool":
            return part
        if message.role != "event":
            return with_output(part, self._records.home, _output_path(part))
        # A command of the user.
        if value_at(message.data.get("output"), "truncated") is not True:
            return part
        project = self._records.project_of(self._session)
        path = f"shell/{project}/{part.call_id}.out"
        return with_output(part, self._records.home, path)


def _output_path(part: PartDraft) -> Any:
    """Return the file with the complete output of a call; None if nothing was cut."""
    details = as_object(value_at(part.data.get("state"), "metadata"))
    if details.get("truncated") is not True:
        return None
    saved = _SAVED.search(part.text or "")
    return saved[1] if saved else details.get("outputPath")
