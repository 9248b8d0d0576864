"""Goose: a SQLite database of all sessions, before it a log for each, and its export.

Each of the three layouts is one kind of `layouts.Layout`, which gives the records of a
session as Goose exports them. `reader` makes sessions of any of them, `visibility`
decides which messages the agent still sees, `usage` makes one event of the sums, and
`drafts` makes messages of records. `records` and `writer` make an export again.
`places` has the folders of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiondb.formats.goose.database import is_store
from sessiondb.formats.goose.export_file import is_export
from sessiondb.formats.goose.logs import is_log
from sessiondb.formats.goose.places import default_locations
from sessiondb.formats.goose.reader import SOURCE, read_database, read_export, read_log
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import SUFFIXES
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]

_KINDS = {
    **dict.fromkeys(SUFFIXES, (is_store, read_database)),
    ".jsonl": (is_log, read_log),
    ".json": (is_export, read_export),
}


def _at(path: Path) -> Iterator[ForeignStore]:
    """Yield the database, the log or the export that is exactly at *path*."""
    kind = _KINDS.get(path.suffix)
    if kind is None or not is_file(path):
        return

    is_kind, read = kind
    if is_kind(path):
        yield ForeignStore(SOURCE, path, read)


FORMAT = Format(frozenset(_KINDS), _at, default_locations)
