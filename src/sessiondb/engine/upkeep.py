"""Upkeep, the second half of the seam: what maintenance needs of an engine.

Apart from `engine.base`, because hardly a command loads what implements it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sessiondb.engine.base import Connection, Cursor


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that are needed in a folder, and that its disk has."""

    folder: Path
    bytes_needed: int
    bytes_available: int


class Space(NamedTuple):
    """The bytes of a database, those that are unused, and what rewriting it needs."""

    bytes: int
    bytes_free: int
    rooms: tuple[Room, ...]


class Pending(NamedTuple):
    """A migration that a database has not seen.

    An additive one is run when it is opened.
    """

    revision: str
    description: str
    additive: bool


class Upkeep(Protocol):
    """The knowledge of an engine about a database: damage, sizes, copies.

    What our own rows must be is checked in SQL, by `sessiondb.maintenance`. Functions
    of a connection raise `Engine.Error`, those of a path our own errors.
    """

    # -- damage and repair ---------------------------------------------------

    def damage(self, connection: Connection) -> list[str]:
        """Return a line for each defect of the database; ``[]`` for none.

        Damage that ends the examination is the last line. Raises `BusyError`.
        """

    def is_of_an_index(self, line: str) -> bool:
        """Return whether a line of `damage` is of an index that `reindex` makes."""

    def is_of_pages(self, line: str) -> bool:
        """Return whether a line of `damage` is of the storage, not its content."""

    def broken_references(self, connection: Connection) -> list[tuple[str, str]]:
        """Return (table, table it refers to) of each row with a broken reference."""

    def references_to(
        self, connection: Connection, table: str
    ) -> list[tuple[str, str]]:
        """Return the (table, column) that refer to *table*, by the database itself."""

    def connect_to_repair(self, path: Path, busy_timeout: float) -> Connection:
        """Open *path* without checks that rows with broken references would fail."""

    def reindex(self, connection: Connection) -> None:
        """Build every index again, as far as the tables can be read."""

    # -- space ---------------------------------------------------------------

    def space(self, connection: Connection, path: Path) -> Space:
        """Return how large the database is, and what `rewrite` would need."""

    def rewrite(self, connection: Connection, path: Path) -> bool:
        """Give unused space to the disk; False if a reader keeps the old state.

        Raises `StorageFullError`, before anything is written, if a disk has too little
        room.
        """

    def bytes_by_table(self, connection: Connection) -> dict[str, int]:
        """Return table → bytes with its indexes, the largest first.

        Maybe an estimate.
        """

    # -- copies --------------------------------------------------------------

    def copied(
        self, path: Path, to: Path, *, exact: bool = False, part: Path | None = None
    ) -> AbstractContextManager[Path]:
        """Copy the database to the new file *to*, named when the block is left.

        The block gets the copy under its temporary name, *part*. The copy is compact,
        or *exact*: as it is, also if it is damaged. Raises the errors of
        `outputs.writing`.
        """

    def open_copy(self, copy: Path, original: Path) -> Connection:
        """Open a *copy* of the database *original*, which errors name, for reading.

        Raises `SchemaVersionError`, `UntrustedDatabaseError` and `CorruptionError`.
        """

    def make_place(self, path: Path) -> None:
        """Make the folder of a new database at *path*, as private as the database."""

    # -- facts ---------------------------------------------------------------

    def versions(self) -> dict[str, str | None]:
        """Return the versions of what the engine is made of, by name."""

    def place_facts(self, path: Path) -> dict[str, Any]:
        """Return the facts of the database at *path*, which is not opened, as JSON.

        Without a database ``exists`` is False and nothing else is known but ``path``.
        """

    def settings(self, connection: Connection) -> dict[str, Any]:
        """Return the settings of the database, as JSON values under one name."""

    def advice(self, report: dict[str, Any]) -> list[str]:
        """Return sentences on what to do about these facts and settings."""

    # -- migrations ----------------------------------------------------------

    def pending(self, path: Path) -> list[Pending]:
        """Return the pending migrations, in order; ``[]`` for a current database.

        Raises `NotFoundError`, `NotADatabaseError`, and `SchemaVersionError` for one
        that is too new.
        """

    def migrate(self, path: Path) -> Path | None:
        """Run the pending migrations; return the backup, None where none was needed.

        Raises `SchemaVersionError`, `BusyError`, `ConflictError` (rows would have been
        lost) and the errors of the storage; each leaves the database as it was.
        """

    # -- SQL of users --------------------------------------------------------

    def query(self, path: Path, sql: str) -> AbstractContextManager[Cursor]:
        """Run one read-only statement, for a ``with`` block that reads its rows.

        Text that is not valid Unicode is read with lone surrogates. Raises
        `ReadOnlyError` for a statement that writes, `InvalidInputError` for one that is
        not SQL, and the errors of `Engine.translate`.
        """

    def shell(self, path: Path) -> list[str]:
        """Return the command of a shell that only reads; raises `NotFoundError`."""
