"""Sessions to lines: the same session always to the same bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any
from urllib.parse import quote

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.records import BLOB_BYTES, Record
from sessiondb.formats.jsonl.values import line_of
from sessiondb.formats.kit.fields import without_keys
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss, Message
from sessiondb.patterns import late_pattern

READ = {"branches": True, "resolve": False}
#: Fields that are texts or bytes; the name of the blob is in their place.
_LARGE = ("text", "patch")
_ALWAYS = ("input_blob", "before_blob", "after_blob")


def write_logs(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session, or *together* one bundle, parents first."""
    del detail  # nothing can be left out of our own log
    seen: set[str] = set()
    for export in sessions:
        name = file_name(export.session.id)
        yield Document(name, session_lines(export, seen if together else set()))


def file_name(session_id: str) -> str:
    """Return the name of a session's file: ids of agents may not be file names."""
    name = quote(session_id, safe="")
    if len(name) > 200 or name.startswith("."):
        digest = hashlib.sha256(session_id.encode()).hexdigest()
        name = f"{name[:160].lstrip('.')}~{digest[:16]}"
    return f"{name}.jsonl"


def session_lines(export: Export, seen: set[str] | None = None) -> Iterator[str]:
    """Yield the lines of one session; *seen* are the blobs that are in the file."""
    ids: dict[int, str] = {}
    # Lazy: the state is made when all messages have been read, and their ids are known.
    state = records.state_records(export, ids)
    yield from _unknown_lines(export)
    messages = _message_records(export, ids)
    rows = records.extension_records(export)
    yield from _lines_of_records(
        chain(records.head_records(export), messages, rows, state),
        set() if seen is None else seen,
    )


def about_lines(export: Export, ids: Mapping[int, str]) -> Iterator[str]:
    """Yield the lines of a session without its messages, whose *ids* are by seq."""
    yield from _unknown_lines(export)
    yield from _lines_of_records(
        chain(records.head_records(export), records.state_records(export, ids)), set()
    )


def message_lines(message: Message, ids: Mapping[int, str]) -> Iterator[str]:
    """Yield the lines of one message alone.

    *ids* are those of all messages of the session by seq, also of those that are
    missing: what follows one of them still names it as its parent.
    """
    parent_seq = message.parent_seq
    parent_id = None if parent_seq is None else ids.get(parent_seq)
    yield from _lines_of_records(records.message_records(message, parent_id), set())


def _unknown_lines(export: Export) -> Iterator[str]:
    """Yield the records of a newer release, whose types this one does not know."""
    unknown: Any = export.session.data.get(records.UNKNOWN, ())
    for record in unknown:
        yield line_of(record, lambda _: None)


def _lines_of_records(items: Iterable[Record], seen: set[str]) -> Iterator[str]:
    for record in items:
        yield from record_lines(record, seen)


def record_lines(record: Record, seen: set[str]) -> list[str]:
    """Return the lines of a record: blobs that are not *seen* yet, and its own."""
    blobs = _Blobs(seen)
    line = blobs.line_with_blobs(record)
    return [*blobs.new, line]


def _message_records(export: Export, ids: dict[int, str]) -> Iterator[Record]:
    """Yield the records of the messages, and add their *ids* by seq."""
    later: list[tuple[int, int | None, int]] = []
    for message in export.messages:
        ids[message.seq] = message.id
        parent_seq = message.parent_seq
        parent_id = None if parent_seq is None else ids.get(parent_seq)
        if parent_id is None:
            later.append((message.seq, parent_seq, message.time_created))
        yield from records.message_records(message, parent_id)

    # Only an import can leave a child before its parent.
    for seq, parent_seq, time in later:
        if parent_seq in ids:
            record = records.record_envelope("relinked", export.session.id, seq, time)
            yield record | {"message_id": ids[seq], "parent_id": ids[parent_seq]}


class _Blobs:
    """Takes large values out of records; ``new`` are the lines of their blobs."""

    def __init__(self, seen: set[str]) -> None:
        self._seen = seen
        self.new: list[str] = []

    def line_with_blobs(self, record: Record) -> str:
        """Return the line of a record."""

        def keep(value: bytes) -> str | None:
            return self._blob_name(record, value) if len(value) >= BLOB_BYTES else None

        return line_of(self._lift_blobs(record, record), keep)

    def _lift_blobs(self, part: Record, record: Record) -> Record:
        for name in _LARGE:
            value = part.get(name, "")
            if len(value) * 4 >= BLOB_BYTES:
                raw = value.encode("utf-8", "surrogatepass")
                if len(raw) >= BLOB_BYTES:
                    part = without_keys((name,), part)
                    part[f"{name}_blob"] = self._blob_name(record, raw)

        for name in _ALWAYS:
            if name in part:
                part[name] = self._blob_name(record, part[name])

        # The blobs of a part come before its message, not before the part.
        if "parts" in part:
            part["parts"] = [self._lift_blobs(item, record) for item in part["parts"]]
        return part

    def _blob_name(self, record: Mapping[str, Any], value: bytes | str) -> str:
        raw = value.encode() if isinstance(value, str) else value
        name = hashlib.sha256(raw).hexdigest()
        if name not in self._seen:
            self._seen.add(name)
            blob = _blob_record(
                name, raw, record["session_id"], record["seq"], record["time"]
            )
            self.new.append(line_of(blob, lambda _: None))
        return name


_PLAIN_TEXT = late_pattern(b"[^\x00-\x08\x0e-\x1f]*")


def _blob_record(name: str, raw: bytes, session_id: str, seq: int, time: int) -> Record:
    record = records.record_envelope("blob", session_id, seq, time) | {
        "hash": name,
        "size": len(raw),
    }
    # Text that any tool can show stays text, so that a log can be searched.
    with suppress(UnicodeDecodeError):
        if _PLAIN_TEXT.fullmatch(raw):
            return record | {"encoding": "utf-8", "data": raw.decode()}
    return record | {"encoding": "base64", "data": base64.b64encode(raw).decode()}


EXPORTER = Exporter(write_logs, READ, together=True, is_complete=True)
