"""The sessions of Qwen Code, read from their logs one record at a time.

A session is yielded after a look at the head of its log. Title and leaf are on later
lines, so that `complete` reads all of them once, and the messages once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    as_list,
    as_text,
    clean_name,
    fitting,
    take_fields,
    value_at,
)
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import OddRecordError, load_object, load_text, piece
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import (
    add_logs,
    log_digest,
    logs_below,
    read_in_order,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.qwen import fields
from sessiondb.formats.qwen.agents import AgentAnswers
from sessiondb.formats.qwen.drafts import as_usage, message_draft
from sessiondb.formats.qwen.logs import (
    QwenLog,
    is_archived,
    is_log,
    look_at,
    meta_of,
    outputs_of,
)
from sessiondb.formats.qwen.tree import QwenTree, request_of
from sessiondb.model import Problem, SourceMessage, SourceSession

Record = dict[str, Any]
#: The keys under which a result names files that have all of its output.
_OUTPUT_FILES = (
    ("toolCallResult", "resultDisplay", "outputFiles"),
    ("toolCallResult", "persistedOutputFiles"),
)
_NO_SESSION = "the log has no record of a session at its beginning"


def read_log(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log."""
    log = look_at(path)
    if log is not None:
        yield from _read_head(log)


def read_folder(folder: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a project, or its subagents, parents first."""
    logs: dict[str, QwenLog] = {}
    paths = logs_below(folder, is_log)
    yield from add_logs(paths, look_at, logs, without_session=_NO_SESSION)
    yield from read_in_order(logs, _read_head)


def _read_head(log: QwenLog) -> Iterator[SourceSession | Problem]:
    if log.meta_problem is not None:
        yield log.meta_problem
    yield session_of_head(log)


def session_of_head(log: QwenLog) -> SourceSession:
    """Return the session of a log by its head."""
    data, head = dict(log.meta), log.head
    # The description of a subagent is more exact than its first record.
    columns = {"agent": head.agent, **take_fields(data, fields.META)}
    digest = log_digest(log.path, meta_of(log.path))
    if log.meta_problem is not None:
        # A description that cannot be read now is read again.
        digest += " odd"

    return SourceSession(
        "qwen",
        log.session,
        str(log.path),
        digest,
        parent_source_id=log.parent,
        relation=log.relation,
        directory=head.directory,
        version=head.version,
        time_created=head.time_created,
        time_archived=_archived_time(log.path),
        complete=partial(_complete_session, log),
        data=data,
        **columns,
    )


def _archived_time(path: Path) -> int | None:
    """Return the last change of an archived log: the time of archiving is lost."""
    size_and_time = file_stamp(path) if is_archived(path) else None
    return None if size_and_time is None else size_and_time[1] // 1_000_000


def _complete_session(log: QwenLog) -> SourceSession:
    """Return a session with everything in its log."""
    tree = QwenTree()
    columns: Record = {}
    with opened(log.path) as lines:
        for _, record in _records_on(lines):
            # The last title and time count.
            title = _title_of(record)
            if title is not None:
                columns["title"] = title
            time = time_of_text(record.get("timestamp"))
            if time is not None:
                columns["time_updated"] = time

            # The ids are those that the messages get when they are read.
            tree.response_id_of(record)
            tree.place_record(record)

    messages = QwenMessages(log, frozenset(tree.answered))
    return replace(session_of_head(log), leaf=tree.leaf, messages=messages, **columns)


def _title_of(record: Record) -> str | None:
    if record.get("subtype") != "custom_title":
        return None
    title: str | None = fitting(
        value_at(record, "systemPayload", "customTitle"), clean_name
    )
    return title


@dataclass(frozen=True, slots=True)
class QwenMessages:
    """The messages of a log and their problems; read again each time."""

    log: QwenLog
    #: The uuids of the requests whose answers are in the log.
    answered: frozenset[str]

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the log; memory holds one record, and the ids of all."""
        with opened(self.log.path) as lines:
            reading = _QwenReading(self.log, lines, self.answered)
            for line, record in _records_on(lines):
                yield reading.read_message(line, record)
            yield from lines.problems


class _QwenReading:
    """One pass over a log."""

    def __init__(self, log: QwenLog, lines: Lines, answered: frozenset[str]) -> None:
        self._lines = lines
        self._tree = QwenTree()
        self._outputs = outputs_of(log)
        self._answered = answered
        self._agent_answers = AgentAnswers(log)

    def read_message(self, line: Line, record: Record) -> SourceMessage | Problem:
        """Return the message of the next record."""
        tree = self._tree
        if self._lines.problems:
            tree.note_damage()

        uuid = as_text(record.get("uuid"))
        response_id = tree.response_id_of(record)
        is_usage = self._is_usage(record)
        name, parent = tree.place_record(record)
        tree.find_first_kept(record)
        tree.add_content(record, name)

        try:
            draft = message_draft(record, name)
        except ValueError as error:
            return self._lines.problem(f"record {abridged(name)} {error}", line)

        if is_usage:
            draft = as_usage(draft)
        elif draft.role != "assistant":
            # Other records that follow a request are not its response.
            response_id = None

        files: list[Any] = []
        for path in _OUTPUT_FILES:
            files += as_list(value_at(draft.data, *path))
        draft = self._outputs.add_outputs(draft, *files)
        draft = replace(draft, response_id=response_id)
        # A fork copies records with their uuid.
        usage_id = (response_id or uuid) if draft.tokens else None
        return SourceMessage(draft, parent=parent, usage_id=usage_id)

    def _is_usage(self, record: Record) -> bool:
        """Return whether only this record has the usage of a request.

        Titles, memories and empty answers are not recorded. A subagent has its
        answers in its own log.
        """
        event = request_of(record)
        if not event or as_text(record.get("uuid")) in self._answered:
            return False
        return not self._agent_answers.take_answer(event)


# -- records -------------------------------------------------------------------


def _records_on(lines: Lines) -> Iterator[tuple[Line, Record]]:
    """Yield the objects of a log; two writers may have put several on one line."""
    for line, _, (records, error) in lines.records(_load_line):
        for record in records:
            yield line, record
        if error is not None:
            message = f"rest of the line skipped: {error}"
            lines.problems.append(lines.problem(message, line))


def _load_line(raw: bytes) -> tuple[list[Record], str | None]:
    """Return the objects of a line, and why the rest of it cannot be read."""
    try:
        # Nearly all lines: the rest of this function is slower.
        return [load_object(raw)], None
    except OddRecordError as error:
        records, rest = _split_objects(raw.decode("utf-8", "replace").strip())
        if not records:
            raise

        return records, f"it {error}" if rest else None


def _split_objects(line: str) -> tuple[list[Record], str]:
    """Return the objects that follow each other at the beginning of a line."""
    objects: list[Record] = []
    while line.startswith("{"):
        try:
            _, end = piece(line, 0)
            objects.append(load_text(line[:end]))
        except (ValueError, RecursionError):
            break

        line = line[end:].lstrip()
    return objects, line
