"""What a transaction locks: sessions and names, so that writers run side by side.

A transaction reads committed rows, and decides by them what it writes. So it locks a
session before it reads its row, and a name before it makes what is missing under it.
The locks are advisory ones of the server: they need no row, are granted in turn, and
end with the transaction. Of two transactions that wait for each other the server aborts
one.

A lock for each session, and not one for a whole family: an agent and its subagents
write at the same time. Keys of several are locked in one order.

The server has room for some thousands of locks of all its transactions. So each key
belongs to a group, which whoever locks the key shares. A transaction with very many
keys locks groups for itself instead: it waits for all others that write to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sessiondb.engine.sql import as_list

if TYPE_CHECKING:
    from sessiondb.engine.postgresql.connection import PostgreSQLConnection

#: Keys of a transaction that it locks each by itself.
_MOST_KEYS = 1_000
#: A power of two, and the first number of the locks of groups: "SDB1", as in our files.
_GROUPS, _CLASS = 64, 0x53444231
_KEYS = (
    "SELECT hashtextextended(key, 0) AS hash "
    "FROM json_array_elements_text(CAST(:keys AS JSON)) AS listed(key)"
)
_GROUP = f"CAST(hash & {_GROUPS - 1} AS INTEGER)"
_LOCK = (
    f"SELECT pg_advisory_xact_lock_shared({_CLASS}, {_GROUP}), "
    f"pg_advisory_xact_lock(hash) FROM ({_KEYS}) AS keys"
)
_LOCK_GROUPS = (
    f"SELECT pg_advisory_xact_lock({_CLASS}, number) FROM "
    f"(SELECT DISTINCT {_GROUP} AS number FROM ({_KEYS}) AS keys ORDER BY 1) AS groups"
)


def lock_keys(connection: PostgreSQLConnection, keys: Iterable[str]) -> bool:
    """Lock *keys* until the transaction ends; False if it has all of these locks.

    Two keys may have the same lock: their transactions take turns, too.
    """
    new = sorted(set(keys) - connection.locked)
    if not new:
        return False
    is_large = len(new) + len(connection.locked) > _MOST_KEYS
    connection.execute(_LOCK_GROUPS if is_large else _LOCK, {"keys": as_list(new)})
    connection.locked.update(new)
    return True
