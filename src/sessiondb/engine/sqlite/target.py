"""A database file as an `engine.base.Target`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessiondb.dataclass import dataclass
from sessiondb.engine import disk
from sessiondb.engine.base import Connection, Cursor, Engine, Mode, ReadableCopy
from sessiondb.engine.sqlite.connection import SQLiteConnection, connect
from sessiondb.engine.sqlite.engine import SQLITE
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.write_ahead_log import log_reaches
from sessiondb.errors import SessionDBError

if TYPE_CHECKING:
    from sessiondb.engine.upkeep import Pending, Shell


@dataclass(frozen=True, slots=True)
class SQLiteFile:
    """The database at ``path``, which may be missing."""

    path: Path

    @property
    def engine(self) -> Engine:
        """The engine of files."""
        return SQLITE

    def __str__(self) -> str:
        return str(self.path)

    def identity(self) -> disk.FileIdentity | None:
        """Return (st_dev, st_ino), None without a file."""
        return disk.identity(self.path)

    def ensure(
        self,
        *,
        create: bool = True,
        read_only: bool = False,
        busy_timeout: float = 10.0,
        root: Path | None = None,
    ) -> Connection | None:
        """Make sure that there is a current, verified file; see `opening.ensure`."""
        from sessiondb.engine.sqlite.opening import ensure

        return ensure(
            self.path,
            create=create,
            read_only=read_only,
            busy_timeout=busy_timeout,
            root=root,
        )

    def connect(
        self,
        *,
        mode: Mode = "rw",
        busy_timeout: float = 10.0,
        durability: str = "full",
        one_thread: bool = False,
    ) -> SQLiteConnection:
        """Open the file; see `connection.connect`."""
        return connect(
            self.path,
            mode=mode,
            busy_timeout=busy_timeout,
            durability=durability,
            one_thread=one_thread,
        )

    def connect_writer(self) -> SQLiteConnection:
        """Open the file for the writer of this process."""
        connection = connect(self.path)
        # The writer does both by itself.
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA busy_timeout=0")
        return connection

    def check_writable(self, connection: Any) -> None:
        """Compare the schema with ours; see `admission.admit`."""
        from sessiondb.engine.sqlite.admission import admit, schema_of

        admit(connection, self.path, schema_of(connection, self.path), writing=True)

    def log_reaches(self, size: int) -> bool:
        """Return whether the write-ahead log has *size* bytes to be moved."""
        return log_reaches(self.path, size)

    def salvage(self, to: Path, *, read_only: bool = False) -> ReadableCopy:
        """Copy the readable rows of a damaged file; see `salvage.readable_copy`."""
        # Not at the top: every command loads this module, and few need a copy.
        from sessiondb.engine.sqlite.salvage import readable_copy

        return readable_copy(self.path, to, read_only=read_only)

    def translate(self, error: Exception) -> SessionDBError:
        """Return our error for one of the driver; see `failures.translate`."""
        return translate(error, self.path)

    # -- upkeep --------------------------------------------------------------

    # Its modules are not at the top, as above: alembic alone takes as long to load as
    # everything else together.

    def exists(self) -> bool:
        """Return whether there is a file."""
        return self.path.exists()

    def facts(self) -> dict[str, Any]:
        """Return facts about the file; see `facts.place_facts`."""
        from sessiondb.engine.sqlite.facts import place_facts

        return place_facts(self.path)

    def verify(self) -> None:
        """Refuse a file that this release cannot open; see `opening.verify`."""
        from sessiondb.engine.sqlite.opening import verify

        verify(self.path)

    def pending(self) -> list[Pending]:
        """Return the pending migrations; see `migrations.pending`."""
        from sessiondb.engine.sqlite import migrations

        return migrations.pending(self.path)

    def migrate(self) -> Path | None:
        """Run the pending migrations; see `migrations.upgrade`."""
        from sessiondb.engine.sqlite import migrations

        return migrations.upgrade(self.path)

    def query(self, sql: str) -> AbstractContextManager[Cursor]:
        """Run one statement that reads; see `querying.query`."""
        from sessiondb.engine.sqlite.querying import query

        return query(self.path, sql)

    def shell(self) -> Shell:
        """Return the command of the sqlite3 shell; see `querying.shell`."""
        from sessiondb.engine.sqlite.querying import shell

        return shell(self.path)
