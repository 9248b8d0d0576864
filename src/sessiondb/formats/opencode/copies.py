"""The sessions of a store, without those of which another store has a newer copy.

One data directory may hold several generations of the same sessions: databases,
``storage/`` and ``project/*/storage/session``. The newest one that has a session
counts; an older one adds only what is missing from the newer ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase
from sessiondb.formats.opencode.database import OpenCodeDatabase
from sessiondb.formats.opencode.export_file import ExportFileV1, ExportFileV2
from sessiondb.formats.opencode.reader import V1, V2, read
from sessiondb.formats.opencode.stores import databases_in_file, is_store
from sessiondb.formats.opencode.v1.tree import TREE_V0, TREE_V1, OpenCodeTree, layout_of
from sessiondb.formats.opencode.v2.sqlite import SQLiteV2
from sessiondb.model import Problem, SourceSession


def read_database(path: Path) -> Iterator[SourceSession | Problem]:
    """Read a database, the newer generation first."""
    file = ForeignDatabase(path)
    with file.reading():
        newer: set[str] = set()
        with contextlib.suppress(Error):  # reported when the sessions are read
            newer = _newer_elsewhere(path, file)

        for records in databases_in_file(path, file):
            generation = V2 if isinstance(records, SQLiteV2) else V1
            yield from read(records, generation, without=newer)
            with contextlib.suppress(Error):
                newer |= _session_ids(records)


def read_export(path: Path) -> Iterator[SourceSession | Problem]:
    """Read an export of either generation."""
    records = ExportFileV1(path)
    with records.reading():
        is_second = records.is_second
    yield from read(ExportFileV2(path), V2) if is_second else read(records)


def read_tree(path: Path) -> Iterator[SourceSession | Problem]:
    """Read a tree; raises `SourceError` if it is no longer one."""
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
    for records in databases_in_file(path, file):
        times = {**records.last_used(), **times}
    return times
