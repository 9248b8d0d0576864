"""The sessions of Gemini CLI, read from their logs.

A session is yielded after a look at the head of its log. The log is then read once for
the places of its messages (`journal`), and each message again from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError, abridged
from sessiondb.formats.gemini import fields
from sessiondb.formats.gemini.drafts import message_draft
from sessiondb.formats.gemini.history import NAME, read_history
from sessiondb.formats.gemini.journal import Entry, Journal, kind_of, merged
from sessiondb.formats.gemini.logs import (
    Log,
    directory_of,
    logs_of,
    look_at,
    outputs_of,
    source_of,
    stated_directory,
    unreadable_projects,
)
from sessiondb.formats.gemini.places import Records, records_of
from sessiondb.formats.kit.fields import as_list, as_text, fitting, objects_in, take
from sessiondb.formats.kit.genai import Outputs
from sessiondb.formats.kit.json import check_id, usable_id
from sessiondb.formats.kit.logs import (
    add_logs,
    log_digest,
    read_in_order,
    records_naming,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem, SourceItem, SourceMessage, SourceSession

Record = dict[str, Any]
#: Records that decide whether a log has a prompt: the program begins it with a header,
#: the context, the id of the session and the context again.
_BEGINNING = 5


def read_log(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log."""
    log = look_at(path)
    if log is not None:
        yield beginning(log)


def read_chats(chats: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a project, parents first, and its prompt history."""
    yield from unreadable_projects(chats)
    logs: dict[str, Log] = {}
    found = logs_of(chats)
    yield from add_logs(found, look_at, logs, is_spare=is_without_prompts)
    yield from read_in_order(
        logs, lambda log: [beginning(log, logs.get(log.parent or ""))]
    )
    yield from read_history(chats.with_name(NAME))


def is_without_prompts(log: Log) -> bool:
    """Return whether a log has only the records that the program begins one with.

    A session that is resumed in another minute gets such a log, and is then continued
    in the log that it had. The program does not list them either
    (``hasResumableContent`` in ``sessionUtils.ts``).
    """
    journal = Journal()
    with suppress(SourceError, ValueError), records_of(log.path) as records:
        for line, record in islice(records, _BEGINNING):
            journal.apply(line, record)
        return len([*journal.entries()]) < 2 and bool(journal.context)
    return False


def beginning(log: Log, above: Log | None = None) -> SourceSession:
    """Return the session of a log by its head; *above* is the log of the parent."""
    return SourceSession(
        source_of(log.path),
        log.session,
        str(log.path),
        log_digest(log.path),
        directory=directory_of(log),
        parent_source_id=log.parent,
        relation=log.relation,
        complete=partial(complete, log, above),
    )


def complete(log: Log, above: Log | None = None) -> SourceSession:
    """Return a session with everything that its log says of it."""
    journal = Journal()

    with records_of(log.path) as records:
        problems = [*_applied(journal, records)]

    session = beginning(log)

    stated = dict(journal.metadata)
    known = take(stated, fields.SESSION)
    directories = filter(None, map(as_text, as_list(stated.get("directories"))))
    return replace(
        session,
        **known,
        directory=session.directory
        or stated_directory(journal.context, log.project_hash)
        or next(directories, ""),
        leaf=journal.leaf,
        call_id=None if above is None else _call_of(log.session, above),
        time_created=time_of_text(journal.begun),
        time_updated=time_of_text(stated.get("lastUpdated")),
        data=stated,
        messages=Messages(log, journal, problems),
    )


def _applied(journal: Journal, records: Records) -> Iterator[Problem]:
    for line, record in records:
        try:
            journal.apply(line, record)
        except ValueError as error:
            yield records.problem(f"record skipped: it {error}", line)
    yield from records.problems


def _call_of(session: str, above: Log) -> str | None:
    """Return the call that started a subagent: the one with its id."""
    named = records_naming(above.path, session)
    calls = chain.from_iterable(objects_in(item.get("toolCalls")) for item in named)
    ids = (call.get("id") for call in calls if call.get("agentId") == session)
    return as_text(next(ids, None))


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a log and their problems; read again each time."""

    log: Log
    journal: Journal
    problems: list[Problem]

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the messages by their places; memory holds one, and the ids of all."""
        outputs = outputs_of(self.log)

        with records_of(self.log.path) as records:
            for entry, parent in self.journal.entries():
                yield self._message(records, entry, parent, outputs)
        yield from self.problems

    def _message(
        self, records: Records, entry: Entry, parent: str | None, outputs: Outputs
    ) -> SourceMessage | Problem:
        try:
            check_id(entry.name)
            record = merged(entry, records.version)
            record.setdefault("type", kind_of(record))
            draft = message_draft(record, entry.name)
        except ValueError as error:
            why = f"message {abridged(entry.name)} {error}"
            return records.problem(why, entry.versions[-1].line)

        draft = outputs.added(draft)
        # Nothing is ever copied; ids of messages are those of one session.
        name = f"{self.log.session}/{entry.name}"
        return SourceMessage(draft, parent, fitting(name, usable_id))
