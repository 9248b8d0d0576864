"""Lines to sessions, exactly as they were, parents first.

A file whose records do not fit together is read as far as they do: a message whose
first line is lost is a problem, the messages below it are kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.logs import GLANCE_LINES, are_ours
from sessiondb.formats.jsonl.records import Record, pick_fields
from sessiondb.formats.jsonl.scan import LoggedSession, Scan, directory_of
from sessiondb.formats.jsonl.state import LoggedState
from sessiondb.formats.kit.heads import objects_of
from sessiondb.formats.kit.json import object_of, text_of
from sessiondb.formats.kit.lines import Line, Lines, open_pieces, opened
from sessiondb.formats.kit.order import parents_first
from sessiondb.model import (
    ExtensionRow,
    MessageDraft,
    PartDraft,
    Problem,
    SourceMessage,
    SourceSession,
    StoredMessage,
    StoredSession,
    Todo,
    Tokens,
    versions,
)

_PIPE_BYTES = 1 << 20
#: Errors of records that do not fit together, whatever their values are.
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, RecursionError)
_RESULT = ("text", "data", "time_updated", *records.RESULT_FIELDS)
_PART = (
    "input",
    "text",
    "synthetic",
    "time_updated",
    *records.PART_FIELDS,
    *records.RESULT_FIELDS,
)
#: Where a team keeps logs: directories in them are relative to the project.
SYNC_FOLDER = (".sessiondb", "sessions")


def read_log_file(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file, parents first; raises `SourceError`."""
    with opened(path) as lines:
        yield from read_lines(lines)


