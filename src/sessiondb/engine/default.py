"""The engine of database files, for whoever has a path and no connection."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sessiondb.engine.base import Engine, Target, TemporaryPlace
from sessiondb.engine.sqlite.engine import SQLITE
from sessiondb.engine.sqlite.files import TemporaryDatabase
from sessiondb.engine.sqlite.target import SQLiteFile

ENGINE: Final[Engine] = SQLITE


def target_at(path: Path) -> Target:
    """Return the database at *path*, which may be missing."""
    return SQLiteFile(path)


def temporary_place() -> TemporaryPlace:
    """Return a new, empty place for a ``:memory:`` database."""
    return TemporaryDatabase()
