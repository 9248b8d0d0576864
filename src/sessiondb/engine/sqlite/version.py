"""The marks of our files: the application, the schema, the releases that may use it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sessiondb.engine import schema_version
from sessiondb.schema.version import APPLICATION_ID, MIN_READER, MIN_WRITER


def identity_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return (application_id, user_version)."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def to_migrate(path: Path) -> str:
    """Return the hint for a file that is older than this release."""
    return f"{schema_version.migrate_hint(str(path))}; a backup is kept"


def check_newer(
    connection: sqlite3.Connection, path: Path, version: int, *, writing: bool
) -> None:
    """Refuse a file of a newer schema unless it admits this release."""
    key = "min_writer" if writing else "min_reader"
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    schema_version.check_newer(str(path), version, None if row is None else row[0])


def stamp(connection: sqlite3.Connection, version: int) -> None:
    """Mark a new file as ours, and as of schema *version*."""
    import uuid  # only a new file needs it

    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={version}")
    facts = {
        "database_uuid": str(uuid.uuid4()),
        "min_reader": MIN_READER,
        "min_writer": MIN_WRITER,
        "indexed_to": "0",
        "usage_to": "0",
    }
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?)", list(facts.items())
    )
