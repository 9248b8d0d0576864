"""The connection of a process that writes to one database file.

It is opened when it is first needed, and used only while the file at its path is the
one that was opened. Its settings are forgotten before they are changed and recorded
after: an interrupt in between leaves them unknown, and never wrong.
"""

from __future__ import annotations

from collections.abc import Collection

from sessiondb.dataclass import dataclass, field
from sessiondb.effects.locking import keys_of
from sessiondb.effects.preload import Preload
from sessiondb.effects.queue import Queue
from sessiondb.effects.transaction import Carryover, Transaction
from sessiondb.engine.base import Connection, Engine, Identity, Target
from sessiondb.errors import DatabaseReplacedError, SessionDBError

#: A larger log slows readers down. The daemon thread shortens it; when it grows by as
#: much again, the thread that commits does.
LOG_BYTES = 8 * 1024 * 1024
#: The commits in a large log from which on most of them are small.
MANY_COMMITS = 32
#: Seconds that a checkpoint waits for other processes; it can be made up for later.
CHECKPOINT_PATIENCE = 0.05
_UNKNOWN_DURABILITY = ""


@dataclass(slots=True)
class WriterConnection:
    """The writing connection to *target*; only who has the role uses it."""

    target: Target
    identity: Identity
    #: None while it is closed.
    inner: Connection | None = None
    durability: str = _UNKNOWN_DURABILITY
    #: That of the last transaction, unless another process wrote since.
    carryover: Carryover = field(default_factory=Carryover)
    #: Whether the log is to be shortened, as far as the last commit saw.
    has_large_log: bool = False
    #: From how many bytes on that is so; more while others keep the log.
    _log_limit: int = LOG_BYTES
    #: Commits of this process since the log was emptied.
    _commits_in_log: int = 0
    #: `Engine.commits_of_others` in the last transaction; None before the first one.
    _commits_seen: int | None = None
    #: That of the schema which was compared last.
    _schema_mark: tuple[int, ...] | None = None

    @property
    def engine(self) -> Engine:
        """The engine of the database."""
        return self.target.engine

    def ready(self, durability: str) -> Connection:
        """Return the connection, opened if needed, with this durability.

        Raises `DatabaseReplacedError` and the errors of `Target.connect`.
        """
        if not self._is_in_place():
            # Empties the log, which the new file would otherwise take for its own.
            self.disconnect()
            self.check_in_place()

        self._drop_if_gone()
        connection = self.inner or self._open_connection()
        if durability != self.durability:
            self.durability = _UNKNOWN_DURABILITY
            self.engine.set_durability(connection, durability)
            self.durability = durability

        return connection

    def begin(
        self,
        connection: Connection,
        busy_timeout: float,
        *,
        is_alone: bool = False,
        units: Collection[Queue] = (),
    ) -> Transaction:
        """Begin a transaction that writes, on a schema that is known to be ours.

        It waits up to *busy_timeout* seconds for other writers, and with *is_alone* for
        all of them. What the effects of *units* state is locked and loaded right
        away by an engine that `answers_late`. Raises `SchemaVersionError` and
        `UntrustedDatabaseError`.
        """
        engine = self.engine
        engine.begin_write(connection, busy_timeout, is_alone=is_alone)
        preload = None
        # Its statements are written for our schema: that is looked at first, once.
        if engine.answers_late and units and self._schema_mark:
            preload = Preload(connection, keys_of(units))
        now = engine.time_of(connection)
        if preload is not None and engine.schema_mark(connection) != self._schema_mark:
            connection.execute("ROLLBACK")
            return self.begin(connection, busy_timeout, is_alone=is_alone)
        commits = engine.commits_of_others(connection)
        if commits != self._commits_seen:
            self._see_others(connection, commits)
        # Until it is committed nothing is known here: it may be interrupted.
        carryover, self.carryover = self.carryover, Carryover()
        tx = Transaction(connection, carryover, now)
        if preload is not None:
            preload.give_to(tx)
        return tx

    def _see_others(self, connection: Connection, commits: int) -> None:
        # Another process may have migrated the file, or planted a trigger in it, which
        # this transaction would run; and what was carried over is out of date.
        mark = self.engine.schema_mark(connection)
        if mark != self._schema_mark:
            self.target.check_writable(connection)
            self._schema_mark = mark
        self.carryover = Carryover(waiting_bytes=self.carryover.waiting_bytes)
        self._commits_seen = commits

    def roll_back(self) -> None:
        """Undo the transaction that is open, if one is."""
        self._drop_if_gone()
        connection = self.inner
        if connection is None or not connection.in_transaction:
            return

        try:
            connection.execute("ROLLBACK")
        except self.engine.Error:
            # Closing rolls back, too.
            self.inner = None
            connection.close()

    def check_in_place(self) -> None:
        """Raise `DatabaseReplacedError` if the file at the path is another one."""
        if not self._is_in_place():
            raise DatabaseReplacedError(
                f"{self.target} was replaced or removed since it was opened",
                hint="close the store and open it again; "
                "what is at the path now was not written",
            )

    def look_at_log(self) -> None:
        """Record whether the log is large; shorten it if the daemon thread did not."""
        self._commits_in_log += 1
        limit = self._log_limit
        self.has_large_log = self.target.log_reaches(limit)
        if self.has_large_log and self.target.log_reaches(limit + LOG_BYTES):
            self.shorten_log()

    def shorten_log(self) -> None:
        """Move a large log into the database, while more is written."""
        if self.has_large_log:
            # Before the checkpoint, so that both delay the same commit.
            self.put_waiting()
            # To write it is a write of 8 MB, which only many small commits make up for.
            room = LOG_BYTES if self._commits_in_log >= MANY_COMMITS else 0
            if not self.checkpoint(room):
                # The next attempt is after as many bytes more: each waits for readers.
                self._log_limit += LOG_BYTES
        self.has_large_log = False

    def checkpoint(self, room: int = 0) -> bool:
        """Move the log into the database; False if it is closed or in use.

        *room* is that of `Engine.checkpoint`.
        """
        connection = self.inner
        if connection is None:
            return False

        try:
            is_moved = self.engine.checkpoint(connection, CHECKPOINT_PATIENCE, room)
        except self.engine.Error:
            # The commit is on disk; the next one tries again.
            return False
        if is_moved:
            self._log_limit, self._commits_in_log = LOG_BYTES, 0
        return is_moved

    def put_waiting(self) -> None:
        """Bring the search index and the sums of usage up to date.

        A no-op if the connection is closed or in use.
        """
        connection = self.inner
        if connection is None or not self._is_in_place():
            return

        search, usage = self.engine.search, self.engine.usage
        try:
            if not (search.is_behind(connection) or usage.is_behind(connection)):
                return
            # No data depends on it: queries find what waits as well.
            self.begin(self.ready("normal"), CHECKPOINT_PATIENCE)
            search.put_waiting(connection)
            usage.put_waiting(connection)
            connection.commit()
        except (self.engine.Error, SessionDBError):
            self.roll_back()

    def disconnect(self) -> None:
        """Close the connection; a no-op if it is closed."""
        connection = self.inner
        if connection is None:
            return
        if not self._is_in_place():
            # Else the log of a file that was replaced is left for the new file to find.
            self.checkpoint()

        self.inner = None
        connection.close()

    def is_gone(self) -> bool:
        """Return whether the connection was lost; False while it is closed."""
        return self.inner is not None and not self.engine.is_usable(self.inner)

    def _drop_if_gone(self) -> None:
        connection = self.inner
        if connection is not None and self.is_gone():
            self.inner = None
            connection.close()

    def _open_connection(self) -> Connection:
        self.carryover, self._commits_seen = Carryover(), None
        connection = self.inner = self.target.connect_writer()
        self.durability = "full"
        return connection

    def _is_in_place(self) -> bool:
        return self.target.identity() == self.identity
