"""A plain log, read one record at a time; the records of an answer are one message.

A record after ``assistant_started``, up to the next answer or prompt, belongs to the
answer if it is a call or the end of it. Everything else in between is a message of its
own, and follows the answer: results above all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.event_log import fields
from sessiondb.formats.event_log.drafts import (
    Answer,
    check_record,
    message_draft,
    own_id,
    repeated_draft,
)
from sessiondb.formats.event_log.logs import HEAD_LINES, META, SOURCE
from sessiondb.formats.kit.fields import fitting, integer
from sessiondb.formats.kit.heads import first_objects
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import log_digest
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.remembered import remembered
from sessiondb.formats.kit.spelled import take_spelled
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession

Record = dict[str, Any]
MakeDraft = Callable[[Record, str], MessageDraft]
#: Records that end an answer whose end was not written.
_CLOSE = frozenset({"user_message", "user", META, "session_finished"})


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log."""
    head = head_of(path)
    if head is None:
        yield Problem(str(path), "the log has no session_meta with an id")
        return
    digest = log_digest(path)
    yield SourceSession(
        SOURCE,
        head.session,
        str(path),
        digest,
        directory=head.directory,
        parent_source_id=head.parent,
        relation=head.relation,
        time_created=head.time_created,
        complete=partial(_complete_session, path, digest),
    )


class EventLogHead(NamedTuple):
    """The facts of a session in the header of its log."""

    path: Path
    session: str
    parent: str | None
    relation: str | None
    #: "" if it is unknown.
    directory: str
    #: In Unix ms; None is unknown.
    time_created: int | None


@remembered("event-log header", EventLogHead)
def head_of(path: Path) -> EventLogHead | None:
    """Return what the header of a log says; None without one. Raises `SourceError`."""
    for record in first_objects(path, HEAD_LINES):
        if _is_meta(record):
            columns = _columns_of_header(record)
            return EventLogHead(
                path,
                columns["source_id"],
                columns.get("parent_source_id"),
                columns.get("relation"),
                columns.get("directory", ""),
                columns["time_created"],
            )
    return None


def _is_meta(record: Record) -> bool:
    if record.get("type") != META:
        return False
    return "source_id" in take_spelled(dict(record), fields.HEADER)


def _columns_of_header(meta: Record) -> Record:
    copy = dict(meta)
    columns = {
        "time_created": fields.take_time(copy),
        **take_spelled(copy, fields.HEADER),
    }
    relation = meta.get("relation")
    if relation in fields.RELATIONS:
        columns["relation"] = relation
    elif "parent_source_id" in columns:
        columns["relation"] = "fork"
    return columns


def _complete_session(path: Path, digest: str) -> SourceSession:
    """Return a session with its last title, and the time of its last record."""
    head = first_objects(path, HEAD_LINES)
    metas = [record for record in head if _is_meta(record)]
    if not metas:
        raise SourceError(f"{path} lost its session_meta")

    meta = metas[0]
    columns = _columns_of_header(meta)
    title = columns.pop("title", "")
    record: Record = {}
    with opened(path) as lines:
        for _, _, record in lines.records(load_object):
            if record.get("type") == fields.RENAMED:
                title = take_spelled(record, fields.TITLE).get("title", title)

    return SourceSession(
        SOURCE,
        path=str(path),
        digest=digest,
        messages=EventLogMessages(path, columns["source_id"]),
        title=title,
        time_updated=fields.take_time(record),
        # Anywhere else it stays among the records.
        data={"session_meta": dict(meta)} if meta is head[0] else {},
        **columns,
    )


class EventLogMessages:
    """The messages of a log and their problems; read again each time."""

    def __init__(self, path: Path, session: str) -> None:
        self._path = path
        self._session = session

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the log; memory holds an answer, and the places of records inside."""
        with opened(self._path) as lines:
            yield from _Reading(lines, self._session).messages()
            yield from lines.problems


class _Reading:
    """One pass over a log."""

    def __init__(self, lines: Lines, session: str) -> None:
        self._lines = lines
        self._names = RecordNames(session)
        self._answer: Answer | None = None
        #: Records before the end of the answer, which come after it here.
        self._held: list[tuple[Line, str, MakeDraft]] = []

    def messages(self) -> Iterator[SourceMessage | Problem]:
        last_raw = b""
        for line, raw, record in self._lines.records(load_object):
            if last_raw or not _is_meta(record):
                yield from self._read_record(line, record, raw == last_raw)
            last_raw = raw

        # The file may end inside of an answer.
        yield from self._end_answer()

    def _read_record(
        self, line: Line, record: Record, is_repeated: bool
    ) -> Iterator[SourceMessage | Problem]:
        try:
            kind = check_record(record)
        except OddRecordError as error:
            yield self._lines.skipped_line(error, line)
            return

        make = message_draft
        if is_repeated:
            make = repeated_draft
        elif fields.is_of_answer(record):
            yield from self._add_to_answer(line, record)
            return
        elif kind in _CLOSE:
            yield from self._end_answer()

        # A message inside of an answer follows it.
        name = self._names.of(record)
        if self._answer is None:
            yield self._make_message(line, name, record, make)
        else:
            self._held.append((line, name, make))

    def _add_to_answer(
        self, line: Line, record: Record
    ) -> Iterator[SourceMessage | Problem]:
        answer = self._answer
        if answer is None or not answer.takes(record):
            yield from self._end_answer()
            answer = Answer(self._names.of(record))

        try:
            answer.add(record, len(self._held))
        except OddRecordError as error:
            yield self._lines.skipped_line(error, line)
        else:
            self._answer = answer

    def _end_answer(self) -> Iterator[SourceMessage | Problem]:
        """Yield the answer, and then the messages inside."""
        if self._answer is None:
            return

        answer = self._answer.draft()
        yield SourceMessage(answer, open=answer.time_completed is None)
        # Places, not records: results of any size may be inside of one answer.
        for line, name, make in self._held:
            record = load_object(self._lines.read_line(line))
            yield self._make_message(line, name, record, make)
        self._answer, self._held = None, []

    def _make_message(
        self, line: Line, name: str, record: Record, make: MakeDraft
    ) -> SourceMessage | Problem:
        # A result from elsewhere has no id of its own.
        alias = fitting(record.get(MARK), usable_id)
        try:
            return SourceMessage(make(record, name), alias=alias)
        except OddRecordError as error:
            return self._lines.skipped_line(error, line)


class RecordNames:
    """The ids of the messages of a session: their own, else by their ``seq``."""

    def __init__(self, session: str) -> None:
        self._session = session
        #: Ids that were given; a record without one never begins a named message.
        self._own: set[str | None] = {None}
        self._last = -1
        self._odd = 0

    def of(self, record: Record) -> str:
        """Return the id of the message that begins with *record*."""
        record_name = own_id(record)
        # A result has the id of the answer that it belongs to.
        if record_name not in self._own and record["type"] != fields.RETURNED:
            self._own.add(record_name)
            return str(record_name)

        seq = record.get("seq")
        if integer(seq) and seq > self._last:
            self._last = seq
            return f"{self._session[:200]}:{seq}"

        # A number that was given before, or none: the place among these.
        self._odd += 1
        return f"{self._session[:200]}:~{self._odd}"
