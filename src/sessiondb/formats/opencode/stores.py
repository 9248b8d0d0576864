"""Where OpenCode keeps its stores, and what a store looks like.

One data directory may hold several generations of the same sessions: databases,
``storage/`` and ``project/*/storage/session``. The newest one that has a session
says what it is; an older one adds only what is missing from the newer ones.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import ForeignDatabase
from sessiondb.formats.opencode.database import Database
from sessiondb.formats.opencode.export_file import ExportFileV1, ExportFileV2, is_export
from sessiondb.formats.opencode.reader import SOURCE, V1, V2, Generation, read
from sessiondb.formats.opencode.v1.sqlite import SQLiteV1
from sessiondb.formats.opencode.v1.tree import TREE_V0, TREE_V1, Tree, layout_of
from sessiondb.formats.opencode.v2.sqlite import SQLiteV2
from sessiondb.formats.protocol import ForeignStore, Format
from sessiondb.model import Problem, SourceSession

#: Endings of files that are asked whether they are a store.
SUFFIXES = frozenset({".db", ".json"})
_GENERATIONS: tuple[tuple[Any, Generation], ...] = (
    (SQLiteV2, V2),
    (SQLiteV1, V1),
)


def at(path: Path) -> Iterator[ForeignStore]:
    """Yield the store that is exactly at *path*, a file or a directory."""
    if is_file(path):
        if is_store(path):
            yield ForeignStore(SOURCE, path, _read_sqlite)
        elif is_export(path):
            yield ForeignStore(SOURCE, path, _read_export)
    elif layout_of(path) is not None:
        yield ForeignStore(SOURCE, path, _read_tree)


def default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where OpenCode keeps its stores, whether or not anything is there.

    The data directory is the same on every system; ``OPENCODE_DB`` may name a
    database elsewhere. Databases of other channels lie beside the usual one.
    """
    homes = dict.fromkeys(filter(None, map(env.get, ("HOME", "USERPROFILE"))))
    share = [Path(home, ".local", "share") for home in homes]
    data = env.get("XDG_DATA_HOME")
    found = [folder / "opencode" for folder in ([Path(data)] if data else share)]
    named = env.get("OPENCODE_DB")
    if named and named != ":memory:":
        folders = found or ([Path()] if Path(named).is_absolute() else [])
        paths = dict.fromkeys(
            folder / named for folder in folders
        )  # an absolute one stays itself
        found += [path for path in paths if not _is_inside(path, found)]
    return found


def _is_inside(path: Path, folders: list[Path]) -> bool:
    """Return whether a database is found anyway, below one of *folders*."""
    below = any(path.is_relative_to(folder) for folder in folders)
    return below and path.suffix in SUFFIXES and ".." not in path.parts


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
    with file.reading():
        newer: set[str] = set()
        with contextlib.suppress(sqlite3.Error):  # reported when the sessions are read
            newer = _newer_beside(path, file)
        for kind, generation in _GENERATIONS:
            records = kind(path, file)
            if records.there():
                yield from read(records, generation, without=newer)
                with contextlib.suppress(sqlite3.Error):
                    newer |= _ids(records)


def _read_export(path: Path) -> Iterator[SourceSession | Problem]:
    records = ExportFileV1(path)
    with records.reading():
        second = records.second
    yield from read(ExportFileV2(path), V2) if second else read(records)


def _read_tree(path: Path) -> Iterator[SourceSession | Problem]:
    layout = layout_of(path)
    if layout is None:
        raise SourceError(f"cannot read {path}: it is no longer a store")
    records = Tree(path, layout)
    without: set[str] = set()
    for _, times in _beside(records.home):
        without |= times.keys()
    newer = records.home / "storage"
    if layout is TREE_V0 and layout_of(newer) is TREE_V1:
        without |= _ids(Tree(newer, TREE_V1))
    yield from read(records, without=without)


def _ids(records: Database | Tree) -> set[str]:
    with records.reading():
        return {head.id for head in records.heads() if not isinstance(head, Problem)}


def _newer_beside(path: Path, file: ForeignDatabase) -> set[str]:
    """Name the sessions that another channel's database has too, and used later than this one.

    People copy a database to the name that their next build of OpenCode looks for.
    """
    mine = _times(path, file)
    return {
        name
        for other, times in _beside(path.parent, path)
        for name in mine.keys() & times.keys()
        if (times[name], other.name) > (mine[name], path.name)
    }


def _beside(
    folder: Path, path: Path | None = None
) -> Iterator[tuple[Path, dict[str, int]]]:
    """Yield the databases in *folder* but that at *path*, each with its sessions' last uses."""
    for database in sorted(folder.glob("*.db")):
        if database != path and is_store(database):
            file = ForeignDatabase(database)
            # One that is damaged says so when it is read itself; it must not hide the others.
            with contextlib.suppress(SourceError, sqlite3.Error), file.reading():
                yield database, _times(database, file)


def _times(path: Path, file: ForeignDatabase) -> dict[str, int]:
    """Return when each session of a database was last used; the newer generation counts."""
    found: dict[str, int] = {}
    for kind, _ in _GENERATIONS:
        records = kind(path, file)
        if records.there():
            found = {**records.last_used(), **found}
    return found


FORMAT = Format(SUFFIXES, at, default_locations)
