"""The interface of every engine: all that the rest of the package needs of a database.

An engine is a folder beside this module that implements `Engine` and `Target`, with
`Dialect`, `SearchIndex`, `UsageSums` and `Upkeep`. A target is where a database is; a
connection to it names the engine, so a process may use several. Neither promises more
than a server can keep: a connection may be gone at any time, and then it is unknown
whether its COMMIT took place.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.upkeep import DatabaseUpkeep
from sessiondb.errors import SessionDBError

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.sql import ClauseElement

    from sessiondb.engine.conditions import Condition
    from sessiondb.engine.extension_tables import ExtensionTables
    from sessiondb.engine.feed import ChangeFeed
    from sessiondb.engine.search_index import SearchIndex
    from sessiondb.engine.session_sizes import SessionSizes
    from sessiondb.engine.upkeep import Upkeep
    from sessiondb.engine.usage_sums import UsageSums
    from sessiondb.schema.rows import Blob

#: ``rw``; ``reader``: queries only, beside writers; ``ro``: queries only, and nothing
#: is written, not even locks or logs beside the data: the place may be read-only.
Mode = Literal["rw", "reader", "ro"]
#: When a commit is on disk: before it returns (``full``), or soon after (``normal``).
#: Either way the database stays consistent.
DURABILITIES = ("full", "normal")


class Cursor(Protocol):
    """The result of a statement, as in the DBAPI.

    A row is a tuple of None, int, float, str and bytes. Reading anything of it can
    raise `Engine.Error`, as the statement may run only when and as far as it is read.
    """

    @property
    def description(self) -> Any:
        """A tuple for each column, its name first; None if there are no columns."""

    @property
    def rowcount(self) -> int:
        """The number of rows that an INSERT, UPDATE or DELETE changed."""

    def fetchone(self) -> Any:
        """Return the next row; None after the last."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""


class Connection(Protocol):
    """A connection in autocommit: transactions are begun and ended explicitly.

    `Engine.begin_read` or `Engine.begin_write` begins one; `commit` or ROLLBACK ends
    it; SAVEPOINT, RELEASE and ROLLBACK TO nest in it. SQL has ``?`` with a sequence of
    values, or ``:name`` with a mapping. Values are None, int (64 bits), float, str
    and bytes.
    """

    @property
    def engine(self) -> Engine:
        """The engine of the database."""

    @property
    def in_transaction(self) -> bool:
        """True from the beginning of a transaction to its COMMIT or ROLLBACK."""

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run one statement; raises `Engine.Error`.

        A statement that fails changes nothing. Its transaction stays open, unless the
        engine rolled it back: `in_transaction` is False then. Further statements run
        in it if `Engine.continues_after_error`, else once a savepoint is rolled back.
        A value that cannot be stored raises `UnicodeEncodeError` or `OverflowError`.

        With `Engine.answers_late` a statement in a transaction may run later than this,
        in the order of all of them: when a cursor of it or of a later one is read, in
        `settle`, or in `commit`. The first of these that comes raises its error. After
        a ROLLBACK, also one to a savepoint, nothing does that it undoes.
        """

    def settle(self) -> None:
        """Wait until all statements have run; raises the first `Engine.Error`.

        For code that catches the error of certain statements, or says whose it is.
        """

    def commit(self) -> None:
        """End the transaction, which is then on disk; raises `Engine.Error`.

        It raises the error of a statement that had not run, too; then the transaction
        is open, and can only be rolled back.

        It is one call into C, without a line of Python inside: no interrupt separates
        it from what its caller does in the same call into C.
        """

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Run a statement once for each item of *parameters*; raises as `execute`."""

    def close(self) -> None:
        """Close the connection and roll an open transaction back; idempotent."""


class Dialect(Protocol):
    """The SQL of an engine: the text that `Connection` runs."""

    def __hash__(self) -> int:
        """Return a number by which texts that are written for it are kept."""

    @property
    def name(self) -> str:
        """SQLAlchemy's name of the dialect."""

    @property
    def shipped(self) -> Mapping[str, str]:
        """The text of each statement of `statements`, by its name."""

    def compile(self, expression: ClauseElement) -> str:
        """Return the text, with ``:name`` for each parameter.

        Raises `sqlalchemy.exc.CompileError` for an expression that it cannot write.
        """

    def compile_with_constants(
        self, statement: ClauseElement
    ) -> tuple[str, dict[str, Any], frozenset[str]]:
        """Return the text, its constants by name, and the names of its parameters.

        The constants of a program's own statement are bound like its parameters: it may
        have made them of anything. Raises as `compile`.
        """

    def list_text(self, name: str, kind: type[int | str]) -> str:
        """Return the list parameter *name* as a subquery in parentheses.

        Its value is a JSON array of *kind*: see `sql.as_list`.
        """

    def distinct_numbers(self, value: str) -> str:
        """Return the aggregate that lists the integers of a group, each once.

        It is a text with commas between them.
        """

    def candidates(
        self, column: str, conditions: Sequence[Condition]
    ) -> tuple[str, Mapping[str, Any]]:
        """Return SQL that holds if the JSON in *column* may meet *conditions*.

        It holds for each value that does, and for as few others as the engine can
        tell; with the parameters in it.
        """


