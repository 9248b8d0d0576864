"""The file rewritten without its unused space, while other processes keep working.

Their writes wait as for any other write, and their readers keep their snapshots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessiondb.arguments import checked, file_of
from sessiondb.dataclass import dataclass
from sessiondb.engine.default import ENGINE, target_at
from sessiondb.engine.upkeep import Room
from sessiondb.maintenance.connecting import connected
from sessiondb.model import bounds

if TYPE_CHECKING:
    from sessiondb.store import Store

#: The advice for a database of a server.
ON_A_SERVER = (
    "autovacuum of PostgreSQL reuses the space, "
    "and VACUUM FULL in psql returns it to the disk"
)
_DELETED = "SELECT count(*) FROM session WHERE time_deleted IS NOT NULL"


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """The plan of a vacuum: bytes before and (at most) after, and the room it needs.

    ``deleted_sessions`` still have rows, which are removed first. Neither these rows
    nor the entries of removed text in the search index are in ``bytes_free`` yet.
    """

    bytes_before: int
    bytes_free: int
    bytes_after: int
    deleted_sessions: int
    rooms: tuple[Room, ...]


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of a vacuum.

    If not ``truncated``, a reader is active, and the file shrinks once it is done.
    """

    bytes_before: int
    bytes_after: int
    truncated: bool


@checked
def plan_vacuum(store: Store) -> VacuumPlan:
    """Return the plan of `vacuum`; nothing is written.

    Raises `UnsupportedError` for a database of a server, `StorageError`, `BusyError`.
    """
    path = file_of(store, ON_A_SERVER)
    with connected(target_at(path)) as connection:
        connection.execute(connection.engine.begin_read)
        space = ENGINE.upkeep.space(connection, path)
        (deleted,) = connection.execute(_DELETED).fetchone()

    used = space.bytes - space.bytes_free
    return VacuumPlan(space.bytes, space.bytes_free, used, deleted, space.rooms)


@checked
def vacuum(store: Store, *, busy_timeout: float = 10.0) -> Vacuumed:
    """Remove the rows of deleted sessions, merge the search index, rewrite the file.

    Any number of processes may have it open; each waits up to *busy_timeout*
    seconds for the other. Raises `StorageFullError` if the disk has too little room,
    before the file is rewritten; `UnsupportedError` for a database of a server,
    `BusyError`, `StorageError`.
    """
    bounds.seconds(busy_timeout, "busy_timeout")
    path = file_of(store, ON_A_SERVER)
    # Rows that are only marked as deleted would be copied like any other.
    store.reap()

    database = target_at(path)
    with connected(database, mode="rw", busy_timeout=busy_timeout) as connection:
        bytes_before = ENGINE.upkeep.space(connection, path).bytes
        truncated = ENGINE.upkeep.rewrite(connection, path)
        bytes_after = ENGINE.upkeep.space(connection, path).bytes

    return Vacuumed(bytes_before, bytes_after, truncated)
