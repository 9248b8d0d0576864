"""The sessions of Gemini CLI, read from their logs.

A session is yielded after a look at the head of its log. The log is then read once for
the places of its messages (`journal`), and each message again from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import SourceError, abridged
from sessiondb.formats.gemini import fields
from sessiondb.formats.gemini.drafts import message_draft
from sessiondb.formats.gemini.history import NAME, read_history
from sessiondb.formats.gemini.journal import (
    GeminiJournal,
    JournalEntry,
    kind_of,
    merge_versions,
)
from sessiondb.formats.gemini.logs import (
    GeminiLog,
    directory_in_text,
    directory_of,
    logs_of_project,
    look_at,
    outputs_of,
    source_of,
    unreadable_projects,
)
from sessiondb.formats.gemini.places import GeminiRecords, records_of
from sessiondb.formats.kit.fields import (
    as_list,
    as_text,
    fitting,
    objects_in,
    take_fields,
    text,
)
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
        yield session_of_head(log)


def read_chats(chats: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a project, parents first, and its prompt history."""
    yield from unreadable_projects(chats)
    logs: dict[str, GeminiLog] = {}
    yield from add_logs(
        logs_of_project(chats), look_at, logs, is_spare=is_without_prompts
    )

    def read_session(log: GeminiLog) -> list[SourceSession | Problem]:
        return [session_of_head(log, logs.get(log.parent or ""))]

    yield from read_in_order(logs, read_session)
    yield from read_history(chats.with_name(NAME))


def is_without_prompts(log: GeminiLog) -> bool:
    """Return whether a log has only the records that the program begins one with.

    A session that is resumed in another minute gets such a log, and is then continued
    in the log that it had. The program does not list them either
    (``hasResumableContent`` in ``sessionUtils.ts``).
    """
    journal = GeminiJournal()
    with suppress(SourceError, ValueError), records_of(log.path) as records:
        for line, record in islice(records, _BEGINNING):
            journal.apply_record(line, record)
        return len(list(journal.ordered_entries())) < 2 and bool(journal.context)
    return False


def session_of_head(
    log: GeminiLog, parent_log: GeminiLog | None = None
) -> SourceSession:
    """Return the session of a log by its head."""
    return SourceSession(
        source_of(log.path),
        log.session,
        str(log.path),
        log_digest(log.path),
        directory=directory_of(log),
        parent_source_id=log.parent,
        relation=log.relation,
        complete=partial(_complete_session, log, parent_log),
    )


def _complete_session(log: GeminiLog, parent_log: GeminiLog | None) -> SourceSession:
    """Return a session with everything in its log."""
    journal = GeminiJournal()
    with records_of(log.path) as records:
        problems = list(_apply_records(journal, records))

    session = session_of_head(log)
    data = dict(journal.metadata)
    columns = take_fields(data, fields.SESSION)
    return replace(
        session,
        **columns,
        directory=session.directory or _directory_in_log(log, journal),
        leaf=journal.leaf_name,
        call_id=None if parent_log is None else _call_of(log.session, parent_log),
        time_created=time_of_text(journal.start_time),
        time_updated=time_of_text(data.get("lastUpdated")),
        data=data,
        messages=GeminiMessages(log, journal, problems),
    )


def _apply_records(journal: GeminiJournal, records: GeminiRecords) -> Iterator[Problem]:
    for line, record in records:
        try:
            journal.apply_record(line, record)
        except ValueError as error:
            yield records.problem_of_record(f"record skipped: it {error}", line)
    yield from records.problems_of_lines


def _directory_in_log(log: GeminiLog, journal: GeminiJournal) -> str:
    """Return the directory of the first message, or else of the metadata."""
    directory = directory_in_text(journal.context, log.project_hash)
    if directory:
        return directory
    for item in as_list(journal.metadata.get("directories")):
        if text(item) and item:
            return item
    return ""


def _call_of(session: str, parent_log: GeminiLog) -> str | None:
    """Return the call that started a subagent: the one with its id."""
    for record in records_naming(parent_log.path, session):
        for call in objects_in(record.get("toolCalls")):
            if call.get("agentId") == session:
                return as_text(call.get("id"))
    return None


@dataclass(frozen=True, slots=True)
class GeminiMessages:
    """The messages of a log and their problems; read again each time."""

    log: GeminiLog
    journal: GeminiJournal
    #: Those of the records that could not be applied.
    problems: list[Problem]

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the messages by their places; memory holds one, and the ids of all."""
        outputs = outputs_of(self.log)

        with records_of(self.log.path) as records:
            for entry, parent in self.journal.ordered_entries():
                yield self._read_message(records, entry, parent, outputs)
        yield from self.problems

    def _read_message(
        self,
        records: GeminiRecords,
        entry: JournalEntry,
        parent: str | None,
        outputs: Outputs,
    ) -> SourceMessage | Problem:
        try:
            check_id(entry.name)
            record = merge_versions(entry, records.record_of_version)
            record.setdefault("type", kind_of(record))
            draft = message_draft(record, entry.name)
        except ValueError as error:
            message = f"message {abridged(entry.name)} {error}"
            return records.problem_of_record(message, entry.kept_versions[-1].line)

        draft = outputs.add_outputs(draft)
        # Nothing is ever copied; ids of messages are those of one session.
        usage_id = f"{self.log.session}/{entry.name}"
        return SourceMessage(draft, parent, fitting(usage_id, usable_id))