#: The marks around a word of a snippet that matches.
SNIPPET_MARKS = ("\u2039", "\u203a")


@dataclass(slots=True)
class ReadableCopy:
    """A copy of the readable rows of a damaged database, read through ``connection``.

    ``lost`` is the number of lost rows by table, ``damaged`` are the ids of sessions
    that are known to have lost some, and ``known`` is True if no other has.
    """

    connection: Connection
    lost: dict[str, int] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    known: bool = True

    def is_complete(self, session_id: str) -> bool:
        """Return whether every row of a session is in the copy."""
        return self.known and session_id not in self.damaged

    def close(self) -> None:
        """Close the connection; the caller removes the folder of the copy."""
        self.connection.close()


#: What is looked up by a name and made if it is missing: its kind, then the name.
Name = tuple[str | None, ...]
#: What tells one database from another one, while both exist.
Identity = Hashable


class Target(DatabaseUpkeep, Protocol):
    """A database that can be opened: a file, or one of a server.

    ``str`` of it is for users: it has no password. Its functions raise our errors.
    """

    @property
    def engine(self) -> Engine:
        """The engine of the database."""

    @property
    def path(self) -> Path | None:
        """The file; None for a database of a server."""

    def identity(self) -> Identity | None:
        """Return what no other database has now; None if there is no file.

        Raises `StorageError`.
        """

    def ensure(
        self,
        *,
        create: bool = True,
        read_only: bool = False,
        busy_timeout: float = 10.0,
        root: Path | None = None,
    ) -> Connection | None:
        """Make sure that a current, verified database is there.

        The connection by which it was verified is returned, as one that only reads;
        None if it cannot be one, as that of a file which had to be made.

        A missing one is made if *create*, and migrated if each pending migration is
        additive; *read_only* permits neither. It has the tables of `sessiondb.schema`
        and the search index. With *root* (a project) nothing between it and the
        database may be a link. *busy_timeout* is in seconds. Raises `NotFoundError`,
        `NotADatabaseError`, `UntrustedDatabaseError` (a schema that is not ours),
        `SchemaVersionError`, `BusyError`, `UnavailableError` and the errors of the
        storage.
        """

    def connect(
        self,
        *,
        mode: Mode = "rw",
        busy_timeout: float = 10.0,
        durability: str = "full",
        one_thread: bool = False,
    ) -> Connection:
        """Open the database, which must exist.

        *busy_timeout* is in seconds; *durability* is one of `DURABILITIES`, else
        `InvalidInputError` is raised. With *one_thread* only this thread may use and
        close the connection; without it, one thread at a time. Raises
        `StoreClosedError` for a file that was open when this process was forked, and
        the errors of `translate`.
        """

    def connect_writer(self) -> Connection:
        """Open the database for the writer of this process.

        Durability is full. It does not wait for locks by itself: see
        `Engine.begin_write`. Raises what `connect` does.
        """

    def check_writable(self, connection: Connection) -> None:
        """Refuse to write unless the schema, in the transaction, is one we may write.

        It is compared as before first use: another program may have migrated the
        database since, or planted a trigger. Raises `SchemaVersionError`,
        `NotADatabaseError` and `UntrustedDatabaseError`.
        """

    def log_reaches(self, size: int) -> bool:
        """Return whether `Engine.checkpoint` has *size* bytes to move.

        False for an engine that keeps no such log, or takes care of it by itself.
        """

    def salvage(self, to: Path, *, read_only: bool = False) -> ReadableCopy:
        """Copy the readable rows of a damaged database to the new file *to*.

        *read_only*: nothing is written beside the original. Raises `CorruptionError`
        if nothing can be read, `UnsupportedError` for a server.
        """

    def translate(self, error: Exception) -> SessionDBError:
        """Return what `Engine.translate` does; a message may name the database."""


