"""Sessions that move to the family of a parent which came later.

It is the only change of a family of rows. A server of many nodes moves no row from one
to another one, so all rows are inserted again, with their numbers, and the earlier ones
removed. Other writers wait meanwhile: see `routes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sessiondb.engine.postgresql.blobs import UNLESS_STORED
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.extension_tables import PostgreSQLExtensionTables
from sessiondb.engine.session_rows import HOLDERS
from sessiondb.engine.sql import as_list, listed
from sessiondb.schema.columns import TABLES

if TYPE_CHECKING:
    from sessiondb.engine.postgresql.connection import PostgreSQLConnection

#: Tables with rows of sessions, those first to which others refer, and the column that
#: names the session.
_OWNERS = {
    "session": "id",
    "message": "session_id",
    "part": "session_id",
    "label": "session_id",
    "todo": "session_id",
    "file_diff": "session_id",
    "lease": "session_id",
    "merge_base": "session_id",
    "part_search": "session_id",
}
_COLUMNS = {
    **{name: tuple(TABLES[name]) for name in _OWNERS if name in TABLES},
    "part_search": ("place", "chunk", "session_id", "seq", "is_in_order", "words"),
}
#: Computed by the server.
_COMPUTED = {"hidden"}
_IDS = f"IN {DIALECT.list_text('ids', str)}"
#: The entries of the sessions, which name their rows.
_COPY_ENTRIES = (
    "INSERT INTO session_search (family, place, own_id, words) "
    "SELECT CAST(:new AS BIGINT), f.place, f.own_id, f.words FROM session_search AS f "
    "JOIN session AS s ON s.family = f.family AND s.rid = f.place "
    f"WHERE f.family = :family AND s.family = :family AND s.id {_IDS}"
)
_HASHES = f"IN {DIALECT.list_text('hashes', str)}"
_HELD = " UNION ".join(
    f"SELECT {column} FROM {table} "
    f"WHERE family = :family AND {owner} {_IDS} AND {column} IS NOT NULL"
    for table, column, owner in HOLDERS
)
_COPY_BLOBS = (
    "INSERT INTO blob (family, hash, size, encoding, data) "
    "SELECT CAST(:new AS BIGINT), hash, size, encoding, data FROM blob "
    f"WHERE family = :family AND hash {_HASHES} {UNLESS_STORED}"
)
_FREE_BLOBS = f"DELETE FROM blob WHERE family = :family AND hash {_HASHES}" + "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} "
    f"WHERE {table}.family = blob.family AND {table}.{column} = blob.hash)"
    for table, column, _ in HOLDERS
)
_REMOVE = f"DELETE FROM session WHERE family = :family AND id {_IDS}"
_EXTENSIONS = PostgreSQLExtensionTables()


def join_family(
    connection: PostgreSQLConnection, session_ids: Sequence[str], parent_id: str
) -> None:
    """Move a session and all below it, which come after it, to a parent's family."""
    routes = connection.routes
    routes.find([*session_ids, parent_id])
    new, family = routes.family(parent_id), routes.family(session_ids[0])
    if new == family:
        return

    routes.change(session_ids, new)
    params = {"family": family, "new": new, "ids": as_list(session_ids)}
    hashes = [name for (name,) in connection.execute(_HELD, params).fetchall()]
    params["hashes"] = as_list(hashes)
    connection.execute(_COPY_BLOBS, params)
    tables = [(name, owner, _COLUMNS[name]) for name, owner in _OWNERS.items()]
    tables += [
        (added.name, "session_id", ("rid", *added.columns))
        for added in _EXTENSIONS.listed(connection)
        if added.is_of_sessions
    ]
    for table, owner, columns in tables:
        names = listed(name for name in columns if name not in _COMPUTED)
        connection.execute(
            f"INSERT INTO {table} (family, {names}) "
            f"SELECT CAST(:new AS BIGINT), {names} FROM {table} "
            f"WHERE family = :family AND {owner} {_IDS}",
            params,
        )
    connection.execute(_COPY_ENTRIES, params)
    # All other rows go with those of the sessions.
    connection.execute(_REMOVE, params)
    connection.execute(_FREE_BLOBS, params)
