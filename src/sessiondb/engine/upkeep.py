"""The operations of an engine that only maintenance needs.

Separate from `engine.base`, because few commands load what implements it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection, Cursor


@dataclass(frozen=True, slots=True)
class Room:
    """The free space that an operation needs in a folder, and has, in bytes."""

    folder: Path
    bytes_needed: int
    bytes_available: int


class Space(NamedTuple):
    """The size of a database, its unused part, and the room that `rewrite` needs."""

    bytes: int
    bytes_free: int
    rooms: tuple[Room, ...]


class Pending(NamedTuple):
    """A migration that has not been run on a database.

    Opening the database runs it if it and all others are ``additive``.
    """

    revision: str
    description: str
    additive: bool


class Upkeep(Protocol):
    """Operations on the engine's own storage: damage, space, copies, migrations.

    The invariants of our rows are not among them: `sessiondb.maintenance` checks those
    in SQL. Functions of a connection raise `Engine.Error`, those of a path our errors.
    """

    # -- damage and repair ---------------------------------------------------

    def damage(self, connection: Connection) -> list[str]:
        """Return a line for each defect of the database; ``[]`` for none.

        Damage that ends the examination is the last line. Raises `BusyError`.
        """

    def is_of_an_index(self, line: str) -> bool:
        """Return whether a line of `damage` is about an index that `reindex` mends."""

    def is_of_pages(self, line: str) -> bool:
        """Return whether a line of `damage` is about the storage, not its content.

        Such a database is not safe to write to.
        """

    def broken_references(self, connection: Connection) -> list[tuple[str, str]]:
        """Return (table, table it refers to) of each row with a broken reference."""

    def references_to(
        self, connection: Connection, table: str
    ) -> list[tuple[str, str]]:
        """Return the (table, column) that refer to *table*, as the database has them.

        A newer release may have added some.
        """

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

    def bytes_by_table(self, connection: Connection) -> dict[str, int]:
        """Return the bytes of each table with its indexes, the largest first.

        An engine may estimate them.
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

    # -- facts ---------------------------------------------------------------

    def versions(self) -> dict[str, str | None]:
        """Return the versions of the engine and of its libraries, None if missing."""

    def place_facts(self, path: Path) -> dict[str, Any]:
        """Return facts about the database at *path* without opening it, as JSON values.

        Without a database they are ``path`` and ``exists``, which is False.
        """

    def settings(self, connection: Connection) -> dict[str, Any]:
        """Return the settings of the database, a JSON object under one key."""

    def advice(self, report: dict[str, Any]) -> list[str]:
        """Return sentences of advice on a report; ``[]`` if there is nothing to do.

        *report* has `place_facts` under ``database``, and `settings` if it was opened.
        """

    # -- the schema ----------------------------------------------------------

    def verify(self, path: Path) -> None:
        """Raise what `Engine.ensure` would raise for the existing database at *path*.

        Nothing is written; an older database passes if an opening may migrate it.
        """

    def pending(self, path: Path) -> list[Pending]:
        """Return the pending migrations, in order; ``[]`` for a current database.

        Raises `NotFoundError`, `NotADatabaseError`, `UntrustedDatabaseError`, and
        `SchemaVersionError` for one that this release cannot migrate.
        """

    def migrate(self, path: Path) -> Path | None:
        """Run the pending migrations; return the backup, None if none was needed.

        Raises `SchemaVersionError`, `BusyError`, `ConflictError` (rows would have been
        lost) and the errors of the storage; each leaves the database as it was.
        """

    # -- SQL of users --------------------------------------------------------

    def query(self, path: Path, sql: str) -> AbstractContextManager[Cursor]:
        """Run one statement of a user, for a ``with`` block that reads its rows.

        It can read the database and do nothing else, and has the function
        ``data_json(data)``: a column ``data`` as JSON text, NULL for NULL. Text that is
        not valid Unicode is read with lone surrogates. Raises `ReadOnlyError` for a
        statement that writes, `InvalidInputError` for one that is not SQL, and the
        errors of `Engine.translate`.
        """

    def shell(self, path: Path) -> list[str]:
        """Return the command, with arguments, of a shell that only reads *path*.

        Raises `NotFoundError` if it is not installed.
        """
