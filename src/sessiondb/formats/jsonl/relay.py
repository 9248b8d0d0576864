"""A session of one database as a source for another, by way of its log.

The log is where both sides agree on what a session is, so a session that comes from
another database file means what it would mean in a log: one set of rules says which
side wins. Its messages pass through a temporary file, and only if they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sessiondb.formats.jsonl import writer
from sessiondb.formats.jsonl.reader import messages_of, session_of
from sessiondb.formats.jsonl.scan import Scan
from sessiondb.formats.jsonl.state import State
from sessiondb.formats.kit.lines import spooled
from sessiondb.model import Export, Problem, SourceMessage, SourceSession


def relayed(
    path: Path, export: Export, ids: Mapping[int, str], digest: str
) -> Iterator[SourceSession | Problem]:
    """Yield the session of *export*, from the database at *path*, and its problems.

    *ids* are those of all its messages by seq; the messages themselves are read when
    they are iterated. *digest* changes with anything of the session.
    """
    about = (line.encode() for line in writer.about_lines(export, ids))
    with spooled(path, about) as lines:
        scan = Scan(lines)
        (found,) = scan.sessions.values()
        # What the messages say comes later; which there are is part of the state.
        found.messages = {name: [] for name in ids.values()}
        assert found.meta is not None, "a session begins with it"
        state = State(scan, found, found.meta)
        session = session_of(scan, found, state)
        yield from (*scan.problems, *state.problems)
    yield replace(session, digest=digest, messages=_messages(path, export))


def _messages(path: Path, export: Export) -> Iterator[SourceMessage | Problem]:
    with spooled(path, map(str.encode, writer.message_lines(export))) as lines:
        scan = Scan(lines)
        yield from scan.problems
        for found in scan.sessions.values():
            yield from messages_of(scan, found)
