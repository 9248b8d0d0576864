"""The places of OpenCode's stores, and how a store is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase
from sessiondb.formats.opencode.export_file import is_export
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.v1.sqlite import SQLiteV1
from sessiondb.formats.opencode.v1.tree import layout_of
from sessiondb.formats.opencode.v2.sqlite import SQLiteV2
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

_READER = "sessiondb.formats.opencode.copies"
_read_database = late_reader(_READER, "read_database")
_read_export = late_reader(_READER, "read_export")
_read_tree = late_reader(_READER, "read_tree")
#: Endings of the files that may be a store.
SUFFIXES = frozenset({".db", ".json"})


def store_at(path: Path) -> ForeignStore | None:
    """Return the store that is exactly at *path*, a file or a directory."""
    if not is_file(path):
        if layout_of(path) is not None:
            return ForeignStore(SOURCE, path, _read_tree)
    elif is_store(path):
        return ForeignStore(SOURCE, path, _read_database)
    elif is_export(path):
        return ForeignStore(SOURCE, path, _read_export)
    return None


def default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return the places of OpenCode's stores, whether or not anything is there.

    The data directory is the same on every system; ``OPENCODE_DB`` may name a
    database elsewhere. Databases of other channels lie beside the usual one.
    """
    folders = _data_folders(env)
    name = env.get("OPENCODE_DB")
    if not name or name == ":memory:":
        return folders

    path = Path(name)
    paths = [path] if path.is_absolute() else [folder / path for folder in folders]
    return folders + [path for path in paths if not _is_inside(path, folders)]


def _data_folders(env: Mapping[str, str]) -> list[Path]:
    data = env.get("XDG_DATA_HOME")
    if data:
        return [Path(data, "opencode")]

    folders = []
    for variable in ("HOME", "USERPROFILE"):
        home = env.get(variable)
        folder = Path(home, ".local", "share", "opencode") if home else None
        if folder is not None and folder not in folders:
            folders.append(folder)
    return folders


def _is_inside(path: Path, folders: list[Path]) -> bool:
    """Return whether a database is found anyway, below one of *folders*."""
    if path.suffix not in SUFFIXES or ".." in path.parts:
        return False
    return any(path.is_relative_to(folder) for folder in folders)


def is_store(path: Path) -> bool:
    """Return whether the file at *path* is such a database, by its tables."""
    file = ForeignDatabase(path, glance=True)
    try:
        with file.reading():
            return bool(databases_in_file(path, file))
    except (SourceError, Error):
        return False


def databases_in_file(path: Path, file: ForeignDatabase) -> list[SQLiteV2 | SQLiteV1]:
    """Return the generations that a file holds; only while it is read.

    The newer one is the first: it counts if a file holds both.
    """
    databases: list[SQLiteV2 | SQLiteV1] = [SQLiteV2(path, file), SQLiteV1(path, file)]
    return [database for database in databases if database.is_present()]


FORMAT = Format(
    SUFFIXES, store_at, default_locations, names=frozenset({"opencode*.db"})
)
