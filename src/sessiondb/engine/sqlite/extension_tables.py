"""The tables of extensions in a file: made, completed, listed, and emptied.

See `schema.extensions`. The names of tables and columns that a file states are used in
SQL only if they are names that an extension can have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sessiondb.engine.base import Connection, ExtensionTable
from sessiondb.errors import InvalidInputError

if TYPE_CHECKING:
    from sessiondb.schema.extensions import Extension

_VERSION = "SELECT version FROM extension WHERE name = ?"
_KEEP = (
    "INSERT INTO extension (name, version, tables, time_created, time_updated) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "version = excluded.version, tables = excluded.tables, "
    "time_updated = excluded.time_updated"
)
_DECLARED = "SELECT e.name, t.value FROM extension AS e JOIN json_each(e.tables) AS t"
_COLUMNS = "SELECT name FROM pragma_table_xinfo(?)"
#: A row for each column of each table. GLOB, because _ is a wildcard of LIKE, and a
#: name has to be one in SQL without quotes.
_DECLARATIONS = """
SELECT e.name, m.name, c.name
  FROM extension AS e
  JOIN json_each(e.tables) AS t
  JOIN sqlite_schema AS m ON m.type = 'table' AND m.name = t.value
  JOIN pragma_table_xinfo(m.name) AS c
 WHERE m.name GLOB 'ext_' || e.name || '_*' AND c.hidden = 0 AND c.name <> 'rid'
   AND NOT (m.name || c.name) GLOB '*[^a-z0-9_]*'
   AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE name = 'rid' AND pk = 1)
 ORDER BY e.rid, t.key, c.cid
"""


class SQLiteExtensionTables:
    """SQLite's half of `engine.base.ExtensionTables`."""

    declarations = _DECLARATIONS

    def put(self, connection: Connection, extension: Extension, now: int) -> bool:
        """Make the tables of *extension*, or complete those of an earlier version.

        In the transaction of the first write, so that a file which no program writes
        them to has none. Returns whether something was missing. Raises
        `InvalidInputError` for a column that cannot be added.
        """
        row = connection.execute(_VERSION, (extension.name,)).fetchone()
        if row is not None and row[0] >= extension.version:
            return False

        # Not at the top: a process without extensions loads no SQLAlchemy.
        from sessiondb.engine.sqlite.compiling import (
            column_statement,
            index_statements,
            table_statement,
        )

        for table in extension.metadata.tables.values():
            columns = {name for (name,) in connection.execute(_COLUMNS, (table.name,))}
            if not columns:
                connection.execute(table_statement(table))
            for column in table.c:
                if columns and column.name not in columns:
                    if not column.nullable and column.server_default is None:
                        raise InvalidInputError(
                            f"column {column.name} cannot be added to {table.name}: it "
                            "needs a server_default, or to be nullable"
                        )
                    connection.execute(column_statement(column))
            for statement in index_statements(table):
                connection.execute(statement)

        names = json.dumps(list(extension.metadata.tables))
        connection.execute(_KEEP, (extension.name, extension.version, names, now, now))
        return True

    def listed(self, connection: Connection) -> list[ExtensionTable]:
        """Return the tables of all extensions of the file."""
        return self.tables_of(connection.execute(_DECLARATIONS).fetchall())

    def tables_of(self, rows: Iterable[tuple[Any, ...]]) -> list[ExtensionTable]:
        """Return the tables that rows of `declarations` describe."""
        columns: dict[tuple[str, str], list[str]] = {}
        for extension, table, column in rows:
            columns.setdefault((extension, table), []).append(column)
        return [
            ExtensionTable(extension, table, tuple(names))
            for (extension, table), names in columns.items()
        ]

    def missing(self, connection: Connection) -> list[tuple[str, str]]:
        """Return (extension, table) of each declared table that is not there."""
        existing = {table.name for table in self.listed(connection)}
        declared = connection.execute(_DECLARED).fetchall()
        return [(name, table) for name, table in declared if table not in existing]

    def remove_rows(
        self,
        connection: Connection,
        tables: Iterable[ExtensionTable],
        session_ids: Sequence[str],
    ) -> None:
        """Remove the rows of sessions from tables."""
        names = json.dumps(list(session_ids))
        for table in tables:
            sql = (
                f"DELETE FROM {table.name} WHERE session_id IN "
                "(SELECT value FROM json_each(?))"
            )
            connection.execute(sql, (names,))
