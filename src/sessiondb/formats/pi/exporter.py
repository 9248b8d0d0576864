"""Sessions as logs of pi, version 3, which pi, oh-my-pi and xcsh open.

A log of theirs is written as it was. A session of another program becomes linked
records with complete answers, because pi reads their usage and model without a check.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from sessiondb.formats.kit.conversion import is_from, is_native
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.formats.pi.records import record_of
from sessiondb.formats.pi.writer import Writer
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss, Session

Record = dict[str, Any]
#: Their own logs are written with the branches that are not continued.
SOURCES = ("pi", "oh-my-pi", "xcsh")


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a log for each session, and what it does not hold."""
    del detail, together  # a session is a file, and nothing can be left out of it
    for export in sessions:
        losses: list[Loss] = []
        session = export.session
        began = text_of_time(session.time_created).replace(":", "-").replace(".", "-")
        name = f"{began}_{file_name(session.source_id or session.id)}.jsonl"
        lines = (f"{_line(record)}\n" for record in records(export, losses))
        yield Document(name, lines)
        yield from losses


def records(export: Export, losses: list[Loss]) -> Iterator[Record]:
    """Yield the records of a session; *losses* grow while they are read."""
    session = export.session
    theirs = any(map(partial(is_from, session), SOURCES))
    yield from _heads(session, theirs)

    # Whether a call has a result of its own is known once all messages are.
    messages = export.messages if theirs else list(export.messages)
    writer = Writer(export, losses, () if theirs else messages)
    for message in messages:
        above = writer.above(message)
        if theirs and not is_native(message.id):
            yield record_of(message, above)
            writer.wrote(message, message.id)
        else:
            yield from writer.records(message, above)
    if not theirs:
        writer.lose_lists()


def _heads(session: Session, theirs: bool) -> Iterator[Record]:
    if theirs and "title_record" in session.data:
        yield dict(session.data["title_record"])
    if theirs and "header" in session.data:
        yield dict(session.data["header"])
    if theirs:
        return

    yield {
        "type": "session",
        "version": 3,
        "id": session.source_id or session.id,
        "timestamp": text_of_time(session.time_created),
        "cwd": session.directory,
    }


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


EXPORTER = Exporter(write, read={"branches": True})
