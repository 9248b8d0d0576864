"""SQLite as an `engine.base.Engine`: the modules of this folder under its names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sessiondb.clock import now_ms
from sessiondb.engine.base import Connection, Name
from sessiondb.engine.sqlite import claims
from sessiondb.engine.sqlite.blobs import insert_blobs
from sessiondb.engine.sqlite.connection import (
    SYNCHRONOUS,
    SQLiteConnection,
    begin_write,
    open_files,
)
from sessiondb.engine.sqlite.dialect import DIALECT
from sessiondb.engine.sqlite.extension_tables import SQLiteExtensionTables
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.feed import SQLiteChangeFeed
from sessiondb.engine.sqlite.search import SQLiteSearchIndex
from sessiondb.engine.sqlite.usage_sums import SQLiteUsageSums
from sessiondb.engine.sqlite.write_ahead_log import checkpoint

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncConnection

    from sessiondb.engine.sqlite.session_sizes import SQLiteSessionSizes
    from sessiondb.engine.sqlite.upkeep import SQLiteUpkeep


class SQLite:
    """The engine of database files."""

    name = "sqlite"
    Error: type[Exception] = sqlite3.Error
    begin_read = "BEGIN"
    continues_after_error = True
    writes_side_by_side = False
    answers_late = False

    dialect = DIALECT
    search = SQLiteSearchIndex()
    feed = SQLiteChangeFeed()
    usage = SQLiteUsageSums()
    extensions = SQLiteExtensionTables()

    # It loads SQLAlchemy, and few processes need it.

    @cached_property
    def session_sizes(self) -> SQLiteSessionSizes:
        """The sizes of sessions."""
        from sessiondb.engine.sqlite.session_sizes import SQLiteSessionSizes

        return SQLiteSessionSizes()

    translate = staticmethod(translate)
    begin_write = staticmethod(begin_write)
    checkpoint = staticmethod(checkpoint)
    insert_blobs = staticmethod(insert_blobs)
    open_files = staticmethod(open_files)
    owns = staticmethod(claims.owns)
    reserved_ending = staticmethod(claims.reserved_ending)

    def is_usable(self, connection: Connection) -> bool:  # noqa: ARG002
        """Return True: no file hangs up."""
        return True

    def must_repeat(self, error: Exception) -> bool:  # noqa: ARG002
        """Return False: a transaction that writes has the lock from its beginning."""
        return False

    def time_of(self, connection: Connection) -> int:  # noqa: ARG002
        """Return the time of this machine, on which all writers of a file are."""
        return now_ms()

    # The write lock, which `begin_write` takes, is that of all sessions and names.

    def lock_sessions(
        self,
        connection: Connection,  # noqa: ARG002
        session_ids: Collection[str],  # noqa: ARG002
        names: Collection[Name] = (),  # noqa: ARG002
    ) -> bool:
        """Return False: they are locked."""
        return False

    def lock_new_session(
        self, connection: Connection, session_id: str, parent_id: str | None
    ) -> None:
        """Do nothing: it is locked."""

    def join_family(
        self, connection: Any, session_ids: Sequence[str], parent_id: str
    ) -> None:
        """Do nothing: the rows of all families are together."""

    def lock_blobs(self, connection: Any, hashes: str) -> None:
        """Do nothing: it is locked."""

    def forget_session(self, connection: Any, session_id: str) -> None:
        """Do nothing: a row that names a session refers to it."""

    def lock_name(
        self,
        connection: Connection,  # noqa: ARG002
        *name: str | None,  # noqa: ARG002
    ) -> bool:
        """Return False: it is locked."""
        return False

    def set_durability(self, connection: Connection, level: str) -> None:
        """Sync each commit (``full``), or each checkpoint (``normal``)."""
        connection.execute(f"PRAGMA synchronous={SYNCHRONOUS[level]}")

    def commits_of_others(self, connection: Connection) -> int:
        """Return how often other connections were seen to have changed the file."""
        commits: int = connection.execute("PRAGMA data_version").fetchone()[0]
        return commits

    def schema_mark(self, connection: Connection) -> tuple[int, ...]:
        """Return the version of the schema, and SQLite's count of its changes."""
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        changes: int = connection.execute("PRAGMA schema_version").fetchone()[0]
        return version, changes

    @property
    def upkeep(self) -> SQLiteUpkeep:
        """The upkeep of files."""
        # Not at the top: no read or write needs it.
        from sessiondb.engine.sqlite.upkeep import SQLiteUpkeep

        return SQLiteUpkeep()

    # -- SQLAlchemy ----------------------------------------------------------

    def sqlalchemy(self, connect: Callable[[], Any]) -> sqlalchemy.Connection:
        """Return a connection of SQLAlchemy's over the one that *connect* opens."""
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        return create_engine("sqlite://", creator=connect, poolclass=NullPool).connect()

    def sqlalchemy_async(self, connect: Callable[[], Any]) -> AsyncConnection:
        """Return such a connection over aiosqlite, whose thread calls *connect*."""
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import NullPool

        # The thread of aiosqlite makes, uses and closes the connection.
        arguments = {"factory": lambda *_, **__: connect()}
        engine = create_async_engine(
            "sqlite+aiosqlite://", connect_args=arguments, poolclass=NullPool
        )
        return engine.connect()


SQLITE = SQLite()
SQLiteConnection.engine = SQLITE
