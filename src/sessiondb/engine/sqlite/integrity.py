"""Damage that SQLite finds in a file, and what it can make again."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sessiondb.engine.sqlite.connection import SQLiteConnection, connect
from sessiondb.engine.sqlite.failures import translate
from sessiondb.errors import BusyError, CorruptionError
from sessiondb.patterns import late_pattern

#: Lines of integrity_check about an index alone, which its table can make again.
OF_AN_INDEX = late_pattern(
    r"missing from index|wrong # of entries in index|non-unique entry in"
)
#: Lines of integrity_check about pages, and not about what is in them.
OF_PAGES = late_pattern(
    r"\*\*\*|[Tt]ree \d+|[Pp]age \d+|[Ff]reelist|malformed|disk image"
)
_REFERENCES = (
    'SELECT m.name, f."from" FROM sqlite_schema AS m '
    "JOIN pragma_foreign_key_list(m.name) AS f "
    "WHERE m.type = 'table' AND f.\"table\" = ?"
)


def damage(connection: Any) -> list[str]:
    """Return the lines of integrity_check; ``[]`` for an intact file.

    Raises `BusyError`.
    """
    lines: list[str] = []
    try:
        # It hands out what it found before it stumbles.
        lines.extend(line for (line,) in connection.execute("PRAGMA integrity_check"))
    except sqlite3.DatabaseError as error:
        if isinstance(translated := translate(error), BusyError):
            raise translated from error
        lines.append(str(error))

    return [line for line in lines if line != "ok"]


def broken_references(connection: Any) -> list[tuple[str, str]]:
    """Return (table, table it refers to) of each row with a broken reference."""
    rows = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [(table, parent) for table, _, parent, _ in rows]


def references_to(connection: Any, table: str) -> list[tuple[str, str]]:
    """Return the (table, column) with a foreign key to *table*."""
    references: list[tuple[str, str]] = connection.execute(
        _REFERENCES, (table,)
    ).fetchall()
    return references


def connect_to_repair(path: Path, busy_timeout: float) -> SQLiteConnection:
    """Open *path* without foreign keys: their checks would get in the way."""
    connection = connect(path, busy_timeout=busy_timeout)
    connection.execute("PRAGMA foreign_keys=OFF")
    return connection


def reindex(connection: Any) -> None:
    """Build every index again, as far as the tables can be read."""
    try:
        connection.execute("REINDEX")
    except sqlite3.DatabaseError as error:
        if not isinstance(translate(error), CorruptionError):
            raise
