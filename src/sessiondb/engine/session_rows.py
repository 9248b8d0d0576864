"""The rows of a session and its blobs: what the sizes of sessions are made of."""

from __future__ import annotations

from sqlalchemy import Table

from sessiondb.engine.base import Dialect
from sessiondb.schema import tables

#: The tables with the rows of a session, and the columns that name it.
OWNERS: dict[Table, str] = {
    tables.session: "id",
    tables.part: "session_id",
    tables.message: "session_id",
    tables.todo: "session_id",
    tables.label: "session_id",
    tables.file_diff: "session_id",
}
#: The columns that name a blob: table, column, and the column of their session.
_HOLDERS = [
    (table.name, column.name, owner)
    for table, owner in OWNERS.items()
    for column in table.c
    if any(key.target_fullname == "blob.hash" for key in column.foreign_keys)
]


def own_blobs(size: str) -> str:
    """Return the query for (session, *size*) of each blob ``b`` with one holder."""
    references = " UNION ALL ".join(
        f"SELECT {column} AS hash, {owner} AS session_id FROM {table} "
        f"WHERE {column} IS NOT NULL"
        for table, column, owner in _HOLDERS
    )
    return (
        f"SELECT r.session_id, {size} FROM "
        f"(SELECT hash, min(session_id) AS session_id FROM ({references}) AS u "
        "GROUP BY hash HAVING min(session_id) = max(session_id)) AS r "
        "JOIN blob AS b ON b.hash = r.hash"
    )


def freed_blobs(dialect: Dialect, size: str) -> str:
    """Return the query for the *size* of blobs ``b`` that no other session holds.

    The sessions are those of the list parameter ``ids``.
    """
    named = f"IN {dialect.list_text('ids', str)}"
    held = " UNION ".join(
        f"SELECT {column} AS hash FROM {table} "
        f"WHERE {owner} {named} AND {column} IS NOT NULL"
        for table, column, owner in _HOLDERS
    )
    elsewhere = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = h.hash "
        f"AND {owner} NOT {named})"
        for table, column, owner in _HOLDERS
    )
    return (
        f"SELECT {size} FROM ({held}) AS h JOIN blob AS b ON b.hash = h.hash "
        f"WHERE {elsewhere}"
    )
