"""The rows that programs added to a session, as its log has them.

Their tables are made by the extension, which another installation may lack: its rows
are left out then, and reported. A row whose key is here stays as it is here.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points
from itertools import groupby
from operator import attrgetter

from sessiondb.dataclass import dataclass
from sessiondb.effects.extension import complete_tables
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.extension_tables import ExtensionTable
from sessiondb.engine.sql import insert_text
from sessiondb.importing.rows.run import Run
from sessiondb.model.export import ExtensionRow

_table_of_row = attrgetter("extension", "table")
#: The entry points of packages that have extensions: name → ``module:EXTENSION``.
GROUP = "sessiondb.extensions"


@dataclass(slots=True, eq=False)
class ImportExtensionRows:
    """Insert rows of a session that are not here yet."""

    verb = "import"
    run: Run
    rows: tuple[ExtensionRow, ...]

    def apply(self, tx: Transaction) -> None:
        """Write them; a no-op if the session was deleted since."""
        if self.run.is_gone(tx):
            return
        tables: dict[str, ExtensionTable] | None = None
        for (extension, name), rows in groupby(self.rows, key=_table_of_row):
            if tables is None or name not in tables:
                tables = _tables_here(tx, extension, name)
            problem = f"there is no table {name} of {extension} here: install it"
            if name in tables:
                problem = self._insert(tx, tables[name], rows)
            if problem:
                self.run.rows_left_out[problem] = None

    def _insert(
        self, tx: Transaction, table: ExtensionTable, rows: Iterable[ExtensionRow]
    ) -> str:
        """Insert rows into a table; return why some were left out, or nothing."""
        problem = ""
        for names, alike in groupby(rows, key=lambda row: tuple(row.columns)):
            unknown = set(names) - set(table.columns)
            if unknown:
                problem = f"{table.name} has no column {min(unknown)} here"
                continue
            text = insert_text(table.name, ("session_id", *names))
            values = [(self.run.session_id, *row.columns.values()) for row in alike]
            # A row that the table refuses must not cost the rest of the session.
            try:
                with tx.savepoint():
                    cursor = tx.connection.executemany(
                        f"{text} ON CONFLICT DO NOTHING", values
                    )
                self.run.changed |= cursor.rowcount > 0
            except (tx.engine.Error, UnicodeEncodeError, OverflowError) as error:
                problem = f"{table.name} does not take a row: {error}"
        return problem


def _tables_here(
    tx: Transaction, extension: str, name: str
) -> dict[str, ExtensionTable]:
    """Return the tables of sessions by name, made now if they were missing."""
    tables = _tables_of_sessions(tx)
    if name not in tables:
        for entry in entry_points(group=GROUP, name=extension):
            complete_tables(tx, entry.load())
            tables = _tables_of_sessions(tx)
    return tables


def _tables_of_sessions(tx: Transaction) -> dict[str, ExtensionTable]:
    listed = tx.engine.extensions.listed(tx.connection)
    return {table.name: table for table in listed if table.is_of_sessions}
