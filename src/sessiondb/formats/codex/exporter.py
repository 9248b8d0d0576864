"""Sessions as rollouts of Codex, each where its home has it.

A rollout by Codex is written as it was: what it continues is in another one. At the
detail `COMPLETE` it has all of that itself, so that Codex can continue it alone. A
session of another program becomes a complete rollout as of 2025, which each release
continues; Codex makes the rest of its home from that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from sessiondb.formats.codex.logs import FOLDERS, ids_in_name, rollouts_of
from sessiondb.formats.codex.records import record_of
from sessiondb.formats.codex.writer import CodexWriter, title_record
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Names, continued_path, is_from, is_native
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    fitting,
    integer,
    is_object,
    text,
    value_at,
    without_keys,
)
from sessiondb.formats.kit.naming import MARK, file_name, uuid_of
from sessiondb.formats.kit.texts import json_line, text_of_time
from sessiondb.formats.protocol import Exporter, Handover, Written
from sessiondb.model import Document, Export, Loss, Message, Session
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: The detail of a rollout that Codex continues: it needs no other one.
COMPLETE = "complete"
#: Keys of a record and of a header that only rollouts with ordinals have.
_NUMBERED = ("ordinal",)
_REFERRING = (
    "forked_from_id",
    "forked_from_ordinal_exclusive",
    "history_base",
    "history_mode",
)
_DATED = late_pattern(r"rollout-(\d{4})-(\d\d)-(\d\d)T")


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield the rollouts of each session, and what they do not hold."""
    del together  # a session is a file
    for export in sessions:
        losses = Losses()
        if detail == COMPLETE:
            # Codex continues no session that is archived.
            session = replace(export.session, time_archived=None)
            export = replace(export, session=session)  # noqa: PLW2901
        if not is_from(export.session, "codex"):
            yield from _write_as_new(export, losses)
        elif detail == COMPLETE:
            yield from _write_alone(export, losses)
        else:
            yield from _write_back(export, losses)
        yield from losses


# -- sessions of Codex -----------------------------------------------------------


def _write_back(export: Export, losses: Losses) -> Iterator[Document]:
    """Yield the rollouts of a session that Codex wrote, one more for each revert."""
    session = export.session
    if _is_named(session):
        loss = "its name: Codex keeps it beside the rollout"
        losses.add_loss(session.id, "session", "title", reason=loss)

    records = _numbered_records(export, losses)
    for file, records_of_file in groupby(records, lambda record: record[0]):
        lines = (_line_of(record) for _, record in records_of_file)
        yield Document(_path_in_home(session, file), lines)


def _numbered_records(export: Export, losses: Losses) -> Iterator[tuple[str, Record]]:
    """Yield the records of a session that Codex wrote, each with its rollout.

    Those of messages that were added here have ordinals if those before them do.
    """
    last: int | None = None
    for file, is_added_here, records in _records_by_message(export, losses):
        for record in records:
            if is_added_here and last is not None:
                record["ordinal"] = last + 1
            last = fitting(record.get("ordinal"), integer, last)
            yield file, record


def _records_by_message(
    export: Export, losses: Losses
) -> Iterator[tuple[str, bool, Iterable[Record]]]:
    """Yield the records of each message: their rollout, and if they are added here."""
    session = export.session
    names = Names(session.source_id or session.id)
    writer = CodexWriter(export, [], losses, names)
    file = _first_file_of(session)
    header = as_object(session.data.get("header"))
    if header:
        yield file, False, [dict(header)]

    for message in export.messages:
        if "copied_from" in message.data:
            # Its record is in a rollout of another session.
            continue
        file = fitting(message.data.get("segment"), text, file)
        if is_native(message.id):
            yield file, True, writer.add(message)
        else:
            yield file, False, [record_of(message)]

    yield file, True, writer.end()
    writer.lose_rest(is_own=True)


# -- rollouts that need no other one -----------------------------------------------


def _write_alone(export: Export, losses: Losses) -> Iterator[Document]:
    """Yield a session as one rollout that continues no other."""
    # The messages are read more than once.
    export = replace(export, messages=list(export.messages))
    header = _stored_header(export)
    if header and not _has_other_rollouts(export, header):
        yield from _write_back(export, losses)
        return

    session = export.session
    thread = session.source_id or session.id
    header = header or _new_header(session, thread)
    facts = without_keys(_REFERRING, as_object(header.get("payload")))
    # Its records have no ordinals, so an import must know what it is a copy of.
    head = without_keys(_NUMBERED, header) | {"payload": facts, MARK: session.id}
    records = _records_of_path(export, losses, Names(thread))
    file = _path_in_home(session, _first_file_of(session))
    yield Document(file, (_line_of(record) for record in chain([head], records)))


