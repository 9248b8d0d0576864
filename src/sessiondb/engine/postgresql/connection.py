"""Connections to a server.

A connection is in autocommit; BEGIN and the other statements of transactions are sent
as they are. A setting that a transaction needs is sent with its BEGIN and ends with it,
so it works behind a pooler that gives each transaction another session.

A round trip to the server is what a statement costs. So in a transaction statements are
sent when the first result is read: those that do not depend on each other are one
message, and COMMIT goes with the last of them. Nobody waits for the end of a read. See
`pipeline`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from psycopg import errors, pq
from psycopg.rows import TupleRow

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.postgresql.failures import ConnectionClosedError
from sessiondb.engine.postgresql.numbered import numbered
from sessiondb.engine.postgresql.pipeline import Pipeline
from sessiondb.engine.postgresql.routes import NUMBER_OF_CHANGES, Routes
from sessiondb.patterns import late_pattern

if TYPE_CHECKING:
    from sessiondb.engine.base import Cursor, Engine

#: One snapshot for all statements of a read.
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
#: A process that is stopped while it writes, as on a laptop that sleeps, keeps others
#: waiting, and the feed, for five minutes and no longer.
_MOST_IDLE = "300000"
#: The settings of a transaction that writes, and without waiting for the disk.
_SETTINGS = (
    "set_config('lock_timeout', $1, true) || "
    "set_config('idle_in_transaction_session_timeout', $2, true)"
)
_NOT_ON_DISK = f"{_SETTINGS} || set_config('synchronous_commit', 'off', true)"
#: The time of the server in Unix ms.
_TIME = b"SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
#: That, the revision of the schema, and for `routes` how many families have changed.
_NOW = _TIME + f", version_num, {NUMBER_OF_CHANGES} FROM alembic_version".encode()
#: The lock of one that writes beside others, or alone: "SDB2".
_BESIDE_OTHERS, _ALONE = "pg_advisory_xact_lock_shared", "pg_advisory_xact_lock"
_KEY = 0x53444232
_TRANSACTION = late_pattern(
    r"\s*(BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b"
)
#: The most that the server takes for a timeout, in ms.
_MOST_MS = (1 << 31) - 1
_OPEN = (
    pq.TransactionStatus.ACTIVE,
    pq.TransactionStatus.INTRANS,
    pq.TransactionStatus.INERROR,
)


class NoRows:
    """The result of a statement of a transaction."""

    description = None
    rowcount = -1

    def fetchone(self) -> None:
        """Return None: there is no row."""

    def fetchall(self) -> list[Any]:
        """Return no rows."""
        return []

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class PostgreSQLConnection:
    """A connection as `engine.base.Connection` describes it."""

    #: `engine.POSTGRESQL`, which sets it: that module is made of this one.
    engine: ClassVar[Engine]

    def __init__(
        self,
        address: ServerAddress,
        driver: psycopg.Connection[TupleRow],
        *,
        busy_timeout: float,
        durability: str,
        prepares: bool,
    ) -> None:
        self.address, self.driver = address, driver
        self.busy_timeout, self.durability = busy_timeout, durability
        #: The revision of the schema that the last transaction that writes has seen.
        self.revision: str | None = None
        #: How many transactions that write were begun.
        self.writes = 0
        #: What the transaction locked: see `locks`.
        self.locked: set[str] = set()
        self._pipeline = Pipeline(driver, prepares=prepares)
        self.routes = Routes(self)
        #: Whether a transaction is open once all that is queued has run.
        self._is_begun = False
        #: The result of `_NOW` while it was not read, and the time in it.
        self._beginning: Cursor | None = None
        self._now: int | None = None
        self._pid = os.getpid()
        self._is_closed = False

    @property
    def in_transaction(self) -> bool:
        """True from the beginning of a transaction to its COMMIT or ROLLBACK."""
        pipeline = self._pipeline
        if pipeline.is_settled:
            return self.driver.pgconn.transaction_status in _OPEN
        # One that an interrupt tore ends with the connection.
        return self._is_begun and pipeline.is_whole

    @property
    def is_usable(self) -> bool:
        """Whether nothing is known that keeps it from being used."""
        return not self._is_closed and self._pipeline.is_usable

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run one statement; raises `psycopg.Error`, `UnicodeEncodeError` and so on."""
        self._check_open()
        if not parameters and _TRANSACTION.match(sql):
            self._run_of_transaction(sql)
            return NoRows()

        statement = numbered(sql, parameters)
        families, is_known = self.routes.families(statement, parameters)
        values = statement.values(parameters, families)
        cursor: Cursor = self._pipeline.run(statement.sql, values)
        if not is_known:
            is_right = partial(self.routes.are, families, statement, parameters)
            again = partial(self.execute, sql, parameters)
            cursor = self.routes.checked(cursor, is_right, again)
        self._settle_if_needed()
        return cursor

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Run a statement once for each item of *parameters*; raises as `execute`."""
        self._check_open()
        rows = list(parameters)
        if not rows:
            return NoRows()
        statement = numbered(sql, rows[0])
        values = [
            statement.values(row, self.routes.families(statement, row)[0])
            for row in rows
        ]
        cursor = self._pipeline.run_many(
            statement.sql, values, waits=self.in_transaction
        )
        self._settle_if_needed()
        return cursor

    def settle(self) -> None:
        """Wait until all statements have run; raises the first `psycopg.Error`."""
        self._check_open()
        self._pipeline.settle()

    def commit(self) -> None:
        """End the transaction; raises `psycopg.Error` if it was not committed.

        Of one that raises because the connection is gone nobody knows the outcome.
        """
        self._check_open()
        cursor = self._pipeline.run_unprepared(b"COMMIT")
        self._pipeline.settle()
        self._is_begun = False
        if cursor.command_status != b"COMMIT":
            # The server answers a COMMIT after a failed statement by a ROLLBACK.
            raise errors.InFailedSqlTransaction(
                "a statement of the transaction failed, so it was rolled back"
            )
        self.routes.commit()

    def begin(self, busy_timeout: float) -> None:
        """Begin a transaction that changes tables, which may not be there yet."""
        self._check_open()
        self._begin(_BEGIN_WRITE, busy_timeout)

    def begin_write(self, busy_timeout: float, *, is_alone: bool = False) -> None:
        """Begin a transaction that writes; `time` is that of its beginning.

        It waits up to *busy_timeout* seconds for each lock; with *is_alone* for all
        others that write, and they for it.
        """
        self._check_open()
        self.locked.clear()
        self._is_begun = True
        self.routes.begin(reads=False)
        pipeline = self._pipeline
        pipeline.run(_BEGIN_WRITE)
        # The key depends on the settings: the lock is waited for as they say.
        settings = _NOT_ON_DISK if self.durability == "normal" else _SETTINGS
        lock = _ALONE if is_alone else _BESIDE_OTHERS
        pipeline.run(
            f"SELECT {lock}({_KEY} + 0 * length({settings}))".encode(),
            (str(_milliseconds(busy_timeout)), _MOST_IDLE),
        )
        # In a statement of its own, which sees what was committed before the lock.
        self._beginning = pipeline.run(_NOW)
        self.writes += 1

    def time(self) -> int:
        """Return the time of the server in the open transaction, Unix ms.

        It is always the same in one transaction. Raises `errors.UndefinedTable` if one
        that writes has found a database that is not ours.
        """
        if self._beginning is not None:
            row, self._beginning = self._beginning.fetchone(), None
            if row is None:
                raise errors.UndefinedTable("alembic_version has no row")
            self._now, self.revision, changes = row
            self.routes.learn(changes)
        elif self._now is None:
            ((self._now,),) = self._pipeline.run(_TIME).fetchall()
        return int(self._now)

    def lock_out_others(self) -> None:
        """Wait for all others that write, and let none begin until this one ends."""
        self._pipeline.run(f"SELECT {_ALONE}({_KEY})".encode())

    def close(self) -> None:
        """Close it; in a forked child only here, for its parent goes on using it."""
        self._is_closed = True
        if os.getpid() == self._pid:
            self.driver.close()

    def _run_of_transaction(self, sql: str) -> None:
        command = sql.strip().upper()
        pipeline = self._pipeline
        if command in ("COMMIT", "END"):
            self.commit()
        elif command.startswith(("BEGIN", "START")):
            self._begin(sql.encode(), self.busy_timeout)
        elif command.startswith(("ROLLBACK", "ABORT")):
            self._roll_back(sql, is_complete=" TO " not in command)
        else:
            pipeline.run_unprepared(sql.encode())

    def _roll_back(self, sql: str, *, is_complete: bool) -> None:
        # Those that it took since the savepoint are gone with it.
        self.locked.clear()
        self.routes.roll_back()
        if not is_complete:
            self._pipeline.drop()
            self._pipeline.run_unprepared(sql.encode())
            return
        self._is_begun = False
        # A transaction ends with a connection that is lost, too.
        with suppress(psycopg.OperationalError):
            self._pipeline.drop()
            self._pipeline.run_unprepared(sql.encode())
            self._pipeline.send()

    def _begin(self, sql: bytes, busy_timeout: float) -> None:
        self._is_begun = True
        self._beginning = self._now = None
        self.routes.begin(reads=sql == BEGIN_READ.encode())
        self._pipeline.run(sql)
        self._pipeline.run(lock_timeout(busy_timeout).encode())

    def _settle_if_needed(self) -> None:
        # Outside of transactions each statement is committed when it has run.
        if self._pipeline.is_full or not self.in_transaction:
            self._pipeline.settle()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionClosedError("the connection is closed")


def lock_timeout(seconds: float) -> str:
    """Return the statement by which a transaction waits so long for each lock."""
    return f"SET LOCAL lock_timeout = {_milliseconds(seconds)}"


def _milliseconds(seconds: float) -> int:
    # 0 would be without an end.
    return min(max(int(seconds * 1000), 1), _MOST_MS)
