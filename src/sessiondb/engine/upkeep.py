"""The operations of an engine that only maintenance needs.

Separate from `engine.base`, because few commands load what implements it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sessiondb.dataclass import dataclass

if TYPE_CHECKING:
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


class Shell(NamedTuple):
    """A command with its arguments, and what it adds to the environment.

    A password is never an argument: those of a process are public.
    """

    command: list[str]
    environment: dict[str, str]


class DatabaseUpkeep(Protocol):
    """Operations on one database; a part of `engine.base.Target`."""

    def exists(self) -> bool:
        """Return whether there is a database: the file, or our tables on the server.

        Raises `UnavailableError` for a server that does not answer.
        """

    def facts(self) -> dict[str, Any]:
        """Return facts about the place of the database, as JSON values.

        They are ``path``, which is ``str`` of the target, ``exists``, and ``bytes`` if
        it does; a database of a server has ``server``, its name and version. No file is
        opened for them. Raises `StorageError`, `UnavailableError`.
        """

    def verify(self) -> None:
        """Raise what `ensure` would raise for the database, which exists.

        Nothing is written; an older database passes if an opening may migrate it.
        """

    def pending(self) -> list[Pending]:
        """Return the pending migrations, in order; ``[]`` for a current database.

        Raises `NotFoundError`, `NotADatabaseError`, `UntrustedDatabaseError`, and
        `SchemaVersionError` for one that this release cannot migrate.
        """

    def migrate(self) -> Path | None:
        """Run the pending migrations; return the backup, None if none was made.

        Raises `SchemaVersionError`, `BusyError`, `ConflictError` (rows would have been
        lost) and the errors of the storage; each leaves the database as it was.
        """

    def query(self, sql: str) -> AbstractContextManager[Cursor]:
        """Run one statement of a user, for a ``with`` block that reads its rows.

        It can read the database and do nothing else, and has the function
        ``data_json(data)``: a column ``data`` as JSON text, NULL for NULL. Text that is
        not valid Unicode is read with lone surrogates. Raises `ReadOnlyError` for a
        statement that writes, `InvalidInputError` for one that is not SQL, and the
        errors of `translate`.
        """

    def shell(self) -> Shell:
        """Return the command of a shell that only reads the database.

        Raises `NotFoundError` if it is not installed.
        """


class Upkeep(Protocol):
    """Operations on the engine's own storage, and facts about it.

    The invariants of our rows are not among them: `sessiondb.maintenance` checks those
    in SQL. Functions of a connection raise `Engine.Error`.
    """

    # -- damage --------------------------------------------------------------

    def damage(self, connection: Connection) -> list[str]:
        """Return a line for each defect of the storage; ``[]`` for none.

        Damage that ends the examination is the last line. Always ``[]`` for a server,
        which examines its storage by itself. Raises `BusyError`.
        """

    def is_of_an_index(self, line: str) -> bool:
        """Return whether a line of `damage` is about an index that a repair mends."""

    def is_of_pages(self, line: str) -> bool:
        """Return whether a line of `damage` is about the storage, not its content.

        Such a database is not safe to write to.
        """

    def broken_references(self, connection: Connection) -> list[tuple[str, str]]:
        """Return (table, table it refers to) of each row with a broken reference.

        ``[]`` if the engine does not let any break.
        """

    def references_to(
        self, connection: Connection, table: str
    ) -> list[tuple[str, str]]:
        """Return the (table, column) that refer to *table*, as the database has them.

        A newer release may have added some.
        """

    # -- facts ---------------------------------------------------------------

    def bytes_by_table(self, connection: Connection) -> dict[str, int]:
        """Return the bytes of each table with its indexes, the largest first.

        An engine may estimate them.
        """

    def versions(self) -> dict[str, str | None]:
        """Return the versions of the engine and of its libraries, None if missing."""

    def settings(self, connection: Connection) -> dict[str, Any]:
        """Return the settings of the database, a JSON object under one key."""

    def advice(self, report: dict[str, Any]) -> list[str]:
        """Return sentences of advice on a report; ``[]`` if there is nothing to do.

        *report* has `Target.facts` under ``database``, and `settings` if it was opened.
        """
