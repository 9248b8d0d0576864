"""Where OpenCode keeps its stores, and what a store looks like.

One data directory may hold several generations of the same sessions: databases,
``storage/`` and ``project/*/storage/session``. The newest one that has a session
says what it is; an older one adds only what the newer ones lack.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.foreign import ForeignDatabase
from sessiondb.formats.opencode.database import Database
from sessiondb.formats.opencode.exported import Exported, Exported2, is_export
from sessiondb.formats.opencode.reader import FIRST, SECOND, SOURCE, Generation, read
from sessiondb.formats.opencode.sqlite import SQLiteRecords
from sessiondb.formats.opencode.sqlite2 import Records2
from sessiondb.formats.opencode.tree import TREE_05, TREE_1, TreeRecords, layout_of
from sessiondb.formats.store import Store
from sessiondb.model import Problem, SourceSession

#: Endings of files that are asked whether they are a store.
SUFFIXES = frozenset({".db", ".json"})
_GENERATIONS: tuple[tuple[Any, Generation], ...] = (
    (Records2, SECOND),
    (SQLiteRecords, FIRST),
)


def at(path: Path) -> Iterator[Store]:
    """Yield the store that is exactly at *path*, a file or a directory."""
    if path.is_file():
        if is_store(path):
            yield Store(SOURCE, path, _read_sqlite)
        elif is_export(path):
            yield Store(SOURCE, path, _read_export)
    elif layout_of(path) is not None:
        yield Store(SOURCE, path, _read_tree)


def default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where OpenCode keeps its stores, whether or not anything is there.

    The data directory is the same on every system; ``OPENCODE_DB`` may name a
    database elsewhere. Databases of other channels lie beside the usual one.
    """
    home = env.get("HOME") or env.get("USERPROFILE")
    data = env.get("XDG_DATA_HOME") or (home and str(Path(home, ".local", "share")))
    found = [Path(data, "opencode")] if data else []
    named = env.get("OPENCODE_DB")
    if named and named != ":memory:":
        path = Path(named)
        if path.is_absolute():
            found.append(path)
        elif path.suffix != ".db" or ".." in path.parts:  # else it is found inside
            found += [folder / path for folder in found]
    return found


def is_store(path: Path) -> bool:
    """Return whether the file at *path* is such a database: asked of SQLite, by its tables.

    A file that has the name of one and cannot be read counts, so that reading it says why.
    """
    file = ForeignDatabase(path, glance=True)
    try:
        with file.reading():
            return any(kind(path, file).there() for kind, _ in _GENERATIONS)
    except (SourceError, sqlite3.Error):
        return path.name.startswith("opencode") and path.suffix == ".db"


def _read_sqlite(path: Path) -> Iterator[SourceSession | Problem]:
    """Read a database; where it holds both generations, the newer one goes first."""
    file = ForeignDatabase(path)
    newer: set[str] = set()
    with file.reading():
        for kind, generation in _GENERATIONS:
            records = kind(path, file)
            if records.there():
                yield from read(records, generation, without=newer)
                newer |= _ids(records)


def _read_export(path: Path) -> Iterator[SourceSession | Problem]:
    records = Exported(path)
    with records.reading():
        second = records.second
    yield from read(Exported2(path), SECOND) if second else read(records)


def _read_tree(path: Path) -> Iterator[SourceSession | Problem]:
    layout = layout_of(path)
    if layout is None:
        raise SourceError(f"cannot read {path}: it is no longer a store")
    records = TreeRecords(path, layout)
    without: set[str] = set()
    for database in sorted(records.home.glob("*.db")):
        if is_store(database):
            without |= _ids_in(database)
    newer = records.home / "storage"
    if layout is TREE_05 and layout_of(newer) is TREE_1:
        without |= _ids(TreeRecords(newer, TREE_1))
    yield from read(records, without=without)


def _ids(records: Database | TreeRecords) -> set[str]:
    with records.reading():
        return {head.id for head in records.heads() if not isinstance(head, Problem)}


def _ids_in(database: Path) -> set[str]:
    file = ForeignDatabase(database)
    with file.reading():
        kinds = (kind(database, file) for kind, _ in _GENERATIONS)
        return set[str]().union(*(_ids(records) for records in kinds if records.there()))
