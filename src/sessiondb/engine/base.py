"""The seam for engines: all that the rest of the package needs of a database.

SQLite is the only engine for now. Everything above `engine` speaks to a database
through what is declared here, so that a second engine is one more folder beside
`engine.sqlite` and not a search through every effect and read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sessiondb.engine.disk import FileIdentity
from sessiondb.errors import SessionDBError

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.sql import ClauseElement

    from sessiondb.engine.upkeep import Upkeep

#: ``rw``, ``reader`` (queries only, in step with writers), ``ro`` (nothing is written,
#: not even what readers and writers keep beside the data).
Mode = Literal["rw", "reader", "ro"]
#: When a commit is on disk: when it returns, or soon after.
DURABILITIES = ("full", "normal")


class Cursor(Protocol):
    """The result of a statement, as every DBAPI has it."""

    @property
    def description(self) -> Any:
        """Tuples that begin with the name of each column; None for a result without."""

    @property
    def rowcount(self) -> int:
        """How many rows a statement changed."""

    def fetchone(self) -> Any:
        """Return the next row; None after the last."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows that are left."""


class Connection(Protocol):
    """A connection in autocommit: transactions are begun and ended by statements."""

    @property
    def in_transaction(self) -> bool:
        """True between BEGIN and COMMIT or ROLLBACK."""

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run a statement; raises `Engine.Error`."""

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Run a statement once for each item of *parameters*; raises `Engine.Error`."""

    def close(self) -> None:
        """Close it; an open transaction is rolled back."""


