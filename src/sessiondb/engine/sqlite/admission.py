"""The first check of every use of a file: whether its schema is ours, and which one.

`schema_of` recognises a file, `admit` refuses one that this release cannot read as it
is. Nothing is made or written, so an older schema is refused as well: the error names
the command that updates the file.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sessiondb.engine.schema_version import refuse_older
from sessiondb.engine.sqlite.connection import SQLiteConnection, connect
from sessiondb.engine.sqlite.failures import translated
from sessiondb.engine.sqlite.fingerprint import check_schema
from sessiondb.engine.sqlite.version import check_newer, identity_of, to_migrate
from sessiondb.errors import NotADatabaseError
from sessiondb.schema.version import APPLICATION_ID, VERSION

#: The schema version of a file without a schema.
EMPTY = -1


def schema_of(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of our database at *path*; `EMPTY` for an empty file.

    Raises `NotADatabaseError` for anything else.
    """
    application, version = identity_of(connection)
    if application == APPLICATION_ID:
        return version

    is_empty = _is_empty(connection)
    # Another process may have filled the file in the meantime. It does so in one
    # transaction, so a file that has content by now also has its identity.
    application, version = identity_of(connection)
    if application == APPLICATION_ID:
        return version
    if not is_empty:
        raise foreign(path)
    return EMPTY


def foreign(path: Path) -> NotADatabaseError:
    """Return the error of a file of another program."""
    return NotADatabaseError(
        f"{path} is not a sessiondb database", hint="name another file"
    )


def _is_empty(connection: sqlite3.Connection) -> bool:
    row = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    # Texts are also stored as blobs, which SQL reads in the encoding of the file.
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    return bool(
        row[0] == 0 and identity_of(connection) == (0, 0) and encoding == "UTF-8"
    )


def admit(
    connection: sqlite3.Connection, path: Path, version: int, *, writing: bool = False
) -> None:
    """Refuse our database at *path*, of schema *version*, unless it can be read as is.

    With *writing*, unless this release may also write it.

    Raises `NotADatabaseError` for an empty file, `SchemaVersionError` and
    `UntrustedDatabaseError`.
    """
    if version == EMPTY:
        raise foreign(path)
    if version < VERSION:
        refuse_older(str(path), version, to_migrate(path))
    if version > VERSION:
        check_newer(connection, path, version, writing=writing)
    check_schema(connection, path, version)


def open_copy(copy: Path, original: Path) -> SQLiteConnection:
    """Open a *copy* of the database *original*, which errors name, for reading.

    Raises `NotADatabaseError`, `SchemaVersionError`, `UntrustedDatabaseError` and
    `CorruptionError`.
    """
    connection = connect(copy, mode="ro")
    try:
        with translated(original):
            admit(connection, original, schema_of(connection, original))
    except BaseException:
        connection.close()
        raise

    return connection
