"""The messages of one session of OpenCode 2, read when they are asked for and one at a time."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from sessiondb.errors import abridged
from sessiondb.formats.kit.json import OddRecordError, check_id, load_object
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.sidefiles import cut_output
from sessiondb.formats.opencode.v1.forks import Fork
from sessiondb.formats.opencode.v2 import drafts
from sessiondb.formats.opencode.v2.sqlite import Row
from sessiondb.model import MessageDraft, PartDraft, Problem, SourceMessage, Tokens

_SAVED = re.compile(r"\[full output saved to ([^\n\]]+)\]")
#: Sums of floats made in another order differ in their last digits.
_ROUND = 9


class Rows(Protocol):
    """Where the messages of a session come from."""

    home: Path

    def where(self, session: str) -> Path:
        """The file that holds a session."""

    def reading(self) -> Any:
        """Keep the store open."""

    def each(self, session: str) -> Iterator[Row]:
        """Read the messages of a session in order."""

    def unexplained(self, session: str, fork: Fork | None) -> tuple[float, Tokens]:
        """A session's cost besides its messages."""

    def project(self, session: str) -> str:
        """Return the id of a session's project."""


class MessagesV2:
    """An iterable over one session's messages and their problems; read again each time.

    The session's cost besides them (OpenCode generates a title) comes first.
    """

    def __init__(self, rows: Rows, session: str, fork: Fork | None) -> None:
        self._rows = rows
        self._session = session
        self._fork = fork

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one message."""
        with self._rows.reading():
            try:
                yield from self._spent()
                for row in self._rows.each(self._session):
                    yield self._message(row)
            except (sqlite3.Error, OddRecordError) as error:
                yield self._problem(f"its other messages cannot be read: {error}")

    def place(self) -> tuple[str, str | None]:
        """A session of generation 2 says itself where it was held."""
        return "", None

    def _spent(self) -> Iterator[SourceMessage]:
        cost, counts = self._rows.unexplained(self._session, self._fork)
        more = Tokens(*(n if n and n > 0 else None for n in counts.columns()))
        if round(cost, _ROUND) <= 0 and not more.known:
            return
        draft = MessageDraft(
            "event",
            id=f"{self._session}/usage",
            kind="usage",
            cost=round(cost, _ROUND + 3) if cost > 0 else None,
            tokens=more,
        )
        yield SourceMessage(draft)

    def _message(self, row: Row) -> SourceMessage | Problem:
        try:
            check_id(row.id)
            check_id(row.type)
            record = load_object(row.raw)
            draft = drafts.message_draft(
                row.type, record, row.id, time_created=row.time_created
            )
        except OddRecordError as error:
            return self._problem(f"message {abridged(row.id)} {error}")
        parts = [self._with_output(part, draft) for part in draft.parts]
        if any(new is not old for new, old in zip(parts, draft.parts, strict=True)):
            draft = replace(draft, parts=tuple(parts))
        fork = self._fork
        copied, usage = fork.origin_of(row.id) if fork else (None, row.id)
        return SourceMessage(draft, copied_from=copied, usage_id=usage)

    def _with_output(self, part: PartDraft, message: MessageDraft) -> PartDraft:
        named = self._named(part, message) if part.type == "tool" else None
        output = None if named is None else cut_output(self._rows.home, named)
        if output is None:
            return part
        return replace(part, data={**part.data, OUTPUT_FILE: output})

    def _named(self, part: PartDraft, message: MessageDraft) -> Any:
        """Return the file that holds all of a cut output; None where nothing was cut."""
        if message.role == "event":
            output = message.data.get("output")
            if type(output) is dict and output.get("truncated") is True:
                return f"shell/{self._rows.project(self._session)}/{part.call_id}.out"
            return None
        state = part.data.get("state")
        details = state.get("metadata") if type(state) is dict else None
        if type(details) is not dict or details.get("truncated") is not True:
            return None
        saved = _SAVED.search(part.text or "")
        return saved[1] if saved else details.get("outputPath")

    def _problem(self, why: str) -> Problem:
        return Problem(
            str(self._rows.where(self._session)), f"session {self._session}: {why}"
        )
