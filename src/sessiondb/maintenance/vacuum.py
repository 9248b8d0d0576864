"""The file rewritten without its unused space, while others keep working.

SQLite makes a compact copy in the folder for temporary files, then writes it
through the ``-wal``: both need room at once, and only the checkpoint after that
makes the file smaller. Writes of others wait as for any other write.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.arguments import checked, file_of
from sessiondb.engine.disk import free_bytes
from sessiondb.engine.sqlite.connection import connect
from sessiondb.engine.sqlite.failures import translate
from sessiondb.errors import StorageFullError
from sessiondb.model import bounds

if TYPE_CHECKING:
    from sessiondb.store import Store

_SEARCH = ("part_search", "session_search", "prompt_search")
_DELETED = "SELECT count(*) FROM session WHERE time_deleted IS NOT NULL"
#: Bytes that the -wal adds to each page.
_FRAME = 24


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that are needed in a folder, and that its disk has."""

    folder: Path
    bytes_needed: int
    bytes_available: int


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """The plan of a vacuum: the bytes of the file before and (at most) after, and what it needs.

    ``deleted_sessions`` still have rows, which go first and are not yet in ``bytes_free``;
    nor is what the search index remembers of removed text, which only tidying it shows.
    """

    bytes_before: int
    bytes_free: int
    bytes_after: int
    deleted_sessions: int
    rooms: tuple[Room, ...]


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of a vacuum. Not ``truncated``: a reader is active, the file shrinks after it."""

    bytes_before: int
    bytes_after: int
    truncated: bool


@checked
def plan_vacuum(store: Store) -> VacuumPlan:
    """Return what `vacuum` would do; nothing is written. Raises `StorageError`, `BusyError`."""
    with closing(connect(file_of(store), mode="reader")) as connection:
        try:
            return _plan(connection, file_of(store))
        except sqlite3.Error as error:
            raise translate(error) from error


@checked
def vacuum(store: Store, *, busy_timeout: float = 10.0) -> Vacuumed:
    """Remove the rows of deleted sessions, tidy the search index, and rewrite the file.

    Any number of processes may have it open; each waits up to *busy_timeout*
    seconds for the other. Raises `StorageFullError` if the disk has too little room,
    before the file is rewritten; `BusyError`, `StorageError`.
    """
    bounds.seconds(busy_timeout, "busy_timeout")
    path = file_of(store)
    store.reap()
    with closing(connect(path, busy_timeout=busy_timeout)) as connection:
        try:
            # The one checkpoint here waits for the write lock, as those of the writer do.
            connection.execute("PRAGMA wal_autocheckpoint=0")
            before = _plan(connection, path)
            for table in _SEARCH:
                connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
            _truncate(connection)
            _check_room(_plan(connection, path))
            connection.execute("VACUUM")
            truncated = _truncate(connection)
            after = _plan(connection, path).bytes_before
            return Vacuumed(before.bytes_before, after, truncated)
        except sqlite3.Error as error:
            raise translate(error) from error


def _plan(connection: sqlite3.Connection, path: Path) -> VacuumPlan:
    connection.execute("BEGIN")
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (connection.execute(f"PRAGMA {n}").fetchone()[0] for n in names)
    (deleted,) = connection.execute(_DELETED).fetchone()
    connection.execute("COMMIT")
    used = pages - free
    needs = [
        (path.parent, used * (size + _FRAME)),
        (_temporary_folder(path), used * size),
    ]
    return VacuumPlan(
        pages * size, free * size, used * size, deleted, tuple(_rooms(needs))
    )


def _rooms(needs: list[tuple[Path, int]]) -> Iterator[Room]:
    """Yield one room for each disk: what is on the same one is needed together."""
    disks: dict[int, tuple[Path, int]] = {}
    for folder, needed in needs:
        disk = folder.stat().st_dev
        first, sum_before = disks.get(disk, (folder, 0))
        disks[disk] = first, sum_before + needed
    for folder, needed in disks.values():
        yield Room(folder, needed, free_bytes(folder))


def _temporary_folder(path: Path) -> Path:
    """Return where SQLite puts its temporary files."""
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    for name in (*named, "/var/tmp", "/usr/tmp", "/tmp"):  # noqa: S108  SQLite's own list
        if name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK):
            return Path(name)
    return path.parent


def _check_room(plan: VacuumPlan) -> None:
    for room in plan.rooms:
        if room.bytes_available < room.bytes_needed:
            needed, there = (
                f"{n / 1e6:,.1f} MB" for n in (room.bytes_needed, room.bytes_available)
            )
            raise StorageFullError(
                f"a vacuum needs {needed} in {room.folder}, where {there} are free",
                hint="free some disk space, or name another folder in SQLITE_TMPDIR",
            )


def _truncate(connection: sqlite3.Connection) -> bool:
    """Write the -wal back and empty it; return False where a reader or writer kept it."""
    busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not busy
