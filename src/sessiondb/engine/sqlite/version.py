"""The marks of our files: the application, the schema, the releases that may use it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sessiondb import __version__
from sessiondb.errors import SchemaVersionError
from sessiondb.hints import command
from sessiondb.schema.version import APPLICATION_ID, MIN_READER, MIN_WRITER, VERSION


def identity_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return (application_id, user_version)."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def to_migrate(path: Path) -> str:
    """Return the hint for a database that is older than this release."""
    return f"{command('--db', str(path), 'migrate')} updates it; a backup is kept"


def refuse(path: Path, version: int, age: str) -> None:
    """Raise `SchemaVersionError` for a "newer" or "older" file (*age*)."""
    hint = "install a newer sessiondb" if age == "newer" else to_migrate(path)
    raise SchemaVersionError(
        f"{path} has schema {version}, which is {age} than this release's {VERSION}",
        hint=hint,
    )


def _release_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in version.split(".") if piece.isdigit())


def check_newer(
    connection: sqlite3.Connection, path: Path, version: int, *, writing: bool
) -> None:
    """Refuse a file of a newer schema unless it admits this release.

    Several agents pin different releases and share one file, so an additive
    migration leaves ``min_reader`` and ``min_writer`` as they are.
    """
    key = "min_writer" if writing else "min_reader"
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None or _release_numbers(row[0]) > _release_numbers(__version__):
        refuse(path, version, "newer")


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
