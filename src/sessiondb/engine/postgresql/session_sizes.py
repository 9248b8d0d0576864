"""How many bytes of the database a session takes: what removing it alone would free.

They are its rows with their entries in the indexes, its entries of the search index,
and the blobs that no other session refers to, as the server stores them: it compresses
most of what is long. An estimate: pages are shared, and the server gives the space to
other rows, and not back to its disk. It reads each table once, whatever the number of
sessions.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, LargeBinary, Table, Text, UniqueConstraint

from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.extension_tables import PostgreSQLExtensionTables
from sessiondb.engine.session_rows import OWNERS, freed_blobs, own_blobs
from sessiondb.engine.sql import ComposedStatement, Read, quoted

#: Bytes of a row besides its values, and of an entry of an index: headers, places, and
#: the family.
_ROW, _ENTRY = 44, 28
#: Bytes of a number.
_NUMBER = 8
#: Pages are not full: those of an index by a third, and long values are cut into rows.
_FILL = 1.2
_EXTENSIONS = PostgreSQLExtensionTables()
_NAMED = f"IN {DIALECT.list_text('ids', str)}"
_BLOB = f"{_ROW} + 2 * {_ENTRY} + pg_column_size(b.hash) * 2 + pg_column_size(b.data)"


def _bytes_of_row(table: Table) -> str:
    """Return SQL for what a row takes in its table and in every index of it."""
    terms = [str(_ROW + _ENTRY + _NUMBER), _bytes_of_values(table.c)]
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        condition = index.dialect_options["postgresql"]["where"]
        entry = f"{_ENTRY} + {_bytes_of_values(index.columns)}"
        if condition is not None:
            entry = f"CASE WHEN {condition} THEN {entry} ELSE 0 END"
        terms.append(entry)
    terms += [
        f"{_ENTRY} + {_bytes_of_values(constraint.columns)}"
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint)
    ]
    return " + ".join(terms)


def _bytes_of_values(columns: Iterable[Column[Any]]) -> str:
    """Return SQL for the bytes of values as they are stored, compressed or not."""
    sizes = [
        f"coalesce(pg_column_size({column.name}), 0)"
        if isinstance(column.type, Text | LargeBinary)
        else str(_NUMBER // 2 if column.nullable else _NUMBER)
        for column in columns
    ]
    return " + ".join(sizes)


def _rows_of(table: Table, owner: str, *, is_named: bool) -> ComposedStatement:
    """Return the query for (session, bytes, rows) of a table."""
    condition = f" WHERE {owner} {_NAMED}" if is_named else ""
    return ComposedStatement(
        f"SELECT {owner}, sum({_bytes_of_row(table)}), count(*) "
        f"FROM {table.name}{condition} GROUP BY 1"
    )


#: By whether sessions are named: the statement of each table, and that of the index.
_ROWS = {
    is_named: {
        table.name: _rows_of(table, owner, is_named=is_named)
        for table, owner in OWNERS.items()
    }
    for is_named in (False, True)
}
_INDEX = {
    is_named: ComposedStatement(
        f"SELECT p.session_id, sum({_ROW + _ENTRY} + 2 * pg_column_size(e.words)) "
        "FROM part_search AS e JOIN part AS p ON p.rid = e.place"
        + (f" WHERE p.session_id {_NAMED}" if is_named else "")
        + " GROUP BY 1"
    )
    for is_named in (False, True)
}
_OWN_BLOBS = ComposedStatement(own_blobs(_BLOB, "family"))
_FREED_BLOBS = ComposedStatement(freed_blobs(DIALECT, _BLOB, "family"))


class PostgreSQLSessionSizes:
    """PostgreSQL's half of `engine.session_sizes.SessionSizes`."""

    def each(self) -> Read[dict[str, int]]:
        """Return by id the bytes that removing each session alone would free."""
        sums, _ = yield from _bytes_of_rows({})
        for session_id, size in (yield _OWN_BLOBS, {}):
            sums[session_id] += size
        # Rounded down, as their sum: together they are never more than they would free.
        return {session_id: int(size * _FILL) for session_id, size in sums.items()}

    def freed(self, session_ids: Iterable[str]) -> Read[tuple[int, int]]:
        """Return the bytes that removing these together frees, and their parts."""
        ids = {"ids": json.dumps(list(session_ids))}
        sums, parts = yield from _bytes_of_rows(ids)
        blobs = sum(size for (size,) in (yield _FREED_BLOBS, ids))
        return int((sum(sums.values()) + blobs) * _FILL), parts


def _bytes_of_rows(ids: dict[str, str]) -> Read[tuple[dict[str, int], int]]:
    """Return the bytes of rows and of search, by session, and the number of parts.

    *ids* are the parameters for some sessions; empty for all.
    """
    sums: dict[str, int] = defaultdict(int)
    parts = 0
    is_named = bool(ids)
    for table, statement in _ROWS[is_named].items():
        for session_id, size, rows in (yield statement, ids):
            sums[session_id] += size
            parts += rows if table == "part" else 0
    for session_id, size in (yield _INDEX[is_named], ids):
        sums[session_id] += size

    declarations = yield ComposedStatement(_EXTENSIONS.declarations), {}
    for extension_table in _EXTENSIONS.tables_of(declarations):
        if extension_table.is_of_sessions:
            names = extension_table.columns
            values = " + ".join(
                f"coalesce(pg_column_size({quoted(it)}), 0)" for it in names
            )
            condition = f" WHERE session_id {_NAMED}" if ids else ""
            statement = ComposedStatement(
                f"SELECT session_id, sum({_ROW} + 2 * {_ENTRY} + {values}) "
                f"FROM {extension_table.name}{condition} GROUP BY 1"
            )
            for session_id, size in (yield statement, ids):
                if session_id is not None:
                    sums[session_id] += size
    return sums, parts
