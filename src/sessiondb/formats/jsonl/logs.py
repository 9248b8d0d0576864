"""How a file of sessiondb is recognised: by the envelope of its first records."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.event_log.logs import is_plain
from sessiondb.formats.jsonl.scan import record_at
from sessiondb.formats.kit import packed
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.heads import first_lines, first_objects
from sessiondb.formats.kit.remembered import known_fact
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

SOURCE = "jsonl"
SUFFIXES = packed.SUFFIXES | {".jsonl"}
#: Lines, and bytes, that show whether a file is one of our logs.
GLANCE_LINES, GLANCE_BYTES = 20, 1 << 20
_read_log_file = late_reader("sessiondb.formats.jsonl.reader", "read_log_file")


def at(path: Path) -> ForeignStore | None:
    """Return the file at *path* if it is one of our logs."""
    if path.suffix in SUFFIXES and is_file(path) and _is_ours(path):
        return ForeignStore(SOURCE, path, _read_log_file)
    return None


def _is_ours(path: Path) -> bool:
    with suppress(SourceError):
        return bool(known_fact(path, "jsonl", _begins_like_ours))
    return False


def _begins_like_ours(path: Path) -> bool:
    lines = first_lines(path, GLANCE_LINES, longest=GLANCE_BYTES)
    objects = first_objects(path, GLANCE_LINES, longest=GLANCE_BYTES)
    return are_ours(lines, objects)


def are_ours(lines: list[bytes], objects: Iterable[dict[str, Any]]) -> bool:
    """Return whether a file begins with our records: those of a plain log are not."""
    return any(_is_record(line) for line in lines) and not is_plain(objects)


def _is_record(line: bytes) -> bool:
    try:
        record_at(line)
    except (ValueError, RecursionError):
        # The last line may be cut, but our envelope comes first.
        return line.startswith(b'{"schema_version":') and b'"session_id":' in line[:400]
    return True


FORMAT = Format(SUFFIXES, at, names=frozenset({"*.jsonl", "*.jsonl.gz", "*.jsonl.zst"}))
