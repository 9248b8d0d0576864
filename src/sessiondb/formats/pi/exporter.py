"""Sessions as logs of pi, version 3, which pi, oh-my-pi and xcsh open.

A log of theirs is written as it was. A session of another program becomes linked
records with complete answers, because pi reads their usage and model without a check.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import is_from, is_native
from sessiondb.formats.kit.fields import text
from sessiondb.formats.kit.naming import MARK, file_name, uuid_of
from sessiondb.formats.kit.texts import json_line, text_of_time
from sessiondb.formats.kit.turns import with_usage
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.pi.fields import NEWEST, SETTINGS
from sessiondb.formats.pi.logs import is_header
from sessiondb.formats.pi.places import PI, PiProgram
from sessiondb.formats.pi.records import record_of
from sessiondb.formats.pi.writer import PiWriter
from sessiondb.formats.protocol import Exporter, Handover, Written
from sessiondb.model import Document, Export, Loss, Message, Session
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: The programs whose logs are written with the branches that are not continued.
SOURCES = ("pi", "oh-my-pi", "xcsh")
#: The ids of their records, which no other program has.
_ID = late_pattern(r"[0-9a-f]{8}([0-9a-f]{8})?")


def write_logs(
    sessions: Iterable[Export], *, program: PiProgram = PI, **options: Any
) -> Iterator[Document | Loss]:
    """Yield a log for each session, as *program* opens it."""
    stems = LogStems()

    def log_of(export: Export, losses: Losses) -> Iterator[Document]:
        stem = stems.add_session(export.session)
        written = records_of_session(export, losses, program, is_placed="/" in stem)
        yield Document(
            f"{stem}.jsonl", (f"{json_line(record)}\n" for record in written)
        )

    yield from one_by_one(log_of)(sessions, **options)


class LogStems:
    """The paths of the logs that are written, without their endings."""

    def __init__(self) -> None:
        self._by_session: dict[str | None, str] = {}
        self._written: set[str] = set()

    def add_session(self, session: Session) -> str:
        """Return the path of the log of *session*.

        A subagent of pi's programs keeps its name, in the folder of its parent's
        artifacts.
        """
        created = text_of_time(session.time_created).replace(":", "-").replace(".", "-")
        stem = f"{created}_{file_name(_session_name(session))}"

        parent = self._by_session.get(session.parent_id)
        task = session.data.get("log")
        if parent and text(task) and _is_from_pi(session):
            stem_of_task = f"{parent}/{file_name(task)}"
            # Two stores may each have a subagent of that name and parent.
            if stem_of_task not in self._written:
                stem = stem_of_task

        self._by_session[session.id] = stem
        self._written.add(stem)
        return stem


def _is_from_pi(session: Session) -> bool:
    """Return whether a session was imported from pi, or from a descendant of it."""
    return any(is_from(session, source) for source in SOURCES)


def _session_name(session: Session) -> str:
    """Return the id of a session in pi; one from elsewhere is found by it again."""
    if session.source_id and _is_from_pi(session):
        return session.source_id
    return uuid_of(session.id)


def records_of_session(
    export: Export, losses: Losses, program: PiProgram, *, is_placed: bool
) -> Iterator[Record]:
    """Yield the records of a session; *losses* grow while they are read.

    *is_placed* says that the log of a subagent is in the folder of its parent's.
    """
    if _is_from_pi(export.session):
        return _own_records(export, losses, program, is_placed=is_placed)

    if export.session.relation == "fork":
        if export.parent is not None and _is_from_pi(export.parent):
            return _fork_records(export, losses)

        # A fork of a fork is known by its first message. Messages can be read once.
        messages = iter(export.messages)
        first = next(messages, None)
        if first is not None:
            export = replace(export, messages=chain([first], messages))
            if first.inherited and _is_record(first):
                return _fork_records(export, losses)
    return _converted_records(export, losses)


def _is_record(message: Message) -> bool:
    """Return whether a message was a record of pi, by its id and its time."""
    has_id = _ID.fullmatch(message.id) is not None
    return has_id and text(message.data.get("timestamp"))


def _own_records(
    export: Export, losses: Losses, program: PiProgram, *, is_placed: bool
) -> Iterator[Record]:
    """Yield the records of a log as they were, and then those that were added here."""
    session = export.session
    title_record = session.data.get("title_record")
    if title_record and program.is_titled:
        yield dict(title_record)
    # A log that lost its header gets a new one: no program of pi opens it without.
    header = session.data.get("header") or _new_header(session)
    is_stray = text(session.data.get("log")) and not is_placed
    if is_stray or not _is_log_for(program, session):
        # It would be read as a session of another program, or as a fork.
        header = {**header, MARK: session.id}
    yield dict(header)

    writer = PiWriter(export, losses)
    for message in writer.with_results(export.messages):
        parent_id = writer.parent_id(message)
        if is_native(message.id):
            yield from writer.records_of_message(message, parent_id)
        # Settings of a header are in it, and the next record is the first one.
        elif message.id not in SETTINGS:
            record = record_of(message, parent_id)
            writer.lose_added_files(message)
            writer.note_copied(message, record)
            yield record

    # Its records give it the title that it has, unless the user did.
    is_written = program.is_titled or not title_record
    is_named = is_written and session.title_source != "user"
    yield from writer.closing_records(is_named=is_named)
    writer.lose_rest(is_own=True)


def _is_log_for(program: PiProgram, session: Session) -> bool:
    """Return whether a log for *program* is one of the program of its session.

    By more than its folder: all programs have records in common, and pi no other ones.
    """
    if not is_from(session, program.source):
        return False
    return program is PI or "title_record" in session.data


def _fork_records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield the records of a fork that was made here of a session of pi."""
    yield _new_header(export.session)

    writer = PiWriter(export, losses)
    for message in writer.with_results(export.messages):
        parent_id = writer.parent_id(message)
        if is_native(message.id) or not message.inherited:
            yield from writer.records_of_message(message, parent_id)
        elif message.id not in SETTINGS:
            record = _with_links(record_of(message, parent_id), message, parent_id)
            writer.lose_added_files(message)
            writer.note_copied(message, record)
            yield record

    yield from writer.closing_records(is_named=False)
    writer.lose_rest(is_own=True)


