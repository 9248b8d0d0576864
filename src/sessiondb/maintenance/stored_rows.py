"""The rows of our tables as they are stored, for what copies and compares them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sessiondb.engine.base import Connection
from sessiondb.engine.sql import listed
from sessiondb.schema import columns as schema

Row = tuple[Any, ...]
#: Columns that a database has for itself, or derives. Words are what its index needs of
#: a part.
_DERIVED = {"rid", "change", "words", "hidden"}
#: Table → the columns that a copy has as well.
COLUMNS = {
    table: tuple(name for name in columns if name not in _DERIVED)
    for table, columns in schema.TABLES.items()
}
#: Table → the columns by which its rows are in order.
KEYS = {**schema.KEYS, "session": ("id",), "message": ("session_id", "seq")}
#: Rows that are in memory at once.
_AT_ONCE = 500


class Digest(NamedTuple):
    """The number of rows, and the SHA-256 of what is in them."""

    rows: int
    digest: bytes


def digest_of(pages: Iterable[Sequence[Row]]) -> Digest:
    """Return the digest of rows in their order."""
    number, digest = 0, hashlib.sha256()
    for rows in pages:
        number += len(rows)
        for row in rows:
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return Digest(number, digest.digest())


def pages_of(connection: Connection, table: str) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of their keys, some at a time."""
    columns, key = COLUMNS[table], KEYS[table]
    places = [columns.index(name) for name in key]
    order = listed(key)
    select = f"SELECT {listed(columns)} FROM {table}"
    behind = f"WHERE ({order}) > ({', '.join('?' * len(key))})"
    sql, values = f"{select} ORDER BY {order} LIMIT {_AT_ONCE}", list[Any]()
    while rows := connection.execute(sql, values).fetchall():
        yield rows
        values = [rows[-1][place] for place in places]
        sql = f"{select} {behind} ORDER BY {order} LIMIT {_AT_ONCE}"


def blobs_in(table: str, columns: Sequence[str], rows: Iterable[Row]) -> set[str]:
    """Return the blobs that rows refer to; tables of programs have none."""
    places = [place for place, name in enumerate(columns) if name.endswith("_blob")]
    if table not in COLUMNS:
        return set()
    return {row[place] for row in rows for place in places if row[place] is not None}
