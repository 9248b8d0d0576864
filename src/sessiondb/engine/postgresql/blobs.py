"""Rows of ``blob``."""

from __future__ import annotations

from collections.abc import Sequence

from sessiondb.codec import COMPRESSED, UTF8
from sessiondb.engine.base import Connection
from sessiondb.schema.rows import Blob

# Search and the views read a text: it is not left compressed where it is the data of
# another row as well.
_INSERT = f"""INSERT INTO blob (hash, size, encoding, data) VALUES (?, ?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET encoding = excluded.encoding, data = excluded.data
WHERE excluded.encoding = '{UTF8}' AND blob.encoding LIKE '%{COMPRESSED}'"""


def insert_blobs(connection: Connection, blobs: Sequence[Blob]) -> None:
    """Insert blobs: see `engine.base.Engine`."""
    # In one order for all transactions: two that insert the same ones do not wait for
    # each other.
    connection.executemany(_INSERT, sorted(blobs))
