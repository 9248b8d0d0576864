"""Rows of ``blob``: a family has its own, also of what another one has, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.codec import COMPRESSED, UTF8
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.schema.rows import Blob

#: The end of an INSERT. Search and the views read a text: it is not left compressed
#: where it is the data of another row as well.
UNLESS_STORED = f"""ON CONFLICT (hash, family)
DO UPDATE SET encoding = excluded.encoding, data = excluded.data
WHERE excluded.encoding = '{UTF8}' AND blob.encoding LIKE '%{COMPRESSED}'"""
_INSERT = f"""INSERT INTO blob (family, hash, size, encoding, data)
VALUES (?, ?, ?, ?, ?) {UNLESS_STORED}"""
# By the key, an array: see `compiling`.
_LOCK = (
    "SELECT hash FROM blob "
    f"WHERE family = :family AND hash = ANY (ARRAY{DIALECT.list_text('hashes', str)}) "
    "ORDER BY hash FOR UPDATE"
)


def insert_blobs(connection: Any, session_id: str, blobs: Sequence[Blob]) -> None:
    """Insert blobs: see `engine.base.Engine`."""
    if not blobs:
        return
    family = connection.routes.family(session_id)
    # In one order for all transactions: two that insert the same ones do not wait for
    # each other.
    connection.executemany(_INSERT, [(family, *blob) for blob in sorted(blobs)])


def lock_blobs(connection: Any, hashes: str) -> None:
    """Lock blobs of the families of locked sessions: see `engine.base.Engine`."""
    # A statement for each: a server of many nodes locks no rows on several at once.
    for family in connection.routes.families_of(connection.locked):
        connection.execute(_LOCK, {"family": family, "hashes": hashes})
