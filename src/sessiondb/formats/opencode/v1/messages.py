"""The messages of one session of OpenCode 1.x, read on demand, one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import as_object, clean_text, fitting, within
from sessiondb.formats.kit.json import (
    OddRecordError,
    Raw,
    check_id,
    known_time,
    load_object,
)
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.opencode.forks import first_id
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.messages import Messages
from sessiondb.formats.opencode.raw import Opened, RawPart, Records
from sessiondb.formats.opencode.sidefiles import cut_output
from sessiondb.formats.opencode.v1.drafts import loaded, message_draft, part_draft
from sessiondb.model import PartDraft, Problem, SourceMessage

#: How many messages may be read for the directory of a session that has none.
_FIRST = 20


class MessagesV1(Messages[Records]):
    """The messages of a session of generation 1, and their problems."""

    def _read(self) -> Iterator[SourceMessage | Problem]:
        for opened in self._records.messages(self._session):
            yield from self._message(opened)

    def place(self) -> tuple[str, str | None]:
        """Return directory and worktree root as the first answer records them.

        "" and None are unknown.
        """
        paths = (as_object(info.get("path")) for info in self._first())
        for path in paths:
            if clean_text(path.get("cwd")):
                return path["cwd"], fitting(path.get("root"), clean_text)
        return "", None

    def _first(self) -> Iterator[dict[str, Any]]:
        """Yield the records of the first messages, those that can be read."""
        with contextlib.suppress(Error, OddRecordError):
            for opened in islice(self._records.messages(self._session), _FIRST):
                with contextlib.suppress(OddRecordError):
                    yield load_object(self._records.message(self._session, opened.id))

    def _message(self, opened: Opened) -> Iterator[SourceMessage | Problem]:
        name = opened.id
        try:
            check_id(name)
            info = load_object(self._records.message(self._session, name))
            parts: list[PartDraft] = []
            yield from self._parts(name, parts)
            when = known_time(opened.time) or None
            draft = message_draft(info, name, self._session, parts, time_created=when)
        except OddRecordError as error:
            yield self._problem_in(f"message {abridged(name)} {error}", name)
            return

        usage = first_id(self._fork, name)
        is_open = draft.role == "assistant" and draft.time_completed is None
        made = [SourceMessage(draft, usage_id=usage, open=is_open)]
        # While it is written, a large message must not be held here as well.
        del draft, info, parts
        yield made.pop()

    def _parts(self, message: str, parts: list[PartDraft]) -> Iterator[Problem]:
        """Add the parts of a message to *parts*, and yield the problems."""
        names: set[str] = set()
        try:
            for given in self._records.parts(self._session, message):
                raw, part = [given.raw], given._replace(raw=None)
                del given
                try:
                    draft = self._part(part, raw, message)
                    _check_new(part.id, names)
                except OddRecordError as error:
                    why = f"part {abridged(part.id)} {error}"
                    yield self._problem_in(why, message, part.id)
                    continue
                names.add(part.id)
                parts += (draft, *loaded(draft))
        except OddRecordError as error:
            why = f"the parts of message {abridged(message)}: {error}"
            yield self._problem_in(why, message)

    def _part(self, part: RawPart, raw: list[Raw], message: str) -> PartDraft:
        """Return a part.

        Its stored form is taken out of *raw*, so that it can be freed.
        """
        check_id(part.id)
        record = load_object(raw.pop())
        named = within(record, "state", "metadata", "outputPath")
        draft = part_draft(
            record,
            part.id,
            message,
            self._session,
            time_created=part.time_created,
            time_updated=part.time_updated,
        )
        return with_output(draft, self._records.home, named)

    def _problem_in(self, why: str, *ids: str) -> Problem:
        return self._problem(self._records.where(self._session, *ids), why)


def _check_new(part: str, names: set[str]) -> None:
    if part in names:
        raise OddRecordError("occurs twice; the first one counts")


def with_output(draft: PartDraft, home: Path, named: Any) -> PartDraft:
    """Return a part with the file that its cut output *named*, if it is in *home*."""
    output = None if named is None else cut_output(home, named)
    if output is None:
        return draft
    return replace(draft, data={**draft.data, OUTPUT_FILE: output})
