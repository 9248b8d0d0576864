"""Where OpenCode keeps its stores, and what a store looks like.

One data directory may hold several generations of the same sessions: databases,
``storage/`` and ``project/*/storage/session``. The newest one that has a session
says what it is; an older one adds only what the newer ones lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.opencode.reader import SOURCE, read
from sessiondb.formats.opencode.sqlite import SQLiteRecords, is_store
from sessiondb.formats.opencode.tree import TREE_05, TREE_1, TreeRecords, layout_of
from sessiondb.formats.store import Store
from sessiondb.model import Problem, SourceSession

#: Endings of files that are asked whether they are a store.
SUFFIXES = frozenset({".db"})


def at(path: Path) -> Iterator[Store]:
    """Yield the store that is exactly at *path*, a file or a directory."""
    if path.is_file():
        if is_store(path):
            yield Store(SOURCE, path, _read_sqlite)
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
        elif path.suffix not in SUFFIXES:  # else it is found inside the data directory
            found += [folder / path for folder in found]
    return found


def _read_sqlite(path: Path) -> Iterator[SourceSession | Problem]:
    return read(SQLiteRecords(path))


def _read_tree(path: Path) -> Iterator[SourceSession | Problem]:
    layout = layout_of(path)
    if layout is None:
        raise SourceError(f"cannot read {path}: it is no longer a store")
    records = TreeRecords(path, layout)
    without: set[str] = set()
    for database in sorted(records.home.glob("*.db")):
        if is_store(database):
            without |= _ids(SQLiteRecords(database))
    newer = records.home / "storage"
    if layout is TREE_05 and layout_of(newer) is TREE_1:
        without |= _ids(TreeRecords(newer, TREE_1))
    yield from read(records, without=without)


def _ids(records: SQLiteRecords | TreeRecords) -> set[str]:
    with records.reading():
        return {head.id for head in records.heads() if not isinstance(head, Problem)}
