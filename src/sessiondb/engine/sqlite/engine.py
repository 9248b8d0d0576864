"""SQLite as an `engine.base.Engine`: a face for the modules of this folder."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessiondb.engine.base import Connection, Mode, ReadableCopy
from sessiondb.engine.disk import FileIdentity
from sessiondb.engine.sqlite import claims, files
from sessiondb.engine.sqlite.blobs import insert_large
from sessiondb.engine.sqlite.connection import SYNCHRONOUS, connect, open_files
from sessiondb.engine.sqlite.failures import translate
from sessiondb.errors import SessionDBError

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncConnection

    from sessiondb.engine.sqlite.dialect import SQLiteText
    from sessiondb.engine.sqlite.search import SearchIndex
    from sessiondb.engine.sqlite.upkeep import SQLiteUpkeep

#: Pages of the -wal after which a commit moves it into the file. More than SQLite's own
#: 1,000: the writer checkpoints by itself, before the file has grown that far.
_AUTOCHECKPOINT = 4000


class SQLite:
    """The engine of database files."""

    name = "sqlite"
    Error: type[Exception] = sqlite3.Error
    begin_read = "BEGIN"
    # A read that turns into a write could fail half-way.
    begin_write = "BEGIN IMMEDIATE"

    # What loads SQLAlchemy is loaded when it is used: completion opens a file without
    # it.

    @cached_property
    def dialect(self) -> SQLiteText:
        """How SQLite writes SQL."""
        from sessiondb.engine.sqlite.dialect import DIALECT

        return DIALECT

    @cached_property
    def search(self) -> SearchIndex:
        """The search index."""
        from sessiondb.engine.sqlite.search import SearchIndex

        return SearchIndex()

    def translate(self, error: Exception, path: Path | None = None) -> SessionDBError:
        """Return our error for one of SQLite's."""
        return translate(error, path)

    def connect(
        self,
        path: Path,
        *,
        mode: Mode = "rw",
        busy_timeout: float = 10.0,
        durability: str = "full",
        one_thread: bool = False,
    ) -> Any:
        """Open *path*, which must exist; see `connection.connect`."""
        return connect(
            path,
            mode=mode,
            busy_timeout=busy_timeout,
            durability=durability,
            one_thread=one_thread,
        )

    def connect_writer(self, path: Path) -> Any:
        """Open *path* for the writer of this process."""
        connection = connect(path)
        connection.execute(f"PRAGMA wal_autocheckpoint={_AUTOCHECKPOINT}")
        return connection

    def set_durability(self, connection: Connection, level: str) -> None:
        """Sync each commit (``full``), or each checkpoint (``normal``)."""
        connection.execute(f"PRAGMA synchronous={SYNCHRONOUS[level]}")

    def set_busy_timeout(self, connection: Connection, seconds: float) -> None:
        """Let statements wait up to *seconds* for a lock."""
        connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")

    def schema_version(self, connection: Connection) -> int:
        """Return the version of the schema."""
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version

    def check_newer(
        self, connection: Any, path: Path, version: int, *, writing: bool
    ) -> None:
        """Refuse a newer schema that does not admit this release."""
        from sessiondb.engine.sqlite.version import check_newer

        check_newer(connection, path, version, writing=writing)

    def insert_large_blob(
        self, connection: Any, name: str, size: int, encoding: str, data: bytes
    ) -> None:
        """Store a large value piece by piece."""
        insert_large(connection, name, size, encoding, data)

    def log_bytes(self, path: Path) -> int:
        """Return the bytes of the -wal."""
        try:
            return os.stat(f"{path}-wal").st_size
        except OSError:
            return 0

    def checkpoint(self, connection: Connection) -> bool:
        """Move the -wal into the file; False if a reader or writer kept it.

        TRUNCATE takes the write lock, which avoids the reset race of SQLite < 3.51.3.
        """
        rows = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not rows[0][0]

    @property
    def upkeep(self) -> SQLiteUpkeep:
        """The upkeep of files."""
        # Not at the top: no read or write of a program needs it.
        from sessiondb.engine.sqlite.upkeep import SQLiteUpkeep

        return SQLiteUpkeep()

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
        """Leave a current, checked file at *path*; see `opening.ensure`."""
        from sessiondb.engine.sqlite.opening import ensure

        ensure(
            path,
            create=create,
            read_only=read_only,
            busy_timeout=busy_timeout,
            root=root,
        )

    def temporary(self) -> files.TemporaryDatabase:
        """Return a place in a private folder of its own."""
        return files.TemporaryDatabase()

    def salvage(self, path: Path, to: Path, *, read_only: bool = False) -> ReadableCopy:
        """Copy what can be read of a damaged file; see `salvage.readable_copy`."""
        # Not at the top: every command loads this module, and hardly one needs a copy.
        from sessiondb.engine.sqlite.salvage import readable_copy

        return readable_copy(path, to, read_only=read_only)

    def open_files(self) -> set[FileIdentity]:
        """Return the files of every connection that is open in this process."""
        return open_files()

    def owns(self, path: Path, facts: os.stat_result | None) -> bool:
        """Return whether what is at *path* is a database or belongs to one."""
        return claims.owns(path, facts)

    def reserved_ending(self, path: Path) -> str | None:
        """Return the end of a name that SQLite or sessiondb keeps beside a database."""
        return claims.reserved_ending(path)

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
