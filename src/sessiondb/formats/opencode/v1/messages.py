"""The messages of one session of OpenCode 1.x, read on demand, one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import as_object, clean_text, fitting, value_at
from sessiondb.formats.kit.json import (
    OddRecordError,
    check_id,
    known_time,
    load_object,
)
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.opencode.forks import first_id
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.messages import OpenCodeMessages
from sessiondb.formats.opencode.raw import Opened, RawPart, Records
from sessiondb.formats.opencode.sidefiles import complete_output
from sessiondb.formats.opencode.v1.drafts import (
    instruction_sources,
    message_draft,
    part_draft,
)
from sessiondb.model import PartDraft, Problem, SourceMessage

#: How many messages may be read for the directory of a session that has none.
_FIRST = 20


class MessagesV1(OpenCodeMessages[Records]):
    """The messages of a session of generation 1, and their problems."""

    def _read_messages(self) -> Iterator[SourceMessage | Problem]:
        for opened in self._records.list_messages(self._session):
            yield from self._read_message(opened)

    def find_place(self) -> tuple[str, str | None]:
        """Return directory and worktree root as the first answer records them.

        "" and None are unknown.
        """
        for info in self._first_records():
            path = as_object(info.get("path"))
            if clean_text(path.get("cwd")):
                return path["cwd"], fitting(path.get("root"), clean_text)
        return "", None

    def _first_records(self) -> Iterator[dict[str, Any]]:
        """Yield the records of the first messages, those that can be read."""
        with contextlib.suppress(Error, OddRecordError):
            for opened in islice(self._records.list_messages(self._session), _FIRST):
                with contextlib.suppress(OddRecordError):
                    yield load_object(
                        self._records.read_message(self._session, opened.id)
                    )

    def _read_message(self, opened: Opened) -> Iterator[SourceMessage | Problem]:
        name = opened.id
        try:
            check_id(name)
            info = load_object(self._records.read_message(self._session, name))
            parts: list[PartDraft] = []
            yield from self._read_parts(name, parts)
            time = known_time(opened.time) or None
            draft = message_draft(info, name, self._session, parts, time_created=time)
        except OddRecordError as error:
            yield self._problem_in(f"message {abridged(name)} {error}", name)
            return

        usage = first_id(self._fork, name)
        is_open = draft.role == "assistant" and draft.time_completed is None
        message = [SourceMessage(draft, usage_id=usage, open=is_open)]
        # While it is written, a large message must not be held here as well.
        del draft, info, parts
        yield message.pop()

    def _read_parts(self, message: str, parts: list[PartDraft]) -> Iterator[Problem]:
        """Add the parts of a message to *parts*, and yield the problems."""
        names: set[str] = set()
        try:
            for part in self._records.read_parts(self._session, message):
                try:
                    draft = self._read_part(part, message)
                except OddRecordError as error:
                    reason = f"part {abridged(part.id)} {error}"
                    yield self._problem_in(reason, message, part.id)
                    continue
                if part.id in names:
                    reason = "occurs twice; the first one counts"
                    reason = f"part {abridged(part.id)} {reason}"
                    yield self._problem_in(reason, message, part.id)
                    continue
                names.add(part.id)
                parts += (draft, *instruction_sources(draft))
        except OddRecordError as error:
            reason = f"the parts of message {abridged(message)}: {error}"
            yield self._problem_in(reason, message)

    def _read_part(self, part: RawPart, message: str) -> PartDraft:
        """Return a part, whose stored form is taken out."""
        check_id(part.id)
        record = load_object(part.raw.pop())
        output_path = value_at(record, "state", "metadata", "outputPath")
        draft = part_draft(
            record,
            part.id,
            message,
            self._session,
            time_created=part.time_created,
            time_updated=part.time_updated,
        )
        return with_output(draft, self._records.home, output_path)

    def _problem_in(self, reason: str, *ids: str) -> Problem:
        return self._problem(self._records.path_of(self._session, *ids), reason)


def with_output(draft: PartDraft, home: Path, path: Any) -> PartDraft:
    """Return a part with the file at *path* of its cut output, if that is in *home*."""
    output = None if path is None else complete_output(home, path)
    if output is None:
        return draft
    return replace(draft, data={**draft.data, OUTPUT_FILE: output})
