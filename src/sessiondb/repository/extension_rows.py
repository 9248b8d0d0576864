"""The rows that programs added to a session, whatever tables they are in.

See `schema.extensions`. Tables are found by their declarations in the file, so a row
is read without the program that wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiondb.engine.extension_tables import ExtensionTable
from sessiondb.engine.sql import ComposedStatement, as_list, listed
from sessiondb.model.export import ExtensionRow
from sessiondb.repository import Read, engine_in_use


def tables_with_rows(session_id: str) -> Read[list[ExtensionTable]]:
    """Return the tables of extensions that have rows of a session."""
    extensions = (yield from engine_in_use()).extensions
    declarations = yield ComposedStatement(extensions.declarations), {}
    tables = []
    for table in extensions.tables_of(declarations):
        if table.is_of_sessions:
            sql = f"SELECT 1 FROM {table.name} WHERE session_id = :sid LIMIT 1"
            if (yield ComposedStatement(sql), {"sid": session_id}):
                tables.append(table)
    return tables


def row_numbers(table: ExtensionTable, session_id: str) -> Read[list[int]]:
    """Return the row numbers of a session in a table, in order."""
    sql = f"SELECT rid FROM {table.name} WHERE session_id = :sid ORDER BY rid"
    return [rid for (rid,) in (yield ComposedStatement(sql), {"sid": session_id})]


def rows_at(table: ExtensionTable, rids: Sequence[int]) -> Read[list[ExtensionRow]]:
    """Return the rows with these numbers; those that were removed are left out."""
    dialect = (yield from engine_in_use()).dialect
    names = [name for name in table.columns if name != "session_id"]
    sql = (
        f"SELECT {listed(names) or 'NULL'} FROM {table.name} "
        f"WHERE rid IN {dialect.list_text('rids', int)} ORDER BY rid"
    )
    rows = yield ComposedStatement(sql), {"rids": as_list(rids)}
    return [
        ExtensionRow(
            table.extension,
            table.name,
            {
                name: value
                for name, value in zip(names, row, strict=False)
                if value is not None
            },
        )
        for row in rows
    ]
