"""Reading without migrating: only files whose schema this release may read.

Nothing is made or written, so an older schema is refused as well: the error names the
command that updates the file.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sessiondb.engine.sqlite.connection import connect
from sessiondb.engine.sqlite.failures import translated
from sessiondb.engine.sqlite.fingerprint import check_schema
from sessiondb.engine.sqlite.version import check_newer, identity_of, refuse
from sessiondb.schema.version import VERSION


def admit(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Refuse our database at *path*, of schema *version*, unless it can be read as is.

    Raises `SchemaVersionError` and `UntrustedDatabaseError`.
    """
    if version < VERSION:
        refuse(path, version, "older")
    if version > VERSION:
        check_newer(connection, path, version, writing=False)
    check_schema(connection, version)


def open_copy(copy: Path, original: Path) -> sqlite3.Connection:
    """Open a *copy* of the database *original*, which errors name, for reading.

    Raises `SchemaVersionError`, `UntrustedDatabaseError` and `CorruptionError`.
    """
    connection = connect(copy, mode="ro")
    try:
        with translated(original):
            _, version = identity_of(connection)
            admit(connection, original, version)
    except BaseException:
        connection.close()
        raise

    return connection
