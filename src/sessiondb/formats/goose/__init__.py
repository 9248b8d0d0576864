"""Goose: a SQLite database of all sessions, before it a log for each, and its export.

Each of the three layouts is one kind of `layouts.Layout`, which gives the records of a
session as Goose exports them. `reader` makes sessions of any of them, `visibility`
decides which messages the agent still sees, `usage` makes one event of the sums, and
`drafts` makes messages of records. `records` and `writer` make an export again.
`places` has the folders of the program.
"""

from __future__ import annotations

from pathlib import Path

from sessiondb.formats.goose.database import NAME, is_store
from sessiondb.formats.goose.export_file import is_export
from sessiondb.formats.goose.logs import is_log
from sessiondb.formats.goose.places import default_locations
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import SUFFIXES
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_READER = "sessiondb.formats.goose.reader"
_read_database = late_reader(_READER, "read_database")
_read_log = late_reader(_READER, "read_log")
_read_export = late_reader(_READER, "read_export")


def _goose_store_at(path: Path) -> ForeignStore | None:
    """Return the database, the log or the export that is exactly at *path*."""
    if not is_file(path):
        return None
    if path.suffix in SUFFIXES and is_store(path):
        return ForeignStore("goose", path, _read_database)
    if path.suffix == ".jsonl" and is_log(path):
        return ForeignStore("goose", path, _read_log)
    if path.suffix == ".json" and is_export(path):
        return ForeignStore("goose", path, _read_export)
    return None


FORMAT = Format(
    SUFFIXES | {".jsonl", ".json"},
    _goose_store_at,
    default_locations,
    names=frozenset({NAME}),
)
