"""The tables of extensions as every engine makes, completes, lists and empties them.

See `schema.extensions`. The names of tables and columns that a database states are used
in SQL only if they are names that an extension can have: `declarations` of an engine
leaves out all others.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sessiondb.engine.base import Connection, Dialect
from sessiondb.engine.extension_tables import ExtensionTable
from sessiondb.engine.sql import as_list
from sessiondb.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

    from sessiondb.schema.extensions import Extension

_VERSION = "SELECT version FROM extension WHERE name = ?"
_KEEP = (
    "INSERT INTO extension (name, version, tables, time_created, time_updated) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "version = excluded.version, tables = excluded.tables, "
    "time_updated = excluded.time_updated"
)


class DeclaredTables(ABC):
    """What the `engine.extension_tables.ExtensionTables` of engines have in common."""

    #: The SQL of the engine.
    dialect: Dialect
    #: The query for extension, table and column of each table that is there.
    declarations: str
    #: That for extension and table of each declaration.
    declared: str
    #: That for the columns of the table ``?``; none if it is not there.
    columns: str

    @abstractmethod
    def table_statement(self, table: Table) -> str:
        """Return the CREATE statement of a table, without its indexes."""

    @abstractmethod
    def column_statement(self, column: Column[Any]) -> str:
        """Return the statement that adds a column to its table."""

    @abstractmethod
    def index_statements(self, table: Table) -> list[str]:
        """Return a CREATE statement for each index, which keeps one that exists."""

    def is_current(self, connection: Connection, extension: Extension) -> bool:
        """Return whether the tables of *extension* are complete."""
        row = connection.execute(_VERSION, (extension.name,)).fetchone()
        return row is not None and bool(row[0] >= extension.version)

    def put(self, connection: Connection, extension: Extension, now: int) -> bool:
        """Make the tables of *extension*, or complete those of an earlier version.

        In the transaction of the first write, so that a database which no program
        writes them to has none. Returns whether something was missing. Raises
        `InvalidInputError` for a column that cannot be added.
        """
        if self.is_current(connection, extension):
            return False

        for table in extension.metadata.tables.values():
            present = {
                name for (name,) in connection.execute(self.columns, (table.name,))
            }
            if present:
                self._add_columns(connection, table, present)
            else:
                connection.execute(self.table_statement(table))
            for statement in self.index_statements(table):
                connection.execute(statement)

        names = json.dumps(list(extension.metadata.tables))
        connection.execute(_KEEP, (extension.name, extension.version, names, now, now))
        return True

    def _add_columns(
        self, connection: Connection, table: Table, present: set[str]
    ) -> None:
        for column in table.c:
            if column.name in present:
                continue
            if not column.nullable and column.server_default is None:
                raise InvalidInputError(
                    f"column {column.name} cannot be added to {table.name}: it needs a "
                    "server_default, or to be nullable"
                )
            connection.execute(self.column_statement(column))

    def listed(self, connection: Connection) -> list[ExtensionTable]:
        """Return the tables of all extensions of the database."""
        return self.tables_of(connection.execute(self.declarations).fetchall())

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
        declared = connection.execute(self.declared).fetchall()
        return [(name, table) for name, table in declared if table not in existing]

    def remove_rows(
        self,
        connection: Connection,
        tables: Iterable[ExtensionTable],
        session_ids: Sequence[str],
    ) -> None:
        """Remove the rows of sessions from tables."""
        ids = self.dialect.list_text("ids", str)
        for table in tables:
            sql = f"DELETE FROM {table.name} WHERE session_id IN {ids}"
            connection.execute(sql, {"ids": as_list(session_ids)})
