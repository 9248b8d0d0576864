"""The tables of extensions in a file: see `engine.declared_tables`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.engine.declared_tables import DeclaredTables
from sessiondb.engine.sqlite.dialect import DIALECT

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

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


class SQLiteExtensionTables(DeclaredTables):
    """SQLite's `engine.extension_tables.ExtensionTables`."""

    dialect = DIALECT
    declarations, declared, columns = _DECLARATIONS, _DECLARED, _COLUMNS

    # Not at the top: a process without extensions loads no SQLAlchemy.

    def table_statement(self, table: Table) -> str:
        """Return the CREATE statement of a table."""
        from sessiondb.engine.sqlite.compiling import table_statement

        return table_statement(table)

    def column_statement(self, column: Column[Any]) -> str:
        """Return the statement that adds a column."""
        from sessiondb.engine.sqlite.compiling import column_statement

        return column_statement(column)

    def index_statements(self, table: Table) -> list[str]:
        """Return a CREATE statement for each index."""
        from sessiondb.engine.sqlite.compiling import index_statements

        return index_statements(table)
