"""Rows of ``blob``; large bytes in pieces: SQLite would copy a bound value twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.codec import COMPRESSED, UTF8
from sessiondb.schema.rows import Blob

# The search index, the views and a shell read a text: it is not left compressed where
# it is the data of another row as well.
_INSERT = f"""INSERT INTO blob (hash, size, encoding, data) VALUES (?, ?, ?, {{}})
ON CONFLICT (hash) DO UPDATE SET encoding = excluded.encoding, data = excluded.data
WHERE excluded.encoding = '{UTF8}' AND blob.encoding LIKE '%{COMPRESSED}'"""
_INSERT_SMALL = _INSERT.format("?")
_INSERT_LARGE = f"{_INSERT.format('zeroblob(?)')} RETURNING rid"
#: Bytes from which those of a blob are written in pieces.
LARGE_BLOB = 8 << 20
_PIECE_BYTES = 1 << 20


def insert_blobs(
    connection: Any,
    session_id: str,  # noqa: ARG001  the blobs of all sessions are together
    blobs: Sequence[Blob],
) -> None:
    """Insert blobs: see `engine.base.Engine`."""
    small = [item for item in blobs if len(item.data) < LARGE_BLOB]
    connection.executemany(_INSERT_SMALL, small)
    for item in blobs:
        if len(item.data) >= LARGE_BLOB:
            _insert_large(connection, *item)


def _insert_large(
    connection: Any, name: str, size: int, encoding: str, data: bytes
) -> None:
    rows = connection.execute(
        _INSERT_LARGE, (name, size, encoding, len(data))
    ).fetchall()
    for (rid,) in rows:
        view = memoryview(data)
        with connection.blobopen("blob", "data", rid) as target:
            for start in range(0, len(view), _PIECE_BYTES):
                target.write(view[start : start + _PIECE_BYTES])
