"""The tables of extensions in a database: made, completed, listed, and emptied.

See `schema.extensions`. The names of tables and columns that a database states are used
in SQL only if they are names that an extension can have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sessiondb.engine.base import Connection, ExtensionTable
from sessiondb.engine.postgresql.admission import LOCK, SCHEMA
from sessiondb.errors import InvalidInputError

if TYPE_CHECKING:
    from sessiondb.schema.extensions import Extension

#: The server cuts a longer name short.
_MOST_NAME_BYTES = 63
_VERSION = "SELECT version FROM extension WHERE name = ?"
_KEEP = (
    "INSERT INTO extension (name, version, tables, time_created, time_updated) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "version = excluded.version, tables = excluded.tables, "
    "time_updated = excluded.time_updated"
)
#: A declaration that is not an array names nothing.
_ELEMENTS = (
    "json_array_elements_text(CASE json_typeof(CAST(e.tables AS JSON)) "
    "WHEN 'array' THEN CAST(e.tables AS JSON) ELSE '[]' END)"
)
_DECLARED = f"SELECT e.name, t FROM extension AS e CROSS JOIN {_ELEMENTS} AS t"
_RELATION = f"c.relkind = 'r' AND c.relnamespace = {SCHEMA}"
_COLUMNS = f"""
SELECT a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
 WHERE c.relname = ? AND {_RELATION} AND a.attnum > 0 AND NOT a.attisdropped
"""
#: A row for each column of each table.
_DECLARATIONS = f"""
SELECT e.name, c.relname, a.attname
  FROM extension AS e
 CROSS JOIN {_ELEMENTS} WITH ORDINALITY AS t (name, place)
  JOIN pg_class AS c ON c.relname = t.name AND {_RELATION}
  JOIN pg_attribute AS a
    ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE starts_with(t.name, 'ext_' || e.name || '_') AND a.attname <> 'rid'
   AND (t.name || a.attname) !~ '[^a-z0-9_]'
   AND EXISTS (SELECT 1 FROM pg_index AS i JOIN pg_attribute AS k
                  ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)
                WHERE i.indrelid = c.oid AND i.indisprimary AND k.attname = 'rid')
 ORDER BY e.rid, t.place, a.attnum
"""


class PostgreSQLExtensionTables:
    """PostgreSQL's half of `engine.base.ExtensionTables`."""

    declarations = _DECLARATIONS

    def put(self, connection: Connection, extension: Extension, now: int) -> bool:
        """Make the tables of *extension*, or complete those of an earlier version.

        In the transaction of the first write, and after every other one that makes
        tables. Returns whether something was missing. Raises `InvalidInputError` for a
        column that cannot be added, and for a name that is too long for the server.
        """
        if self._is_current(connection, extension):
            return False
        connection.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        if self._is_current(connection, extension):
            return False

        # Not at the top: a process without extensions loads no SQLAlchemy.
        from sessiondb.engine.postgresql.compiling import (
            column_statement,
            index_statements,
            table_statement,
        )

        for table in extension.metadata.tables.values():
            if len(table.name) > _MOST_NAME_BYTES:
                raise InvalidInputError(
                    f"{table.name} is longer than {_MOST_NAME_BYTES} characters, the "
                    "most that PostgreSQL takes for a name"
                )
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

    def _is_current(self, connection: Connection, extension: Extension) -> bool:
        row = connection.execute(_VERSION, (extension.name,)).fetchone()
        return row is not None and bool(row[0] >= extension.version)

    def listed(self, connection: Connection) -> list[ExtensionTable]:
        """Return the tables of all extensions of the database."""
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
                "(SELECT * FROM json_array_elements_text(CAST(? AS JSON)))"
            )
            connection.execute(sql, (names,))
