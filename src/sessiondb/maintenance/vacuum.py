"""The file rewritten without its unused space, while others keep working.

Writes of others wait as for any other write, and their readers keep what they see.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.arguments import checked, file_of
from sessiondb.engine.base import Connection
from sessiondb.engine.default import ENGINE
from sessiondb.engine.upkeep import Room
from sessiondb.model import bounds

if TYPE_CHECKING:
    from sessiondb.store import Store

_DELETED = "SELECT count(*) FROM session WHERE time_deleted IS NOT NULL"


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """The plan of a vacuum: bytes before and (at most) after, and its needs.

    ``deleted_sessions`` still have rows, which go first and are not yet in
    ``bytes_free``; nor is what the search index remembers of removed text, which only
    tidying it shows.
    """

    bytes_before: int
    bytes_free: int
    bytes_after: int
    deleted_sessions: int
    rooms: tuple[Room, ...]


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of a vacuum.

    Not ``truncated``: a reader is active, the file shrinks after it.
    """

    bytes_before: int
    bytes_after: int
    truncated: bool


@checked
def plan_vacuum(store: Store) -> VacuumPlan:
    """Return what `vacuum` would do; nothing is written.

    Raises `StorageError`, `BusyError`.
    """
    with closing(ENGINE.connect(file_of(store), mode="reader")) as connection:
        try:
            return _plan(connection, file_of(store))
        except ENGINE.Error as error:
            raise ENGINE.translate(error) from error


@checked
def vacuum(store: Store, *, busy_timeout: float = 10.0) -> Vacuumed:
    """Remove the rows of deleted sessions, tidy the search index, and rewrite the file.

    Any number of processes may have it open; each waits up to *busy_timeout*
    seconds for the other. Raises `StorageFullError` if the disk has too little room,
    before the file is rewritten; `BusyError`, `StorageError`.
    """
    bounds.seconds(busy_timeout, "busy_timeout")
    path = file_of(store)
    # Rows that are marked and still there would be copied like any other.
    store.reap()

    with closing(ENGINE.connect(path, busy_timeout=busy_timeout)) as connection:
        try:
            before = ENGINE.upkeep.space(connection, path).bytes
            truncated = ENGINE.upkeep.rewrite(connection, path)
            after = ENGINE.upkeep.space(connection, path).bytes
        except ENGINE.Error as error:
            raise ENGINE.translate(error) from error

    return Vacuumed(before, after, truncated)


def _plan(connection: Connection, path: Path) -> VacuumPlan:
    connection.execute(ENGINE.begin_read)
    space = ENGINE.upkeep.space(connection, path)
    (deleted,) = connection.execute(_DELETED).fetchone()
    connection.execute("COMMIT")
    used = space.bytes - space.bytes_free
    return VacuumPlan(space.bytes, space.bytes_free, used, deleted, space.rooms)
