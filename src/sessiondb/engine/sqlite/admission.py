"""A private copy of another database of ours, opened only if this release may read it.

Nothing is made, migrated or written, so an older schema is refused as well: it is
updated where it is, by the command that the error names.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sessiondb.engine.sqlite.connection import connect
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.fingerprint import check_schema
from sessiondb.engine.sqlite.version import check_newer, identity_of, refuse
from sessiondb.schema.version import VERSION


def open_copy(copy: Path, original: Path) -> sqlite3.Connection:
    """Open a *copy* of the database *original*, which errors name, for reading.

    Raises `SchemaVersionError`, `UntrustedDatabaseError` and `CorruptionError`.
    """
    connection = connect(copy, mode="ro")
    try:
        _, version = identity_of(connection)
        if version < VERSION:
            refuse(original, version, "older")
        if version > VERSION:
            check_newer(connection, original, version, writing=False)
        check_schema(connection, version)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, original) from error
    except BaseException:
        connection.close()
        raise

    return connection