def read_stream(file: IO[bytes], name: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a pipe, packed or not, as if it were the file *name*.

    It is kept in a temporary file, because messages are read in a second pass.
    """
    with open_pieces(name, iter(partial(file.read, _PIPE_BYTES), b"")) as lines:
        beginning = [raw for _, raw in islice(lines, GLANCE_LINES)]
        if are_ours(beginning, objects_of(beginning)):
            yield from read_lines(lines)
        else:
            reason = (
                "not a log of sessiondb" if beginning else "there is nothing to read"
            )
            yield lines.problem(reason)


def read_lines(lines: Lines) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a log that stays open until the last, parents first."""
    scan = Scan(lines)
    yield from scan.problems

    for session in _parents_first(scan.sessions):
        if session.meta is None:
            reason = f"session {session.id!r:.80} has no session_meta"
            yield scan.problem(reason, session.first)
            continue

        try:
            state = LoggedState(scan, session, session.meta)
            yield from state.problems
            yield session_of(scan, session, state)
        except _UNREADABLE as error:
            yield scan.problem(f"session {session.id!r:.80}: {error}", session.first)


def _parents_first(sessions: dict[str, LoggedSession]) -> Iterator[LoggedSession]:
    def parent_of(name: str) -> str | None:
        parent = sessions[name].lineage.get("parent_id")
        return parent if isinstance(parent, str) else None

    # The importer reports cycles: in a log nothing but damage causes them.
    for name, _ in parents_first(sessions, parent_of):
        yield sessions[name]


def session_of(scan: Scan, logged: LoggedSession, state: LoggedState) -> SourceSession:
    """Return a session; raises `_UNREADABLE` if its values cannot be."""
    meta, stat = state.meta, scan.lines.stat
    lineage, project = logged.lineage, object_of(meta.get("project"))
    base = _project_folder(scan.lines.path)
    # In a folder of logs, a project is where the folder is.
    worktree = project.get("worktree", None if base is None else ".")
    source_id = meta.get("source_id")

    title, title_source = state.value_of(versions.TITLE, ("", "derived"))
    data = dict(state.value_of(versions.DATA, {}))
    if logged.unknown:
        data[records.UNKNOWN] = logged.unknown

    todos = [
        Todo(**dict(zip(records.TODO_FIELDS, values, strict=True)))
        for values in state.value_of(versions.TODOS, ())
    ]
    metadata = {
        key: value for key, (value,) in state.values_below(versions.METADATA).items()
    }
    summary = state.value_of(versions.SUMMARY, (None,) * len(versions.SUMMARY_FIELDS))

    return SourceSession(
        source=text_of(meta["source"]),
        source_id=logged.id if source_id is None else text_of(source_id),
        path=str(scan.lines.path),
        digest=logged.digest.hexdigest(),
        messages=messages_of(scan, logged),
        title=title,
        title_source=title_source,
        directory=_absolute_directory(meta.get("directory", ""), base),
        worktree=_absolute_directory(worktree, base),
        vcs=project.get("vcs"),
        root_commit=project.get("root_commit"),
        remote=project.get("remote"),
        parent_source_id=lineage.get("parent_source_id"),
        relation=lineage.get("relation"),
        call_id=lineage.get("call_id"),
        metadata=metadata,
        todos=tuple(todos),
        diffs=tuple(state.diffs),
        time_created=meta["time"],
        time_updated=state.time_updated,
        time_archived=state.value_of(versions.ARCHIVED),
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        data=data,
        namespace=text_of(meta.get("namespace", "")),
        stored=_stored_session(logged, state),
        extension_rows=_extension_rows_of(scan, logged),
        **pick_fields(meta, ("version", "agent", "provider_id", "model_id")),
        **dict(zip(versions.SUMMARY_FIELDS, summary, strict=True)),
        **{name: state.value_of(name) for name in versions.PLAIN},
    )


def _stored_session(logged: LoggedSession, state: LoggedState) -> StoredSession:
    meta = state.meta
    last = next(reversed(logged.messages), None)
    return StoredSession(
        id=logged.id,
        native=meta.get("source_id") is None,
        slug=meta.get("slug"),
        leaf=state.value_of(versions.LEAF) if state.names_leaf else last,
        revision=state.revision,
        last_seq=state.last_seq,
        time_detached=state.time_detached,
        labels=tuple(
            (m, label) for label, m in state.values_below(versions.LABEL).items()
        ),
        prompts=tuple(logged.prompts.values()),
        versions=state.versions,
        diff_messages=tuple(state.diff_messages),
        seen=state.seen,
        deleted=state.deleted,
        **pick_fields(meta, ("time_imported", "model_source")),
        **pick_fields(logged.lineage, ("root_id", "parent_id", "parent_seq")),
    )


def _project_folder(path: Path) -> str | None:
    absolute = path.absolute()
    is_synced = absolute.parent.parts[-2:] == SYNC_FOLDER
    return str(absolute.parents[2]) if is_synced else None


def _absolute_directory(directory: Any, base: str | None) -> Any:
    directory = directory_of(directory)
    if not directory or base is None:
        return directory

    # A log that another person wrote must not lead out of the project.
    path = os.path.normpath(Path(base, directory))
    return path if Path(path).is_relative_to(base) else base


def messages_of(scan: Scan, logged: LoggedSession) -> Iterator[SourceMessage | Problem]:
    """Yield the messages of a session, each read when its turn comes."""
    for message_id, lines in logged.messages.items():
        try:
            yield _message_of(message_id, list(_complete_records(scan, lines)))
        except _UNREADABLE as error:
            yield scan.lines.refused_subject(
                f"message {message_id!r:.80}", error, lines[0]
            )


def _extension_rows_of(
    scan: Scan, logged: LoggedSession
) -> Iterator[ExtensionRow | Problem]:
    """Yield the rows that programs added, each read when its turn comes."""
    for line in logged.extension_rows:
        try:
            record = scan.read_record(line)
            names = text_of(record["extension"]), text_of(record["table"])
            yield ExtensionRow(*names, dict(record["row"]))
        except _UNREADABLE as error:
            yield scan.lines.skipped_line(error, line)


def _complete_records(scan: Scan, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield the records of a message, blobs put in, those that end something last."""
    read_records = [scan.read_record(line) for line in lines]
    for record in sorted(read_records, key=lambda r: r["type"] in records.ENDING_TYPES):
        _put_blobs_in(scan, record)
        for part in record.get("parts", ()):
            _put_blobs_in(scan, part)
        yield record


def _put_blobs_in(scan: Scan, record: Record) -> None:
    if "text_blob" in record:
        record["text"] = scan.blob_text(record["text_blob"])
    if "input_blob" in record:
        record["input"] = json.loads(scan.blob_bytes(record["input_blob"]))


def _message_of(message_id: str, entries: list[Record]) -> SourceMessage:
    head, end, parts = _merge_records(entries)
    if "type" not in head:
        raise ValueError("its first record is missing")

    kind = head["type"]
    if kind in records.EVENT_TYPES:
        head["kind"] = kind

    # The end of an answer is a record of its own, that of any other message is not.
    closing = {**head, **end}
    tokens = closing.get("tokens")
    ordered = sorted(parts.values(), key=lambda part: part.get("idx", 0))
    draft = MessageDraft(
        role=records.MESSAGE_TYPES[kind],
        id=message_id,
        parts=tuple([_part_draft(part) for part in ordered]),
        tokens=None
        if tokens is None
        else Tokens(**pick_fields(tokens, Tokens.__slots__)),
        time_created=head["time"],
        data=object_of(head.get("data")),
        **pick_fields(head, records.STATED_FIELDS),
        **pick_fields(closing, (*records.END_FIELDS, "time_completed")),
    )

    stored = StoredMessage(
        head["seq"],
        inherited=head.get("inherited") is True,
        **pick_fields(head, records.KEY_FIELDS),
    )
    return SourceMessage(draft, parent=head["parent_id"], stored=stored)


def _merge_records(entries: list[Record]) -> tuple[Record, Record, dict[str, Record]]:
    """Return what begins a message, what ends it, and its parts by id."""
    head: Record = {}
    end: Record = {}
    parts: dict[str, Record] = {}

    for record in entries:
        kind = record["type"]
        if kind in records.MESSAGE_TYPES:
            head |= record
            for part in record.get("parts", ()):
                parts[text_of(part["part_id"])] = {**part, "idx": len(parts)}
        elif kind == "relinked":
            head["parent_id"] = record["parent_id"]
        elif kind == "assistant_finished":
            end = {**record, "time_completed": record["time"]}
        else:
            _add_part(parts, record)
    return head, end, parts


def _add_part(parts: dict[str, Record], record: Record) -> None:
    part_id = text_of(record["part_id"])
    if record["type"] != "tool_finished":
        kind = record["type"].partition("_")[0]
        parts[part_id] = {"part_type": kind, **record}
        return

    begun = parts.get(part_id)
    if begun is None:
        raise ValueError(f"a result without its call {part_id!r:.80}")
    parts[part_id] = {**begun, **pick_fields(record, _RESULT)}


def _part_draft(record: Record) -> PartDraft:
    return PartDraft(
        type=record["part_type"],
        id=record["part_id"],
        data=object_of(record.get("data")),
        time_created=record["time"],
        **pick_fields(record, _PART),
    )
