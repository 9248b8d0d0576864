"""Where OpenCode keeps its stores, and how a store is recognised.

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
from sessiondb.formats.opencode.v1.tree import TREE_V0, TREE_V1, Tree, layout_of
from sessiondb.formats.opencode.v2.sqlite import SQLiteV2
from sessiondb.formats.protocol import ForeignStore, Format
from sessiondb.model import Problem, SourceSession

#: Endings of the files that may be a store.
SUFFIXES = frozenset({".db", ".json"})
#: The newer generation first: it counts if a file holds both.
_GENERATIONS: tuple[tuple[Any, Generation], ...] = ((SQLiteV2, V2), (SQLiteV1, V1))


# -- finding -----------------------------------------------------------------


def at(path: Path) -> ForeignStore | None:
    """Return the store that is exactly at *path*, a file or a directory."""
    if not is_file(path):
        is_tree = layout_of(path) is not None
        return ForeignStore(SOURCE, path, _read_tree) if is_tree else None
    if is_store(path):
        return ForeignStore(SOURCE, path, _read_sqlite)
    if is_export(path):
        return ForeignStore(SOURCE, path, _read_export)
    return None


def default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where OpenCode keeps its stores, whether or not anything is there.

    The data directory is the same on every system; ``OPENCODE_DB`` may name a
    database elsewhere. Databases of other channels lie beside the usual one.
    """
    found = _data_folders(env)
    named = env.get("OPENCODE_DB")
    if named in (None, "", ":memory:"):
        return found

    path = Path(named)
    paths = [path] if path.is_absolute() else [folder / path for folder in found]
    return found + [path for path in paths if not _is_inside(path, found)]


def _data_folders(env: Mapping[str, str]) -> list[Path]:
    data = env.get("XDG_DATA_HOME")
    if data:
        return [Path(data, "opencode")]
    homes = filter(None, map(env.get, ("HOME", "USERPROFILE")))
    return [Path(home, ".local", "share", "opencode") for home in dict.fromkeys(homes)]


def _is_inside(path: Path, folders: list[Path]) -> bool:
    """Return whether a database is found anyway, below one of *folders*."""
    is_below = any(map(path.is_relative_to, folders))
    return is_below and path.suffix in SUFFIXES and ".." not in path.parts


def is_store(path: Path) -> bool:
    """Return whether the file at *path* is such a database, by its tables."""
    file = ForeignDatabase(path, glance=True)
    try:
        with file.reading():
            return any(_in_file(path, file))
    except (SourceError, Error):
        return False


def _in_file(path: Path, file: ForeignDatabase) -> Iterator[tuple[Any, Generation]]:
    """Yield the generations that a database holds; only while it is read."""
    for kind, generation in _GENERATIONS:
        records = kind(path, file)
        if records.is_present():
            yield records, generation


# -- reading -----------------------------------------------------------------


def _read_sqlite(path: Path) -> Iterator[SourceSession | Problem]:
    """Read a database, the newer generation first."""
    file = ForeignDatabase(path)
    with file.reading():
        newer: set[str] = set()
        with contextlib.suppress(Error):  # reported when the sessions are read
            newer = _newer_beside(path, file)

        for records, generation in _in_file(path, file):
            yield from read(records, generation, without=newer)
            with contextlib.suppress(Error):
                newer |= _ids(records)


def _read_export(path: Path) -> Iterator[SourceSession | Problem]:
    records = ExportFileV1(path)
    with records.reading():
        is_second = records.second
    yield from read(ExportFileV2(path), V2) if is_second else read(records)


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


# -- the same sessions in several stores ---------------------------------------


def _ids(records: OpenCodeDatabase | Tree) -> set[str]:
    with records.reading():
        return {head.id for head in records.heads() if not isinstance(head, Problem)}


def _newer_beside(path: Path, file: ForeignDatabase) -> set[str]:
    """Name the sessions that another channel's database has too, and used later.

    People copy a database to the name that their next build of OpenCode looks for.
    """
    mine = _times(path, file)
    found: set[str] = set()

    for other, times in _beside(path.parent, path):
        # Of two equal copies the name decides, so that one of them is read.
        found.update(
            name
            for name in mine.keys() & times.keys()
            if (times[name], other.name) > (mine[name], path.name)
        )

    return found


def _beside(folder: Path, *but: Path) -> Iterator[tuple[Path, dict[str, int]]]:
    """Yield the databases in *folder*, with their sessions' last uses."""
    others = sorted(set(folder.glob("*.db")).difference(but))
    for other in filter(is_store, others):
        file = ForeignDatabase(other)
        # A damaged one is reported when it is read itself; it must not hide the others.
        with contextlib.suppress(SourceError, Error), file.reading():
            yield other, _times(other, file)


def _times(path: Path, file: ForeignDatabase) -> dict[str, int]:
    """Return when each session of a database was last used.

    The newer generation counts.
    """
    found: dict[str, int] = {}
    for records, _ in _in_file(path, file):
        found = {**records.last_used(), **found}
    return found


FORMAT = Format(SUFFIXES, at, default_locations, names=frozenset({"opencode*.db"}))
