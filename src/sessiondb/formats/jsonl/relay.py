"""A session of one database as a source for another, by way of its log.

The log is where both sides agree on what a session is, so a session that comes from
another database file means what it would mean in a log: one set of rules decides
which side wins. Its messages pass through a temporary file, only if they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sessiondb.formats.jsonl import writer
from sessiondb.formats.jsonl.reader import messages_of, session_of
from sessiondb.formats.jsonl.scan import Scan
from sessiondb.formats.jsonl.state import State
from sessiondb.formats.kit.lines import spooled
from sessiondb.model import Export, Message, Problem, SourceMessage, SourceSession


def relayed(
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
    with spooled(path, about) as lines:
        scan = Scan(lines)
        (found,) = scan.sessions.values()
        # What the messages say comes later; which there are is part of the state.
        found.messages = {name: [] for name in ids.values()}
        assert found.meta is not None, "a session begins with it"
        state = State(scan, found, found.meta)
        session = session_of(scan, found, state)
        yield from (*scan.problems, *state.problems)
    yield replace(
        session, digest=digest, messages=_relayed(path, export, messages, ids)
    )


def _relayed(
    path: Path,
    export: Export,
    messages: Iterable[Message | Problem],
    ids: Mapping[int, str],
) -> Iterator[SourceMessage | Problem]:
    problems: list[Problem] = []
    export = replace(export, messages=_readable(messages, problems))
    given = map(str.encode, writer.message_lines(export, ids))
    with spooled(path, given) as lines:
        scan = Scan(lines)
        yield from (*problems, *scan.problems)
        for found in scan.sessions.values():
            yield from messages_of(scan, found)


def _readable(
    messages: Iterable[Message | Problem], problems: list[Problem]
) -> Iterator[Message]:
    """Yield the messages that can be read; add the problems to *problems*."""
    for found in messages:
        if isinstance(found, Problem):
            problems.append(found)
        else:
            yield found
