"""The tables of extensions on a server: see `engine.declared_tables`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.engine.base import Connection
from sessiondb.engine.declared_tables import DeclaredTables
from sessiondb.engine.postgresql.admission import LOCK, SCHEMA
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

    from sessiondb.schema.extensions import Extension

#: The server cuts a longer name short.
_MOST_NAME_BYTES = 63
#: A declaration that is not an array names nothing.
_ELEMENTS = (
    "json_array_elements_text(CASE json_typeof(CAST(e.tables AS JSON)) "
    "WHEN 'array' THEN CAST(e.tables AS JSON) ELSE '[]' END)"
)
_DECLARED = f"SELECT e.name, t FROM extension AS e CROSS JOIN {_ELEMENTS} AS t"
_RELATION = f"c.relkind IN ('r', 'p') AND c.relnamespace = {SCHEMA}"
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
 WHERE starts_with(t.name, 'ext_' || e.name || '_')
   AND a.attname NOT IN ('rid', 'family')
   AND (t.name || a.attname) !~ '[^a-z0-9_]'
   AND EXISTS (SELECT 1 FROM pg_index AS i JOIN pg_attribute AS k
                  ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)
                WHERE i.indrelid = c.oid AND i.indisprimary AND k.attname = 'rid')
 ORDER BY e.rid, t.place, a.attnum
"""


class PostgreSQLExtensionTables(DeclaredTables):
    """PostgreSQL's `engine.extension_tables.ExtensionTables`."""

    dialect = DIALECT
    declarations, declared, columns = _DECLARATIONS, _DECLARED, _COLUMNS

    def put(self, connection: Connection, extension: Extension, now: int) -> bool:
        """Make or complete the tables, after every other writer that makes tables.

        Returns whether something was missing. Raises `InvalidInputError` for a column
        that cannot be added, and for a name that is too long for the server.
        """
        if self.is_current(connection, extension):
            return False
        connection.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        for name in extension.metadata.tables:
            if "family" in extension.metadata.tables[name].c:
                raise InvalidInputError(
                    f"{name} has a column family; on a server it is ours"
                )
            if len(name) > _MOST_NAME_BYTES:
                raise InvalidInputError(
                    f"{name} is longer than {_MOST_NAME_BYTES} characters, the most "
                    "that PostgreSQL takes for a name"
                )
        return super().put(connection, extension, now)

    # Not at the top: a process without extensions loads no SQLAlchemy.

    def table_statement(self, table: Table) -> str:
        """Return the CREATE statement of a table."""
        from sessiondb.engine.postgresql.compiling import table_statement

        return table_statement(table)

    def column_statement(self, column: Column[Any]) -> str:
        """Return the statement that adds a column."""
        from sessiondb.engine.postgresql.compiling import column_statement

        return column_statement(column)

    def index_statements(self, table: Table) -> list[str]:
        """Return a CREATE statement for each index."""
        from sessiondb.engine.postgresql.compiling import index_statements

        return index_statements(table)
