"""Large values, written in pieces: SQLite would copy a bound value twice."""

from __future__ import annotations

from typing import Any

_MAKE = (
    "INSERT INTO blob (hash, size, encoding, data) VALUES (?, ?, ?, zeroblob(?)) "
    "ON CONFLICT (hash) DO NOTHING"
)
_PIECE_BYTES = 1 << 20


def insert_large(
    connection: Any, name: str, size: int, encoding: str, data: bytes
) -> None:
    """Insert the blob *name*, in pieces; a no-op if it exists."""
    cursor = connection.execute(_MAKE, (name, size, encoding, len(data)))
    if cursor.rowcount != 1 or cursor.lastrowid is None:
        return
    view = memoryview(data)
    with connection.blobopen("blob", "data", cursor.lastrowid) as target:
        for start in range(0, len(view), _PIECE_BYTES):
            target.write(view[start : start + _PIECE_BYTES])
