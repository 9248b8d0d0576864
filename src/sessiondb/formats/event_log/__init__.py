"""The plain append-only log: JSON lines with ``schema_version seq time type``.

Our own `jsonl` descends from it, and names the session on each line; here the record
``session_meta`` alone does. `logs` recognises a log, `reader` finds the answers among
its records, `drafts` makes messages by the tables of `fields`, and `records` makes
records of them again. No program owns the format: where nothing says how a key is
spelled, `fields` has each spelling that is accepted.
"""

from __future__ import annotations

from pathlib import Path

from sessiondb.formats.event_log.logs import SOURCE, SUFFIXES, is_log
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_read_log = late_reader("sessiondb.formats.event_log.reader", "read")


def _at(path: Path) -> ForeignStore | None:
    if path.suffix in SUFFIXES and is_file(path) and is_log(path):
        return ForeignStore(SOURCE, path, _read_log)
    return None


FORMAT = Format(SUFFIXES, _at)
