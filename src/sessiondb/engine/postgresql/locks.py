"""What a transaction locks: sessions and names, so that writers run side by side.

A transaction reads committed rows, and decides by them what it writes. So it locks a
session before it reads its row, and a name before it makes what is missing under it.
The locks are the server's own for programs (advisory ones): they need no row, wait in
line, end with the transaction, and two transactions that wait for each other are told
apart by the server, which gives one of them up.

A lock for each session, and not one for a whole family: an agent and its subagents
write at the same time. Keys of several are locked in one order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sessiondb.engine.sql import as_list

if TYPE_CHECKING:
    from sessiondb.engine.postgresql.connection import PostgreSQLConnection

_LOCK = (
    "SELECT pg_advisory_xact_lock(hashtextextended(key, 0)) "
    "FROM json_array_elements_text(CAST(:keys AS JSON)) AS listed(key)"
)


def lock_keys(connection: PostgreSQLConnection, keys: Iterable[str]) -> bool:
    """Lock *keys* until the transaction ends; False if it has all of these locks.

    Two keys may have the same lock: their transactions take turns, too.
    """
    new = sorted(set(keys) - connection.locked)
    if not new:
        return False
    connection.execute(_LOCK, {"keys": as_list(new)})
    connection.locked.update(new)
    return True
