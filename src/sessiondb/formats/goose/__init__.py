"""Goose: a SQLite database of all sessions, before it a log for each, and its export.

Each of the three layouts is one kind of `layouts.Layout`, which gives the records of a
session as Goose exports them. `reader` makes sessions of any of them, `visibility`
decides which messages the agent still sees, `usage` makes one event of the sums, and
`drafts` makes messages of records. `records` and `writer` make an export again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sessiondb.formats.goose.database import is_store
from sessiondb.formats.goose.export_file import is_export
from sessiondb.formats.goose.logs import is_log
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


#: A variable of the environment, and the folder of sessions below it. The first
#: releases wrote their logs below the configuration.
_PLACES = (
    ("GOOSE_PATH_ROOT", "data/sessions"),
    ("XDG_DATA_HOME", "goose/sessions"),
    ("APPDATA", "Block/goose/data/sessions"),
    ("HOME", ".local/share/goose/sessions"),
    ("HOME", ".config/goose/sessions"),
)


def _at(path: Path) -> Iterator[ForeignStore]:
    """Yield the database, the log or the export that is exactly at *path*."""
    kind = _KINDS.get(path.suffix)
    if kind is None or not is_file(path):
        return

    is_kind, read = kind
    if is_kind(path):
        yield ForeignStore(SOURCE, path, read)


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where Goose keeps its sessions (``paths.rs``), and where it kept them."""
    return [Path(env[name], below) for name, below in _PLACES if env.get(name)]


FORMAT = Format(frozenset(_KINDS), _at, _default_locations)
