"""How a plain log differs from our own and from those of programs: its first lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.event_log import fields
from sessiondb.formats.kit.logs import first_records
from sessiondb.formats.kit.packed import SUFFIXES as PACKED

Record = dict[str, Any]
#: Lines that are looked at.
HEAD_LINES = 20
SUFFIXES = PACKED | {".jsonl"}
META = "session_meta"


def is_log(path: Path) -> bool:
    """Return whether the file at *path* is a plain log; False if it cannot be read."""
    try:
        return is_plain(first_records(path, HEAD_LINES))
    except SourceError:
        return False


def is_plain(records: Iterable[Record]) -> bool:
    """Return whether *records*, the first of a file, are those of a plain log.

    Our own log has the session on each line, and the program in ``session_meta``.
    Codex has a ``session_meta``, too, but no version and no ``seq``.
    """
    found = list(filter(_has_envelope, records))
    said = [record for record in found if record["type"] != META]
    named = sum("session_id" in record for record in said)
    if said:
        is_known = len(said) < len(found) or any(map(_is_known, said))
        return is_known and named * 2 < len(said)
    return bool(found) and "source" not in found[0]


def _has_envelope(record: Record) -> bool:
    numbers = type(record.get("schema_version")), type(record.get("seq"))
    is_dated = any(key in record for key in fields.TIME)
    return numbers == (int, int) and type(record.get("type")) is str and is_dated


def _is_known(record: Record) -> bool:
    return record["type"] in fields.TYPES
