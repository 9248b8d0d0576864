"""Sessions as plain logs: their own records again, or records made of any session."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from sessiondb.formats.event_log.fields import RENAMED
from sessiondb.formats.event_log.reader import SOURCE
from sessiondb.formats.event_log.records import answer_records, is_answer, record_of
from sessiondb.formats.event_log.writer import Writer
from sessiondb.formats.kit.conversion import is_from, is_native
from sessiondb.formats.kit.fields import as_object
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss, Message

Record = dict[str, Any]


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a log for each session, and what it does not hold."""
    del detail, together  # a session is a file, and nothing can be left out of it
    for export in sessions:
        losses: list[Loss] = []
        name = file_name(export.session.source_id or export.session.id)
        lines = (f"{_line(record)}\n" for record in records(export, losses))
        yield Document(f"{name}.jsonl", lines)
        yield from losses


def records(export: Export, losses: list[Loss]) -> Iterator[Record]:
    """Yield the records of a session; *losses* grow while they are read."""
    theirs = is_from(export.session, SOURCE)
    writer = Writer(export, losses)
    if not theirs:
        yield writer.numbered(writer.meta())
        for message in export.messages:
            yield from map(writer.numbered, writer.records(message))
        writer.lose_lists()
        return

    yield from _theirs(export, writer)


def _theirs(export: Export, writer: Writer) -> Iterator[Record]:
    meta = as_object(export.session.data.get("session_meta"))
    if meta:
        yield dict(meta)

    late: deque[tuple[int, Record]] = deque()
    between = 0
    for message in export.messages:
        if is_native(message.id) or is_answer(message):
            yield from (record for _, record in late)
            late, between = deque(_answer(message, writer)), 0
        else:
            yield writer.follow(record_of(message))
            between += 1
        while late and late[0][0] <= between:
            yield late.popleft()[1]
    yield from (record for _, record in late)

    if export.session.title_source == "user":
        time = export.session.time_updated
        record = {"time": time, "type": RENAMED, "title": export.session.title}
        yield writer.numbered(record)


def _answer(message: Message, writer: Writer) -> Iterator[tuple[int, Record]]:
    if is_answer(message):
        for between, record in answer_records(message):
            yield between, writer.follow(record)
    else:
        for record in writer.records(message):
            yield 0, writer.numbered(record)


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


EXPORTER = Exporter(write)
