"""A session of one database as a source for another, by way of its log.

The log is where both sides agree on what a session is, so a session that comes from
another database file means what it would mean in a log: one set of rules decides
which side wins. Its messages pass through a temporary file, only if they are wanted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

from sessiondb.errors import UNREADABLE
from sessiondb.formats.jsonl import writer
from sessiondb.formats.jsonl.reader import messages_of, session_of
from sessiondb.formats.jsonl.scan import Scan
from sessiondb.formats.jsonl.state import LoggedState
from sessiondb.formats.kit.lines import Line, Lines, made_to_be_read
from sessiondb.model import (
    Export,
    Message,
    Problem,
    Problems,
    SourceMessage,
    SourceSession,
)
from sessiondb.model.damage import message_name, session_name


def relay_session(
    path: Path,
    export: Export,
    messages: Iterable[Message | Problem],
    ids: Mapping[int, str],
    digest: str,
) -> Iterator[SourceSession | Problem]:
    """Yield the session of *export*, from the database at *path*, and its problems.

    Its *messages*, of which an unreadable one is a problem, are read when they are
    iterated; *ids* are those of all of them by seq. *digest* changes with anything of
    the session.
    """
    about = map(str.encode, writer.about_lines(export, ids))
    name = export.session.id
    with made_to_be_read(about, partial(_RelayedLines, path, name)) as lines:
        scan = Scan(lines)
        logged = scan.sessions.get(name)
        if logged is None or logged.meta is None:
            yield from scan.problems
            return

        # Their contents come later; which messages there are is part of the state.
        logged.messages = {message_id: [] for message_id in ids.values()}
        state = LoggedState(scan, logged, logged.meta)
        session = session_of(scan, logged, state)
        yield from (*scan.problems, *state.problems)
    yield replace(
        session,
        digest=digest,
        messages=_relay_messages(path, name, messages, ids),
        extension_rows=export.extension_rows,
    )


def _relay_messages(
    path: Path,
    session: str,
    messages: Iterable[Message | Problem],
    ids: Mapping[int, str],
) -> Iterator[SourceMessage | Problem]:
    problems = Problems()
    pieces = _encoded_lines(path, messages, ids, problems)
    make = partial(_RelayedLines, path, session)
    with made_to_be_read(pieces, make) as lines:
        scan = Scan(lines)
        yield from (*problems, *scan.problems)
        for logged in scan.sessions.values():
            yield from messages_of(scan, logged)


def _encoded_lines(
    path: Path,
    messages: Iterable[Message | Problem],
    ids: Mapping[int, str],
    problems: Problems,
) -> Iterator[bytes]:
    """Yield the lines of the messages that can be read; add *problems* of others."""
    for message in messages:
        if isinstance(message, Problem):
            problems.append(message)
            continue

        try:
            # Some values are decoded only now: a damaged one costs its own message.
            lines = [*writer.message_lines(message, ids)]
        except UNREADABLE as error:
            name = message_name(message.session_id, message.seq)
            problems.append(Problem(str(path), f"{name} is damaged: {error}"))
        else:
            yield from map(str.encode, lines)


class _RelayedLines(Lines):
    """The lines of the log of a *session* of a database.

    The log is never seen by a user: a problem of a line names the message, or the
    property of the session, that is on it.
    """

    def __init__(
        self, path: Path, session: str, file: IO[bytes], stat: os.stat_result
    ) -> None:
        super().__init__(path, file, stat)
        self._session = session

    def problem(self, reason: str, line: Line | None = None) -> Problem:
        """Return a problem of the database."""
        name = session_name(self._session)
        return Problem(str(self.path), f"{self._name_of(line) or name}: {reason}")

    def skipped_line(self, error: Exception, line: Line, raw: bytes = b"\n") -> Problem:
        """Return the problem of a message, or a property, that is left out."""
        del raw
        return self.problem(str(error), line)

    def refused_subject(self, subject: str, error: Exception, line: Line) -> Problem:
        """Return the problem of the message that begins at a line."""
        del subject
        return self.problem(str(error), line)

    def _name_of(self, line: Line | None) -> str | None:
        """Return what is on a line; None if that cannot be known."""
        if line is None:
            return None
        try:
            record = json.loads(self.read_line(line))
        except (ValueError, RecursionError):
            return None

        if "message_id" in record:
            return message_name(self._session, record["seq"])
        # The type of a record is the name of a property, as in ``session_state``.
        return f"{session_name(self._session)}: its {record['type']}"