class Engine(Protocol):
    """A kind of database, without state: all state is in its connections.

    There is one object for each kind. What opens a database is its `Target`. Functions
    of a connection raise `Error`.
    """

    def __hash__(self) -> int:
        """Return a number by which texts that are written for an engine are kept."""

    @property
    def name(self) -> str:
        """The name that is shown to users."""

    @property
    def dialect(self) -> Dialect:
        """The SQL of the engine."""

    @property
    def search(self) -> SearchIndex:
        """The search index."""

    @property
    def feed(self) -> ChangeFeed:
        """The feed of changes."""

    @property
    def session_sizes(self) -> SessionSizes:
        """The sizes of sessions, loaded on first use."""

    @property
    def usage(self) -> UsageSums:
        """The sums of usage."""

    @property
    def extensions(self) -> ExtensionTables:
        """The tables that programs added."""

    @property
    def upkeep(self) -> Upkeep:
        """The operations of maintenance, loaded on first use."""

    #: The base class of the driver's errors.
    Error: type[Exception]
    #: The statement that begins a snapshot: all queries up to its end see one state,
    #: while others write.
    begin_read: str
    #: Whether a transaction continues after one of its statements failed.
    continues_after_error: bool
    #: Whether transactions that write run side by side, and lock what they write to.
    writes_side_by_side: bool
    #: Whether a statement may run after `Connection.execute`: those that do not depend
    #: on each other's results then cost one round trip to a server.
    answers_late: bool

    def translate(self, error: Exception) -> SessionDBError:
        """Return our error for an `Error`, to be raised ``from`` it.

        `BusyError` if waiting may help, `CorruptionError` only for damage,
        `ConflictError` and `NotFoundError` for a violated key or reference,
        `UnavailableError` for a connection that is gone, `SessionDBError` if nothing
        more exact applies.
        """

    def is_usable(self, connection: Connection) -> bool:
        """Return whether *connection* may be used further; one that is gone may not.

        It asks nobody: a connection can be lost right after.
        """

    def must_repeat(self, error: Exception) -> bool:
        """Return whether a transaction that ended with an `Error` is to be run again.

        The engine gave it up for one of another writer.
        """

    def begin_write(
        self, connection: Connection, busy_timeout: float = 0.0, *, is_alone: bool = ...
    ) -> None:
        """Begin a transaction that writes.

        With *is_alone* (default False) no other one writes until it ends. An engine
        with one lock for all writers takes it here, so that none fails another one, and
        waits for it as long as *connection* does by itself, and up to *busy_timeout*
        seconds more; one with a lock for each session waits as long for those. Raises
        an `Error` that translates to `BusyError`.
        """

    def time_of(self, connection: Connection) -> int:
        """Return the time of the database when the open transaction began, Unix ms."""

    def lock_sessions(
        self,
        connection: Connection,
        session_ids: Collection[str],
        names: Collection[Name] = (),
    ) -> bool:
        """Let no other transaction write to sessions any more.

        Called before their rows are read, if this transaction writes them; a session
        that does not exist is passed over. *names* are locked as `lock_name` does.
        True if a lock is new: what was read before may be out of date. False for an
        engine whose `begin_write` has locked all.
        """

    def lock_new_session(
        self, connection: Connection, session_id: str, parent_id: str | None
    ) -> None:
        """Lock a session whose row is inserted next, and its parent."""

    def lock_name(self, connection: Connection, *name: str | None) -> bool:
        """Let no other transaction lock the same *name* until this one ends.

        For a row that is made if it is not there, and for one that is not of a session.
        The result is that of `lock_sessions`.
        """

    def join_family(
        self, connection: Connection, session_ids: Sequence[str], parent_id: str
    ) -> None:
        """Keep sessions with the family of a parent that they get next.

        They are a session and all below it, after those that are above them, and all of
        them are locked.
        """

    def lock_blobs(self, connection: Connection, hashes: str) -> None:
        """Lock blobs of the sessions that are locked, a list, before some are removed.

        Who does the same for one of them waits.
        """

    def forget_session(self, connection: Connection, session_id: str) -> None:
        """Do for a session whose row is removed next what no reference does."""

    def set_durability(self, connection: Connection, level: str) -> None:
        """Set the durability of further commits, one of `DURABILITIES`.

        Called outside of transactions.
        """

    def commits_of_others(self, connection: Connection) -> int:
        """Return a number that changes with every commit of another connection.

        Only numbers of the same connection can be compared.
        """

    def schema_mark(self, connection: Connection) -> tuple[int, ...]:
        """Return numbers that every change of the schema changes, in its snapshot.

        Read when another process has written, so it costs no more than a call or two.
        """

    def insert_blobs(
        self, connection: Connection, session_id: str, blobs: Sequence[Blob]
    ) -> None:
        """Insert rows of ``blob`` for rows of a session; one of the same name stays.

        But a text replaces the compressed bytes of an equal content. No further copies
        are made of large bytes.
        """

    def checkpoint(
        self, connection: Connection, busy_timeout: float = 0.0, room: int = 0
    ) -> bool:
        """Move the log into the database and empty it; True if there is none.

        It waits like `begin_write`; False if another connection still needs the log.
        *room* is how many bytes may stay on the disk for the commits that follow.
        """

    # -- SQLAlchemy ----------------------------------------------------------

    def sqlalchemy(self, connect: Callable[[], Connection]) -> sqlalchemy.Connection:
        """Return a connection of SQLAlchemy's over the one that *connect* opens."""

    def sqlalchemy_async(self, connect: Callable[[], Connection]) -> AsyncConnection:
        """Return one for asyncio; *connect* is called in the thread that will use it.

        Needs greenlet.
        """
