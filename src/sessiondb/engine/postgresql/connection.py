"""Connections to a server.

A connection is in autocommit; BEGIN and the other statements of transactions are sent
as they are. A setting that a transaction needs is sent with its BEGIN, in one message,
and ends with it. So it costs no round trip, and works behind a pooler that gives each
transaction another session.

The driver forgets all statements that it has prepared whenever it sees a ROLLBACK,
which ends every read here. So statements of transactions pass it by.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from psycopg import errors, generators, pq
from psycopg.rows import TupleRow

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.postgresql.failures import ConnectionClosedError
from sessiondb.engine.postgresql.numbered import numbered
from sessiondb.patterns import late_pattern

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

    from sessiondb.engine.base import Cursor, Engine

#: One snapshot for all statements of a read.
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
#: A process that is stopped while it writes, as on a laptop that sleeps, keeps others
#: waiting, and the feed, for five minutes and no longer.
_END_IF_STOPPED = "SET LOCAL idle_in_transaction_session_timeout = 300000"
#: The time of the server in Unix ms.
_TIME = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
#: That, and the revision of the schema.
_NOW = f"{_TIME}, version_num FROM alembic_version"
#: The lock of one that writes beside others, or alone: "SDB2".
_BESIDE_OTHERS = f"SELECT pg_advisory_xact_lock_shared({0x53444232})"
_ALONE = f"SELECT pg_advisory_xact_lock({0x53444232})"
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


class PostgreSQLCursor(psycopg.RawCursor[TupleRow]):
    """The result of any other statement, which may be one that returns no rows."""

    __slots__ = ()

    def fetchone(self) -> TupleRow | None:
        """Return the next row; None after the last."""
        return super().fetchone() if self._has_rows else None

    def fetchall(self) -> list[TupleRow]:
        """Return the remaining rows."""
        return super().fetchall() if self._has_rows else []

    @property
    def _has_rows(self) -> bool:
        return self.pgresult is not None and self.pgresult.nfields > 0


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
    ) -> None:
        self.address, self.driver = address, driver
        self.busy_timeout, self.durability = busy_timeout, durability
        #: The revision of the schema that the last transaction that writes has seen.
        self.revision: str | None = None
        #: The time of the server when the last transaction began.
        self.now = 0
        #: How many transactions that write were begun.
        self.writes = 0
        #: What the transaction locked: see `locks`.
        self.locked: set[str] = set()
        self._pid = os.getpid()
        self._is_closed = False

    @property
    def in_transaction(self) -> bool:
        """True from the beginning of a transaction to its COMMIT or ROLLBACK."""
        return self.driver.pgconn.transaction_status in _OPEN

    @property
    def is_usable(self) -> bool:
        """Whether nothing is known that keeps it from being used."""
        pgconn = self.driver.pgconn
        if self._is_closed or pgconn.status != pq.ConnStatus.OK:
            return False
        try:
            # Neither call waits. If the server has ended the connection since the last
            # statement, the first reads its last message, and the second the end.
            pgconn.consume_input()
            pgconn.consume_input()
        except psycopg.Error:
            return False
        return pgconn.status == pq.ConnStatus.OK

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run one statement; raises `psycopg.Error`, `UnicodeEncodeError` and so on."""
        self._check_open()
        if not parameters and _TRANSACTION.match(sql):
            self._run_of_transaction(sql)
            return NoRows()

        statement = numbered(sql, parameters)
        cursor = PostgreSQLCursor(self.driver)
        cursor.execute(statement.sql, statement.values(parameters), binary=True)
        return cursor

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Run a statement once for each item of *parameters*, in one message."""
        self._check_open()
        rows = list(parameters)
        if not rows:
            return NoRows()
        statement = numbered(sql, rows[0])
        cursor = PostgreSQLCursor(self.driver)
        cursor.executemany(statement.sql, [statement.values(row) for row in rows])
        return cursor

    def commit(self) -> None:
        """End the transaction; raises `psycopg.Error` if it was not committed.

        Of one that raises because the connection is gone nobody knows the outcome.
        """
        self._check_open()
        (result,) = self._send("COMMIT")
        if result.command_status != b"COMMIT":
            # The server answers a COMMIT after a failed statement by a ROLLBACK.
            raise errors.InFailedSqlTransaction(
                "a statement of the transaction failed, so it was rolled back"
            )

    def begin(self, busy_timeout: float) -> None:
        """Begin a transaction that changes tables, which may not be there yet."""
        self._check_open()
        self._send(_BEGIN_WRITE, lock_timeout(busy_timeout))

    def begin_write(self, busy_timeout: float, *, is_alone: bool = False) -> int:
        """Begin a transaction that writes, and return the time of the server, Unix ms.

        It waits up to *busy_timeout* seconds for each lock; with *is_alone* for all
        others that write, and they for it. Raises
        `errors.UndefinedTable` for a database that is not ours.
        """
        self._check_open()
        self.locked.clear()
        settings = [lock_timeout(busy_timeout), _END_IF_STOPPED]
        if self.durability == "normal":
            settings.append("SET LOCAL synchronous_commit = off")
        turn = _ALONE if is_alone else _BESIDE_OTHERS
        result = self._send(_BEGIN_WRITE, *settings, turn, _NOW)[-1]
        now, revision = result.get_value(0, 0), result.get_value(0, 1)
        if now is None or revision is None:
            raise errors.UndefinedTable("alembic_version has no row")
        self.revision = revision.decode()
        self.writes += 1
        self.now = int(now)
        return self.now

    def close(self) -> None:
        """Close it; in a forked child only here, for its parent goes on using it."""
        self._is_closed = True
        if os.getpid() == self._pid:
            self.driver.close()

    def _run_of_transaction(self, sql: str) -> None:
        command = sql.strip().upper()
        if command == "COMMIT":
            self.commit()
        elif command == BEGIN_READ:
            result = self._send(sql, lock_timeout(self.busy_timeout), _TIME)[-1]
            self.now = int(result.get_value(0, 0) or 0)
        else:
            if command.startswith("ROLLBACK"):
                # Those that it took since the savepoint are gone with it.
                self.locked.clear()
            self._send(sql)

    def _send(self, *statements: str) -> Sequence[PGresult]:
        """Run statements without parameters, in one message; return their results."""
        driver = self.driver
        driver.pgconn.send_query(";".join(statements).encode())
        results: list[PGresult] = driver.wait(generators.execute(driver.pgconn))
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result)
        return results

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionClosedError("the connection is closed")


def lock_timeout(seconds: float) -> str:
    """Return the statement by which a transaction waits so long for each lock."""
    # 0 would be without an end.
    return f"SET LOCAL lock_timeout = {min(max(int(seconds * 1000), 1), _MOST_MS)}"
