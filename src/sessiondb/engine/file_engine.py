"""The interface of an engine whose databases are files, beside that of every engine."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sessiondb.engine.base import Connection, Engine
from sessiondb.engine.disk import FileIdentity
from sessiondb.engine.upkeep import Space, Upkeep


class FileUpkeep(Upkeep, Protocol):
    """What only a file has; functions of a path raise our errors."""

    # -- repair --------------------------------------------------------------

    def connect_to_repair(self, path: Path, busy_timeout: float) -> Connection:
        """Open *path*, without the enforcement of references.

        *busy_timeout* is in seconds.
        """

    def reindex(self, connection: Connection) -> None:
        """Rebuild every index, as far as the tables can be read."""

    # -- space ---------------------------------------------------------------

    def space(self, connection: Connection, path: Path) -> Space:
        """Return the size of the database, and the room that `rewrite` needs."""

    def rewrite(self, connection: Connection, path: Path) -> bool:
        """Return unused space to the disk; False if a reader delays that.

        Raises `StorageFullError`, before anything is written, if a disk has too little
        room.
        """

    # -- copies --------------------------------------------------------------

    def copied(
        self, path: Path, to: Path, *, exact: bool = False, part: Path | None = None
    ) -> AbstractContextManager[Path]:
        """Copy the database as of one moment to the new file *to*.

        The ``with`` block gets the copy under a temporary name, *part*, to verify it;
        it is renamed when the block is left, and removed if by an exception. The copy
        is compact, or *exact*: with its damage. Raises the errors of `outputs.writing`.
        """

    def open_copy(self, copy: Path, original: Path) -> Connection:
        """Open a *copy* of the database *original*, which errors name, for reading.

        Raises `NotADatabaseError`, `SchemaVersionError`, `UntrustedDatabaseError` and
        `CorruptionError`.
        """

    def make_place(self, path: Path) -> None:
        """Make the missing folders of a new file at *path*, private like a database."""


class FileEngine(Engine, Protocol):
    """An engine whose databases are files."""

    @property
    def upkeep(self) -> FileUpkeep:
        """The operations of maintenance, loaded on first use."""

    def open_files(self) -> set[FileIdentity]:
        """Return the files of all databases that this process has open.

        With those beside each. To open and close one in another way could release its
        locks.
        """

    def owns(self, path: Path, facts: os.stat_result | None) -> bool:
        """Return whether the file at *path* is a database, or belongs to one.

        Such a file is never overwritten. *facts* are its ``lstat``, None without a
        file. Raises `StorageError` if the answer is unknown.
        """

    def reserved_ending(self, path: Path) -> str | None:
        """Return the ending of *path* that the engine reserves, None if it does not.

        Files with such names belong to the database of the rest of the name.
        """


class TemporaryPlace(Protocol):
    """A private place for one database, removed at the latest when the process ends."""

    path: Path

    def remove(self) -> None:
        """Remove the place with everything in it; idempotent."""
