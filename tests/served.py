"""Databases of a server for tests that have none: one that works, and one out of reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.base import Engine
from sessiondb.engine.sqlite.engine import SQLITE
from sessiondb.engine.sqlite.target import SQLiteFile
from sessiondb.errors import UnavailableError

PASSWORD = "s3cret"
URL = f"postgresql://ann:{PASSWORD}@db.example:5433/team"
#: The URL as users are shown it.
SHOWN = "postgresql://ann:***@db.example:5433/team"


@dataclass(frozen=True)
class ServedFile:
    """A target without a path, like that of a server: all the rest is that of a file."""

    file: SQLiteFile
    address: ServerAddress
    engine: Engine = SQLITE
    path: None = None

    def __str__(self) -> str:
        return str(self.address)

    def facts(self) -> dict[str, Any]:
        facts = self.file.facts()
        names = facts.keys() & {"exists", "bytes"}
        return {"path": str(self), "server": "PostgreSQL 15.18"} | {
            name: facts[name] for name in names
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@dataclass(frozen=True)
class Unreachable:
    """A target of a server that does not answer."""

    address: ServerAddress
    engine: Engine = SQLITE
    path: None = None

    def __str__(self) -> str:
        return str(self.address)

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: object, **__: object) -> None:
            raise UnavailableError(
                f"{self.address} does not answer", hint="check that it runs"
            )

        return refuse


def served(path: Path, address: ServerAddress) -> ServedFile:
    """Return a database whose content is the file at *path*."""
    return ServedFile(SQLiteFile(path), address)
