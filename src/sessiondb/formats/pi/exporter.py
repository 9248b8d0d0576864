"""Sessions as logs of pi, version 3, which pi, oh-my-pi and xcsh open.

A log of theirs is written as it was. A session of another program becomes linked
records with complete answers, because pi reads their usage and model without a check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
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
from sessiondb.formats.pi.writer import Writer
from sessiondb.formats.protocol import Exporter, Handover, Written
from sessiondb.model import Document, Export, Loss, Message, Session

Record = dict[str, Any]
#: Their own logs are written with the branches that are not continued.
SOURCES = ("pi", "oh-my-pi", "xcsh")
#: The ids of their records, which no other program has.
_ID = re.compile(r"[0-9a-f]{8}([0-9a-f]{8})?")


def write(
    sessions: Iterable[Export], *, program: PiProgram = PI, **how: Any
) -> Iterator[Document | Loss]:
    """Yield a log for each session, as *program* opens it."""
    yield from one_by_one(partial(_log, _Stems(), program))(sessions, **how)


def _log(
    stems: _Stems, program: PiProgram, export: Export, losses: Losses
) -> Iterator[Document]:
    stem = stems.add(export.session)
    is_placed = "/" in stem
    written = records(export, losses, program, is_placed=is_placed)
    lines = (f"{_line(record)}\n" for record in written)
    yield Document(f"{stem}.jsonl", lines)


class _Stems:
    """The paths of the logs that are written, without their endings."""

    def __init__(self) -> None:
        self._by_session: dict[str | None, str] = {}
        self._written: set[str] = set()

    def add(self, session: Session) -> str:
        """Return the path of the log of *session*.

        A sub-agent of theirs keeps its name, in the folder of its parent's artifacts.
        """
        began = text_of_time(session.time_created).replace(":", "-").replace(".", "-")
        stem = f"{began}_{file_name(_name(session))}"

        parent = self._by_session.get(session.parent_id)
        own = session.data.get("log")
        if parent and text(own) and _is_theirs(session):
            inside = f"{parent}/{file_name(own)}"
            # Two stores may each have a sub-agent of that name and parent.
            stem = stem if inside in self._written else inside

        self._by_session[session.id] = stem
        self._written.add(stem)
        return stem


def _is_theirs(session: Session) -> bool:
    return any(map(partial(is_from, session), SOURCES))


def _name(session: Session) -> str:
    """Return the id of a session in pi; one from elsewhere is found by it again."""
    own = session.source_id if _is_theirs(session) else None
    return own or uuid_of(session.id)


def records(
    export: Export, losses: Losses, program: PiProgram, *, is_placed: bool
) -> Iterator[Record]:
    """Yield the records of a session; *losses* grow while they are read.

    *is_placed* says that the log of a sub-agent is in the folder of its parent's.
    """
    if _is_theirs(export.session):
        return _own(export, losses, program, is_placed=is_placed)

    # The messages can be read once.
    messages = iter(export.messages)
    first = [*islice(messages, 1)]
    read = replace(export, messages=chain(first, messages))
    if _is_fork_of_theirs(export, first):
        return _own(read, losses, program, is_placed=is_placed)
    return _converted(read, losses)


def _is_fork_of_theirs(export: Export, first: list[Message]) -> bool:
    """Return whether a session is a fork, made here, of a session of theirs.

    A fork of a fork is known by its *first* message.
    """
    parent = export.parent
    is_copy = any(message.inherited and _is_record(message) for message in first)
    is_known = parent is not None and _is_theirs(parent)
    return export.session.relation == "fork" and (is_known or is_copy)


def _is_record(message: Message) -> bool:
    """Return whether a message was a record of theirs, by its id and its time."""
    is_named = _ID.fullmatch(message.id) is not None
    return is_named and text(message.data.get("timestamp"))


def _own(
    export: Export, losses: Losses, program: PiProgram, *, is_placed: bool
) -> Iterator[Record]:
    """Yield the records of a log as they were, and then those that were added here."""
    session = export.session
    is_fork = not _is_theirs(session)
    slot = session.data.get("title_record") if program.is_titled else None
    # Of a log that lost its header, which no program of theirs opens, it is a new one.
    header = session.data.get("header") or _header(session)
    is_stray = text(session.data.get("log")) and not is_placed
    if not is_fork and (is_stray or not _says_its_program(session, program)):
        # It would be read as a session of another program, or as a fork.
        header = {**header, MARK: session.id}
    yield from map(dict, filter(None, (slot, header)))

    writer = Writer(export, losses)
    for message in writer.with_results(export.messages):
        above = writer.above(message)
        if is_native(message.id) or (is_fork and not message.inherited):
            yield from writer.records(message, above)
        # Settings of a header are in it, and the next record is the first one.
        elif message.id not in SETTINGS:
            record = record_of(message, above)
            record = _linked(record, message, above) if is_fork else record
            writer.copied(message, record)
            yield record

    yield from writer.end(is_named=not is_fork and _has_title(session, program))
    writer.lose_rest(is_own=True)


def _says_its_program(session: Session, program: PiProgram) -> bool:
    """Return whether a log for *program* is one of the program of its session.

    By more than its folder: all programs have records in common, and pi no other ones.
    """
    if not is_from(session, program.source):
        return False
    return program is PI or "title_record" in session.data


def _linked(record: Record, message: Message, above: str | None) -> Record:
    """Return a record with links: those of version 1 have none."""
    kept = message.data.get("first_kept_id", message.id)
    cut = {"firstKeptEntryId": kept} if record["type"] == "compaction" else {}
    links = {"type": record["type"], "id": message.id, "parentId": above}
    return {**links, **cut, **record}


def _has_title(session: Session, program: PiProgram) -> bool:
    """Return whether the records of a session of theirs give it the title it has."""
    is_written = program.is_titled or "title_record" not in session.data
    return is_written and session.title_source != "user"


def _converted(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield a session of another program as the records of a new log."""
    session = export.session
    yield _header(session)

    # Whether a call has a result of its own is known once all messages are.
    messages = with_usage(export.messages)
    writer = Writer(export, losses, messages)
    for message in messages:
        yield from writer.records(message, writer.above(message))
    yield from writer.end(is_named=False)
    writer.lose_rest()


def _header(session: Session) -> Record:
    return {
        "type": "session",
        "version": NEWEST,
        "id": _name(session),
        "timestamp": text_of_time(session.time_created),
        "cwd": session.directory,
    }


def _line(record: Record) -> str:
    return json_line(record)


def take_in(program: PiProgram, written: Written, env: Mapping[str, str]) -> Handover:
    """Return the place of a log in the store of *program*."""
    header = next(filter(is_header, map(json.loads, written.text.split("\n"))))
    place = program.folder_of(written.directory, env) / written.name
    return Handover([], [program.command, program.resume, header["id"]], place)


def exporter(program: PiProgram) -> Exporter:
    """Return the exporter of *program*."""
    return Exporter(
        partial(write, program=program),
        read={"branches": True},
        take_in=partial(take_in, program),
        holds=program.holds,
    )


EXPORTER = exporter(PI)