class Dialect(Protocol):
    """How an engine writes SQL."""

    @property
    def name(self) -> str:
        """SQLAlchemy's name of the dialect."""

    def compile(
        self, expression: ClauseElement, columns: Sequence[str] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Return the text with named parameters, and its own constants.

        *columns* are the keys of an INSERT or UPDATE whose values come at run time.
        """

    def placeholders(self, expression: ClauseElement, columns: Sequence[str]) -> str:
        """Return INSERT text with one parameter for each of *columns*.

        Raises `ValueError` if *columns* are not in table order.
        """

    def list_text(self, name: str) -> str:
        """Return the list parameter *name* as a subquery in parentheses."""


class SearchIndex(Protocol):
    """The words of parts, titles and prompts.

    How it is written and the text that it understands are its own. A query of it names
    its rows ``f``, those of ``part`` and ``session`` ``p`` and ``s``; *joins* and
    *terms* are SQL about these, *columns* are what the caller wants of a match. Rows
    that go or change take themselves out.
    """

    #: SQL for where a match is in the index, larger for a newer one.
    place: str
    #: SQL for how well a match fits, the smallest best.
    rank: str
    #: SQL terms for rows of ``part`` named p, and of ``prompt``, that match ``:match``.
    part_matches: str
    prompt_matches: str
    #: A subquery in parentheses for the ``rid`` of the parts that are in the index.
    indexed: str
    #: SQL that joins to ``part`` named p what counts its words, the count (opaque
    #: bytes, see `words`), and a query for the arguments of `bytes_per_word`.
    words_of_part: str
    word_count: str
    totals: str

    def put(self, connection: Connection, rids: str) -> None:
        """Index rows of ``part``, a list parameter of their ``rid``."""

    def match(self, query: str) -> str:
        """Return what ``:match`` is given for a user's *query*.

        Raises `InvalidInputError` for a query without words.
        """

    def newest(self, columns: str, joins: str, terms: str) -> str:
        """Return the query for matches in parts: `place`, then *columns*.

        The newest first, at most ``:rows``, by a walk that ends there.
        """

    def sessions(self, joins: str, terms: str) -> str:
        """Return the query for the sessions with matches in parts.

        The session of the newest match comes first.
        """

    def snippets(self, columns: str, joins: str) -> str:
        """Return the query for the matches with the places ``:rids``.

        ``:low`` and ``:high`` are the first and last of them.
        """

    def snippet(self, marks: tuple[str, str], table: str = "part") -> str:
        """Return the column that shows a match in its words, between *marks*."""

    def titles(self, columns: str, terms: str) -> str:
        """Return the query for sessions whose title matches, at most ``:rows``."""

    def words(self, counts: str) -> int:
        """Return the number of words of a concatenation of ``hex(word_count)``."""

    def bytes_per_word(self, record: str | None, total: int | None) -> float:
        """Return the bytes of the index for each word in it; 0.0 for an empty one."""

    def damaged(self, connection: Connection) -> Iterator[str]:
        """Yield the parts of the index, by name, that are not what their content says.

        Takes the write lock. Raises `Engine.Error` if that is busy.
        """

    def rebuild(self, connection: Connection, names: Iterable[str] = ...) -> None:
        """Build parts of the index again, by name; without names all of it."""

    def optimize(self, connection: Connection) -> None:
        """Give back the space that removed text takes, and make queries fast again."""


@dataclass(slots=True)
class ReadableCopy:
    """The readable rows of a database, behind ``connection``; ``lost`` rows by table.

    ``damaged`` are the sessions that are known to have lost rows, ``known`` says
    whether those are all.
    """

    connection: Connection
    lost: dict[str, int] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    known: bool = True

    def is_complete(self, session_id: str) -> bool:
        """Return whether every row of a session is in the copy."""
        return self.known and session_id not in self.damaged

    def close(self) -> None:
        """Close the copy; its file goes with the folder that it is in."""
        self.connection.close()


class TemporaryPlace(Protocol):
    """A place for a database that ends with this process."""

    path: Path

    def remove(self) -> None:
        """Remove the place with everything in it; doing it again does nothing."""


class Engine(Protocol):
    """A kind of database, without state: a connection knows which one it is.

    Savepoints, COMMIT and ROLLBACK are standard SQL and not part of it.
    """

    @property
    def name(self) -> str:
        """How people call it."""

    @property
    def dialect(self) -> Dialect:
        """How it writes SQL."""

    @property
    def search(self) -> SearchIndex:
        """Its search index."""

    @property
    def upkeep(self) -> Upkeep:
        """What maintenance needs of the engine; loaded when it is used."""

    #: What the driver raises; `translate` makes one of our errors of it.
    Error: type[Exception]
    #: The statements that begin a snapshot for reading, and a transaction that may
    #: write.
    begin_read: str
    begin_write: str

    def translate(self, error: Exception, path: Path | None = None) -> SessionDBError:
        """Return our error for one of the driver's, to be raised ``from`` it.

        *path* is the database that was opened, if the caller knows it.
        """

    def connect(
        self,
        path: Path,
        *,
        mode: Mode = "rw",
        busy_timeout: float = 10.0,
        durability: str = "full",
        one_thread: bool = False,
    ) -> Connection:
        """Open the database at *path*, which must exist; *busy_timeout* is in seconds.

        With *one_thread* only this thread may use and close the connection; without it,
        one thread at a time. Raises the errors of `translate`.
        """

    def connect_writer(self, path: Path) -> Connection:
        """Open *path* for the writer of this process, with ``durability`` full."""

    def set_durability(self, connection: Connection, level: str) -> None:
        """Have commits be on disk at once (``full``) or soon (``normal``)."""

    def set_busy_timeout(self, connection: Connection, seconds: float) -> None:
        """Let statements of *connection* wait up to *seconds* for a lock."""

    def schema_version(self, connection: Connection) -> int:
        """Return the version of the schema that *connection* sees now."""

    def check_newer(
        self, connection: Connection, path: Path, version: int, *, writing: bool
    ) -> None:
        """Raise `SchemaVersionError` unless this release may use a newer schema."""

    def insert_large_blob(
        self, connection: Connection, name: str, size: int, encoding: str, data: bytes
    ) -> None:
        """Store *data* as the blob *name*, unless it is there, with little memory."""

    def log_bytes(self, path: Path) -> int:
        """Return the bytes of the log: commits outside of the main file."""

    def checkpoint(self, connection: Connection) -> bool:
        """Move the log into the database; False if a process keeps it.

        Raises `Error`.
        """

    # -- places --------------------------------------------------------------

    def ensure(
        self,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        busy_timeout: float = 10.0,
        root: Path | None = None,
    ) -> None:
        """Leave a current, checked database at *path*.

        It is made or migrated if that is allowed. With *root* (a project) nothing
        between it and the database may be a link.
        Raises `NotFoundError`, `NotADatabaseError`, `UntrustedDatabaseError`,
        `SchemaVersionError`, `BusyError` and the errors of the storage.
        """

    def temporary(self) -> TemporaryPlace:
        """Return a new place for a ``:memory:`` database; nothing is made in it yet."""

    def salvage(self, path: Path, to: Path, *, read_only: bool = False) -> ReadableCopy:
        """Copy what can be read of a damaged database to the new place *to*.

        Raises `CorruptionError` where nothing can be read.
        """

    def open_files(self) -> set[FileIdentity]:
        """Return the files of the databases that are open in this process."""

    def owns(self, path: Path, facts: os.stat_result | None) -> bool:
        """Return whether what is at *path* is a database, or belongs to one.

        *facts* are those of the file, None without one. Raises `StorageError` if that
        is unknown.
        """

    def reserved_ending(self, path: Path) -> str | None:
        """Return the end of a name that the engine uses beside a database.

        None for others.
        """

    # -- SQLAlchemy ----------------------------------------------------------

    def sqlalchemy(self, connect: Callable[[], Connection]) -> sqlalchemy.Connection:
        """Return a connection of SQLAlchemy's over the one that *connect* opens."""

    def sqlalchemy_async(self, connect: Callable[[], Connection]) -> AsyncConnection:
        """Return such a connection for asyncio; *connect* is called in its thread."""
