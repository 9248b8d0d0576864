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
HOLDERS = [
    (table.name, column.name, owner)
    for table, owner in OWNERS.items()
    for column in table.c
    if any(key.target_fullname == "blob.hash" for key in column.foreign_keys)
]


def own_blobs(size: str, part_of_key: str = "") -> str:
    """Return the query for (session, *size*) of each blob ``b`` with one holder.

    *part_of_key* is a column of all these tables by which blobs are apart.
    """
    more, is_same = _apart_by(part_of_key, "b", "r")
    references = " UNION ALL ".join(
        f"SELECT {more}{column} AS hash, {owner} AS session_id FROM {table} "
        f"WHERE {column} IS NOT NULL"
        for table, column, owner in HOLDERS
    )
    return (
        f"SELECT r.session_id, {size} FROM "
        f"(SELECT {more}hash, min(session_id) AS session_id FROM ({references}) AS u "
        f"GROUP BY {more}hash HAVING min(session_id) = max(session_id)) AS r "
        f"JOIN blob AS b ON b.hash = r.hash{is_same}"
    )


def _apart_by(part_of_key: str, left: str, right: str) -> tuple[str, str]:
    """Return a further column of a list, and a further term of a comparison."""
    if not part_of_key:
        return "", ""
    is_same = f" AND {left}.{part_of_key} = {right}.{part_of_key}"
    return f"{part_of_key}, ", is_same


def freed_blobs(dialect: Dialect, size: str, part_of_key: str = "") -> str:
    """Return the query for the *size* of blobs ``b`` that no other session holds.

    The sessions are those of the list parameter ``ids``; *part_of_key* is that of
    `own_blobs`.
    """
    more, is_same = _apart_by(part_of_key, "b", "h")
    named = f"IN {dialect.list_text('ids', str)}"
    held = " UNION ".join(
        f"SELECT {more}{column} AS hash FROM {table} "
        f"WHERE {owner} {named} AND {column} IS NOT NULL"
        for table, column, owner in HOLDERS
    )
    elsewhere = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = h.hash"
        f"{_apart_by(part_of_key, table, 'h')[1]} AND {owner} NOT {named})"
        for table, column, owner in HOLDERS
    )
    return (
        f"SELECT {size} FROM ({held}) AS h JOIN blob AS b ON b.hash = h.hash{is_same} "
        f"WHERE {elsewhere}"
    )
