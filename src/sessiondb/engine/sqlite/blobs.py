"""Large values, written piece by piece: SQLite would copy a bound value twice."""

from __future__ import annotations

import sqlite3

_MAKE = (
    "INSERT INTO blob (hash, size, encoding, data) VALUES (?, ?, ?, zeroblob(?)) "
    "ON CONFLICT (hash) DO NOTHING"
)
_PIECE_BYTES = 1 << 20


def insert_large(
    connection: sqlite3.Connection, name: str, size: int, encoding: str, data: bytes
) -> None:
    """Store *data* as the blob *name*, unless it is there."""
    cursor = connection.execute(_MAKE, (name, size, encoding, len(data)))
    if cursor.rowcount != 1 or cursor.lastrowid is None:
        return
    view = memoryview(data)
    with connection.blobopen("blob", "data", cursor.lastrowid) as target:
        for start in range(0, len(view), _PIECE_BYTES):
            target.write(view[start : start + _PIECE_BYTES])
