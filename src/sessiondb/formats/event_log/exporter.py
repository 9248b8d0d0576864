"""Sessions as plain logs: their own records again, or records made of any session."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from sessiondb.formats.event_log.fields import RENAMED
from sessiondb.formats.event_log.logs import SOURCE
from sessiondb.formats.event_log.records import (
    answer_records,
    is_answer,
    is_record,
    record_of,
)
from sessiondb.formats.event_log.writer import EventLogWriter, name_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import is_from
from sessiondb.formats.kit.fields import as_object
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.texts import json_line
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Message

Record = dict[str, Any]


def _write_log(export: Export, losses: Losses) -> Iterator[Document]:
    name = file_name(name_of(export.session))
    lines = (f"{json_line(record)}\n" for record in records(export, losses))
    yield Document(f"{name}.jsonl", lines)


def records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield the records of a session; *losses* grow while they are read."""
    writer = EventLogWriter(export, losses)
    if is_from(export.session, SOURCE):
        yield from _their_records(export, writer)
    else:
        yield writer.numbered(writer.meta())
        for message in writer.count_messages(export.messages):
            for record in writer.records(message):
                yield writer.numbered(record)
    if export.session.relation and export.parent is None:
        writer.lose(field="relation")
    writer.lose_rest(is_own=is_from(export.session, SOURCE))
    writer.lose_branches()


def _their_records(export: Export, writer: EventLogWriter) -> Iterator[Record]:
    meta = as_object(export.session.data.get("session_meta"))
    if meta:
        yield dict(meta)

    late: deque[tuple[int, Record]] = deque()
    between = 0
    for message in writer.count_messages(export.messages):
        answer = _records_of_answer(message, writer)
        if answer is None:
            yield writer.follow(record_of(message))
            between += 1
        else:
            # A message in between may be gone: nothing waits for more than one answer.
            yield from _take_due(late)
            late, between = deque(answer), 0
        yield from _take_due(late, between)
    yield from _take_due(late)

    # A title by the agent is in the records already.
    if export.session.title_source == "user":
        time = export.session.time_updated
        record = {"time": time, "type": RENAMED, "title": export.session.title}
        yield writer.numbered(record)


def _take_due(
    late: deque[tuple[int, Record]], between: float = inf
) -> Iterator[Record]:
    """Yield the records of an answer that have *between* messages before them."""
    while late and late[0][0] <= between:
        yield late.popleft()[1]


def _records_of_answer(
    message: Message, writer: EventLogWriter
) -> Iterable[tuple[int, Record]] | None:
    """Return several records of one message; None if it was a single one."""
    if is_answer(message):
        records = answer_records(message)
        return [(between, writer.follow(record)) for between, record in records]
    if is_record(message):
        return None
    return [(0, writer.numbered(record)) for record in writer.records(message)]


EXPORTER = Exporter(one_by_one(_write_log))
