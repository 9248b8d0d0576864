"""PostgreSQL as an `engine.base.Engine`: the modules of this folder under its names."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg

from sessiondb.engine.base import Connection, Name
from sessiondb.engine.message_sums import MessageSums
from sessiondb.engine.postgresql import failures
from sessiondb.engine.postgresql.blobs import insert_blobs, lock_blobs
from sessiondb.engine.postgresql.connection import BEGIN_READ, PostgreSQLConnection
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.extension_tables import PostgreSQLExtensionTables
from sessiondb.engine.postgresql.feed import PostgreSQLChangeFeed
from sessiondb.engine.postgresql.locks import lock_keys
from sessiondb.engine.postgresql.routes import forget_session
from sessiondb.engine.postgresql.search import PostgreSQLSearchIndex

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncConnection

    from sessiondb.engine.postgresql.session_sizes import PostgreSQLSessionSizes
    from sessiondb.engine.postgresql.upkeep import PostgreSQLUpkeep


class PostgreSQL:
    """The engine of databases of a server."""

    name = "postgresql"
    Error: type[Exception] = psycopg.Error
    begin_read = BEGIN_READ
    continues_after_error = False
    writes_side_by_side = True
    answers_late = True

    dialect = DIALECT
    usage = MessageSums(DIALECT)
    extensions = PostgreSQLExtensionTables()
    search = PostgreSQLSearchIndex()
    feed = PostgreSQLChangeFeed()

    translate = staticmethod(failures.translate)
    must_repeat = staticmethod(failures.must_repeat)
    insert_blobs = staticmethod(insert_blobs)
    lock_blobs = staticmethod(lock_blobs)

    @cached_property
    def session_sizes(self) -> PostgreSQLSessionSizes:
        """The sizes of sessions."""
        from sessiondb.engine.postgresql.session_sizes import PostgreSQLSessionSizes

        return PostgreSQLSessionSizes()

    @cached_property
    def upkeep(self) -> PostgreSQLUpkeep:
        """The upkeep of a server's databases."""
        # Not at the top: no read or write needs it.
        from sessiondb.engine.postgresql.upkeep import PostgreSQLUpkeep

        return PostgreSQLUpkeep()

    def is_usable(self, connection: Any) -> bool:
        """Return whether a connection is open, and not known to be gone."""
        usable: bool = connection.is_usable
        return usable

    def begin_write(
        self, connection: Any, busy_timeout: float = 0.0, *, is_alone: bool = False
    ) -> None:
        """Begin a transaction, which takes its locks one by one: see `locks`."""
        connection.begin_write(
            connection.busy_timeout + busy_timeout, is_alone=is_alone
        )

    def time_of(self, connection: Any) -> int:
        """Return the time of the server when the transaction began, Unix ms."""
        now: int = connection.time()
        return now

    def lock_sessions(
        self,
        connection: Any,
        session_ids: Collection[str],
        names: Collection[Name] = (),
    ) -> bool:
        """Lock sessions, and *names* with them: see `locks`."""
        is_new = lock_keys(connection, [*session_ids, *map(json.dumps, names)])
        connection.routes.expect(session_ids)
        return is_new

    def lock_new_session(
        self, connection: Any, session_id: str, parent_id: str | None
    ) -> None:
        """Lock a session that is inserted next, and its parent; make its route."""
        lock_keys(connection, filter(None, (session_id, parent_id)))
        connection.routes.make(session_id, parent_id)

    def join_family(
        self, connection: Any, session_ids: Sequence[str], parent_id: str
    ) -> None:
        """Move sessions to the family of a parent that came later: see `moving`."""
        # Not at the top: few processes import.
        from sessiondb.engine.postgresql.moving import join_family

        join_family(connection, session_ids, parent_id)

    def forget_session(self, connection: Any, session_id: str) -> None:
        """Let no row outside of its family name a session."""
        forget_session(connection, session_id)

    def lock_name(self, connection: Any, *name: str | None) -> bool:
        """Lock a name."""
        return lock_keys(connection, [json.dumps(name)])

    def set_durability(self, connection: Any, level: str) -> None:
        """Have transactions wait for the disk (``full``), or not (``normal``)."""
        connection.durability = level

    def commits_of_others(self, connection: Any) -> int:
        """Return the number of the transaction: others may commit before each."""
        number: int = connection.writes
        return number

    def schema_mark(self, connection: Any) -> tuple[int, ...]:
        """Return the revision of the schema that the transaction has seen."""
        return (int(connection.revision),)

    def checkpoint(
        self,
        connection: Connection,  # noqa: ARG002
        busy_timeout: float = 0.0,  # noqa: ARG002
        room: int = 0,  # noqa: ARG002
    ) -> bool:
        """Return True: there is no log that is ours to move."""
        return True

    # -- SQLAlchemy ----------------------------------------------------------

    def sqlalchemy(self, connect: Callable[[], Any]) -> sqlalchemy.Connection:
        """Return a connection of SQLAlchemy's to the database that *connect* opens."""
        from sessiondb.engine.postgresql.sqlalchemy_connections import connection_like

        return connection_like(connect)

    def sqlalchemy_async(self, connect: Callable[[], Any]) -> AsyncConnection:
        """Return one for asyncio, of psycopg's own."""
        from sessiondb.engine.postgresql.sqlalchemy_connections import (
            async_connection_like,
        )

        return async_connection_like(connect)


POSTGRESQL = PostgreSQL()
PostgreSQLConnection.engine = POSTGRESQL
