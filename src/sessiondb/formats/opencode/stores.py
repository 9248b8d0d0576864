"""The places of OpenCode's stores, and how a store is recognised.

One data directory may hold several generations of the same sessions: databases,
``storage/`` and ``project/*/storage/session``. The newest one that has a session
counts; an older one adds only what is missing from the newer ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase
from sessiondb.formats.opencode.database import OpenCodeDatabase
from sessiondb.formats.opencode.export_file import ExportFileV1, ExportFileV2, is_export
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.reader import V1, V2, Generation, read
from sessiondb.formats.opencode.v1.sqlite import SQLiteV1
from sessiondb.formats.opencode.v1.tree import TREE_V0, TREE_V1, OpenCodeTree, layout_of
from sessiondb.formats.opencode.v2.sqlite import SQLiteV2
from sessiondb.formats.protocol import ForeignStore, Format
from sessiondb.model import Problem, SourceSession

#: Endings of the files that may be a store.
SUFFIXES = frozenset({".db", ".json"})


# -- finding -----------------------------------------------------------------


def store_at(path: Path) -> ForeignStore | None:
    """Return the store that is exactly at *path*, a file or a directory."""
    if not is_file(path):
        if layout_of(path) is not None:
            return ForeignStore(SOURCE, path, _read_tree)
    elif is_store(path):
        return ForeignStore(SOURCE, path, _read_sqlite)
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
            return bool(_generations_in(path, file))
    except (SourceError, Error):
        return False


def _generations_in(path: Path, file: ForeignDatabase) -> list[tuple[Any, Generation]]:
    """Return the generations that a database holds; only while it is read.

    The newer one is the first: it counts if a file holds both.
    """
    databases: list[tuple[Any, Generation]] = [
        (SQLiteV2(path, file), V2),
        (SQLiteV1(path, file), V1),
    ]
    return [item for item in databases if item[0].is_present()]


# -- reading -----------------------------------------------------------------


def _read_sqlite(path: Path) -> Iterator[SourceSession | Problem]:
    """Read a database, the newer generation first."""
    file = ForeignDatabase(path)
    with file.reading():
        newer: set[str] = set()
        with contextlib.suppress(Error):  # reported when the sessions are read
            newer = _newer_elsewhere(path, file)

        for records, generation in _generations_in(path, file):
            yield from read(records, generation, without=newer)
            with contextlib.suppress(Error):
                newer |= _session_ids(records)


def _read_export(path: Path) -> Iterator[SourceSession | Problem]:
    records = ExportFileV1(path)
    with records.reading():
        is_second = records.is_second
    yield from read(ExportFileV2(path), V2) if is_second else read(records)


def _read_tree(path: Path) -> Iterator[SourceSession | Problem]:
    layout = layout_of(path)
    if layout is None:
        raise SourceError(f"cannot read {path}: it is no longer a store")

    records = OpenCodeTree(path, layout)
    without: set[str] = set()
    for _, times in _databases_in(records.home):
        without |= times.keys()
    newer = records.home / "storage"
    if layout is TREE_V0 and layout_of(newer) is TREE_V1:
        without |= _session_ids(OpenCodeTree(newer, TREE_V1))
    yield from read(records, without=without)


# -- the same sessions in several stores ---------------------------------------


def _session_ids(records: OpenCodeDatabase | OpenCodeTree) -> set[str]:
    with records.reading():
        return {
            head.id for head in records.read_heads() if not isinstance(head, Problem)
        }


def _newer_elsewhere(path: Path, file: ForeignDatabase) -> set[str]:
    """Return the ids of the sessions that another channel's database used later.

    People copy a database to the name that their next build of OpenCode looks for.
    """
    times = _last_used(path, file)
    newer: set[str] = set()
    for other, other_times in _databases_in(path.parent, without=path):
        for name in times.keys() & other_times.keys():
            # Of two equal copies the name decides, so that one of them is read.
            if (other_times[name], other.name) > (times[name], path.name):
                newer.add(name)
    return newer


def _databases_in(
    folder: Path, *, without: Path | None = None
) -> Iterator[tuple[Path, dict[str, int]]]:
    """Yield the databases in *folder*, with their sessions' last uses."""
    for path in sorted(folder.glob("*.db")):
        if path == without or not is_store(path):
            continue
        file = ForeignDatabase(path)
        # A damaged one is reported when it is read itself; it must not hide the others.
        with contextlib.suppress(SourceError, Error), file.reading():
            yield path, _last_used(path, file)


def _last_used(path: Path, file: ForeignDatabase) -> dict[str, int]:
    """Return when each session of a database was last used.

    The newer generation counts.
    """
    times: dict[str, int] = {}
    for records, _ in _generations_in(path, file):
        times = {**records.last_used(), **times}
    return times


FORMAT = Format(
    SUFFIXES, store_at, default_locations, names=frozenset({"opencode*.db"})
)