def _has_other_rollouts(export: Export, header: Record) -> bool:
    """Return whether a rollout is one of several: Codex needs all of them."""
    if value_at(header, "payload", "history_base"):
        return True
    return any(message.data.get("segment") for message in export.messages)


def _stored_header(export: Export) -> Record:
    """Return the header of the first rollout; empty if it is lost."""
    header = as_object(export.session.data.get("header"))
    if header:
        return header
    # One with the context of a model is a message.
    for message in export.messages:
        is_of_other = "copied_from" in message.data or "segment" in message.data
        if message.kind == "session_meta" and not is_of_other:
            return record_of(message)
    return {}


def _records_of_path(export: Export, losses: Losses, names: Names) -> Iterator[Record]:
    """Yield the records of the live path, after the header of a rollout."""
    path = continued_path(export, export.messages, losses)
    writer = CodexWriter(export, path, losses, names)
    is_of_codex = is_from(export.session, "codex")

    for index, message in enumerate(path):
        has_record = is_of_codex or _is_record(message)
        if is_native(message.id) or not has_record:
            yield from writer.write_message(message, index)
        # The headers of other rollouts name what this one does not continue.
        elif message.kind != "session_meta":
            # Its place was its id, so an import needs another one to find it again.
            yield without_keys(_NUMBERED, record_of(message)) | {MARK: message.id}

    yield from writer.end()
    writer.lose_rest(is_own=is_of_codex)


def _is_record(message: Message) -> bool:
    """Return whether a message is a record of Codex; a fork made here has those."""
    envelope = message.data
    return "timestamp" in envelope and is_object(envelope.get("payload"))


# -- of other programs -------------------------------------------------------------


def _write_as_new(export: Export, losses: Losses) -> Iterator[Document]:
    session = export.session
    # Codex finds a session by a UUID alone, and an import finds the original by it.
    thread = uuid_of(session.id)
    head = [_new_header(session, thread)]
    # Codex derives a title itself, which changes with the first prompt.
    if _is_named(session):
        title = title_record(thread, session.time_created, session.title)
        head.append({**title, MARK: session.id})

    records = _records_of_path(export, losses, Names(thread))
    file = _path_in_home(session, _new_file_name(session, thread))
    yield Document(file, (_line_of(record) for record in chain(head, records)))


def _new_header(session: Session, thread: str) -> Record:
    began = text_of_time(session.time_created)
    facts = {
        "id": thread,
        "timestamp": began,
        "cwd": session.required_directory,
        "originator": "sessiondb",
        "cli_version": "0.0.0",
        "source": "cli",
        "model_provider": "openai",
    }
    return {"timestamp": began, "type": "session_meta", "payload": facts}


def _is_named(session: Session) -> bool:
    return bool(session.title) and session.title_source != "derived"


# -- files -----------------------------------------------------------------------


def _new_file_name(session: Session, thread: str | None) -> str:
    began = text_of_time(session.time_created)[:19].replace(":", "-")
    return f"rollout-{began}-{thread or session.id}.jsonl"


def _first_file_of(session: Session) -> str:
    """Return the name of the first rollout of a session that Codex wrote."""
    name = as_text(session.data.get("rollout"))
    return name or _new_file_name(session, session.source_id)


def _path_in_home(session: Session, name: str) -> str:
    """Return the path of a rollout in a home, whose folders have its date."""
    safe = file_name(name)
    if session.time_archived is not None:
        return f"{FOLDERS[1]}/{safe}"

    match = _DATED.match(name)
    if match is not None:
        date = "/".join(match.groups())
    else:
        date = text_of_time(session.time_created)[:10].replace("-", "/")
    return f"{FOLDERS[0]}/{date}/{safe}"


def _line_of(record: Record) -> str:
    return f"{json_line(record)}\n"


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return the place of a rollout in the home of Codex."""
    header = json.loads(written.text.partition("\n")[0])
    thread = str(value_at(header, "payload", "id"))
    return Handover([], ["codex", "resume", thread], _home(env) / written.name)


def holds(thread: str, env: Mapping[str, str]) -> bool:
    """Return whether the home of Codex has a rollout of a session."""
    for log in rollouts_of(_home(env)):
        if isinstance(log, Path) and thread in (ids_in_name(log) or ()):
            return True
    return False


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or "~/.codex").expanduser()


EXPORTER = Exporter(
    write,
    read={"branches": True},
    details=("full", COMPLETE),
    take_in=take_in,
    taken=COMPLETE,
    holds=holds,
)
