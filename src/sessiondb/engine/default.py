"""The engines by what names a database: a path, or the address on a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.base import Engine, Target
from sessiondb.engine.file_engine import FileEngine, TemporaryPlace
from sessiondb.engine.sqlite.engine import SQLITE
from sessiondb.engine.sqlite.files import TemporaryDatabase
from sessiondb.engine.sqlite.target import SQLiteFile
from sessiondb.errors import MissingExtraError

#: The engine of files.
ENGINE: Final[FileEngine] = SQLITE


def target_at(path: Path) -> Target:
    """Return the database at *path*, which may be missing."""
    return SQLiteFile(path)


def target_of(address: ServerAddress) -> Target:
    """Return the database of a server.

    Raises `MissingExtraError` without the extra ``postgresql``.
    """
    # Not at the top: who has files alone does not need the driver.
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"a database of PostgreSQL needs {error.name}",
            hint="pip install 'sessiondb[postgresql]'",
        ) from error
    from sessiondb.engine.postgresql.target import PostgreSQLDatabase

    return PostgreSQLDatabase(address)


def temporary_place() -> TemporaryPlace:
    """Return a new, empty place for a ``:memory:`` database."""
    return TemporaryDatabase()


def loaded_engines() -> list[Engine]:
    """Return the engines that this process can have used: no other one is loaded."""
    module = sys.modules.get("sessiondb.engine.postgresql.engine")
    return [SQLITE] if module is None else [SQLITE, module.POSTGRESQL]
