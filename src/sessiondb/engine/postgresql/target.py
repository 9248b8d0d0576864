"""A database of a server as an `engine.base.Target`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessiondb.dataclass import dataclass
from sessiondb.engine.address import ServerAddress
from sessiondb.engine.base import (
    DURABILITIES,
    Connection,
    Cursor,
    Engine,
    Identity,
    Mode,
    ReadableCopy,
)
from sessiondb.engine.postgresql.connecting import connect
from sessiondb.engine.postgresql.engine import POSTGRESQL
from sessiondb.engine.postgresql.failures import translate
from sessiondb.engine.postgresql.parameters import parameters_of
from sessiondb.errors import (
    InvalidInputError,
    SessionDBError,
    UnsupportedError,
    abridged,
)

if TYPE_CHECKING:
    from sessiondb.engine.postgresql.connection import PostgreSQLConnection
    from sessiondb.engine.upkeep import Pending, Shell


@dataclass(frozen=True, slots=True)
class PostgreSQLDatabase:
    """The database at ``address``, in the first schema of the role's search path."""

    address: ServerAddress

    @property
    def engine(self) -> Engine:
        """The engine of servers."""
        return POSTGRESQL

    @property
    def path(self) -> None:
        """None: it is not a file."""

    def __str__(self) -> str:
        return str(self.address)

    def identity(self) -> Identity:
        """Return what its URL states: two spellings are two writers, which do no harm.

        Raises `InvalidInputError` for a URL that libpq does not read.
        """
        return parameters_of(self.address)

    def ensure(
        self,
        *,
        create: bool = True,
        read_only: bool = False,
        busy_timeout: float = 10.0,
        root: Path | None = None,  # noqa: ARG002  for files
    ) -> Connection | None:
        """Make sure that our tables are there and current; see `opening.ensure`."""
        from sessiondb.engine.postgresql.opening import ensure

        return ensure(
            self.address, create=create, read_only=read_only, busy_timeout=busy_timeout
        )

    def connect(
        self,
        *,
        mode: Mode = "rw",
        busy_timeout: float = 10.0,
        durability: str = "full",
        one_thread: bool = False,  # noqa: ARG002  one at a time is enough
    ) -> PostgreSQLConnection:
        """Open the database; see `connecting.connect`."""
        if durability not in DURABILITIES:
            raise InvalidInputError(
                f"durability is full or normal, not {abridged(durability)}"
            )
        return connect(
            self.address, mode=mode, busy_timeout=busy_timeout, durability=durability
        )

    def connect_writer(self) -> PostgreSQLConnection:
        """Open the database for the writer of this process."""
        return connect(self.address, busy_timeout=0.0)

    def check_writable(self, connection: Connection) -> None:
        """Compare the version of the schema with ours; see `admission.admit`."""
        from sessiondb.engine.postgresql.admission import admit

        admit(connection, str(self), writing=True)

    def log_reaches(self, size: int) -> bool:  # noqa: ARG002  it is the server's
        """Return False: the server takes care of its log."""
        return False

    def salvage(
        self,
        to: Path,  # noqa: ARG002
        *,
        read_only: bool = False,  # noqa: ARG002
    ) -> ReadableCopy:
        """Raise `UnsupportedError`: the files of a server are not ours to read."""
        raise UnsupportedError(
            f"{self} is in the hands of its server, which does not read damaged pages",
            hint="restore a backup of the server",
        )

    def translate(self, error: Exception) -> SessionDBError:
        """Return our error for one of the driver; see `failures.translate`."""
        return translate(error)

    # -- upkeep --------------------------------------------------------------

    # Its modules are not at the top: few commands need them, and alembic takes as long
    # to load as everything else together.

    def exists(self) -> bool:
        """Return whether the server has our tables."""
        from sessiondb.engine.postgresql.facts import exists

        return exists(self.address)

    def facts(self) -> dict[str, Any]:
        """Return facts about the database; see `facts.database_facts`."""
        from sessiondb.engine.postgresql.facts import database_facts

        return database_facts(self.address)

    def verify(self) -> None:
        """Refuse tables that this release cannot open; see `facts.verify`."""
        from sessiondb.engine.postgresql.facts import verify

        verify(self.address)

    def pending(self) -> list[Pending]:
        """Return the pending migrations; see `migrations.pending`."""
        from sessiondb.engine.postgresql import migrations

        return migrations.pending(self.address)

    def migrate(self) -> Path | None:
        """Run the pending migrations; there is no copy of the database before them."""
        from sessiondb.engine.postgresql import migrations

        if migrations.pending(self.address):
            migrations.upgrade(self.address)
        return None

    def query(self, sql: str) -> AbstractContextManager[Cursor]:
        """Run one statement that reads; see `querying.query`."""
        from sessiondb.engine.postgresql.querying import query

        return query(self.address, sql)

    def shell(self) -> Shell:
        """Return the command of psql; see `querying.shell`."""
        from sessiondb.engine.postgresql.querying import shell

        return shell(self.address)