def _with_links(record: Record, message: Message, parent_id: str | None) -> Record:
    """Return a record with links: those of version 1 have none."""
    links = {"type": record["type"], "id": message.id, "parentId": parent_id}
    if record["type"] == "compaction":
        first_kept = message.data.get("first_kept_id", message.id)
        links["firstKeptEntryId"] = first_kept
    return {**links, **record}


def _converted_records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield a session of another program as the records of a new log."""
    yield _new_header(export.session)

    # Whether a call has a result of its own is known once all messages are.
    messages = with_usage(export.messages)
    writer = PiWriter(export, losses, messages)
    for message in messages:
        yield from writer.records_of_message(message, writer.parent_id(message))
    yield from writer.closing_records(is_named=False)
    writer.lose_rest()


def _new_header(session: Session) -> Record:
    return {
        "type": "session",
        "version": NEWEST,
        "id": _session_name(session),
        "timestamp": text_of_time(session.time_created),
        "cwd": session.required_directory,
    }


def take_in(program: PiProgram, written: Written, env: Mapping[str, str]) -> Handover:
    """Return the place of a log in the store of *program*."""
    lines = [json.loads(line) for line in written.text.split("\n") if line]
    headers = [record for record in lines if is_header(record)]
    place = program.folder_of(written.directory, env) / written.name
    return Handover([], [program.command, program.resume, headers[0]["id"]], place)


def exporter_for(program: PiProgram) -> Exporter:
    """Return the exporter of *program*."""
    return Exporter(
        partial(write_logs, program=program),
        read={"branches": True},
        take_in=partial(take_in, program),
        holds=program.holds,
    )


EXPORTER = exporter_for(PI)
