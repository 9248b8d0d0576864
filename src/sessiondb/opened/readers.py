"""The reader connections of an `AsyncStore`, over aiosqlite."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import aiosqlite

from sessiondb.opened.core import Core, read_on
from sessiondb.opened.waking import settle
from sessiondb.repository import Read

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

#: Reader connections, and so threads, of one store.
MAX_READERS = 4


class Readers:
    """aiosqlite connections that wait for work, lent to one read at a time.

    Callers may be on different loops, and a loop may end in the middle: a connection
    is given back by its own thread, and whoever waits for one is woken to try again.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._idle: deque[aiosqlite.Connection] = deque()
        self._waiting: list[asyncio.Future[None]] = []
        self._count = 0

    async def read(self, query: Read[T]) -> T:
        """Run a read in one snapshot and one hop, and return its value.

        A caller who is cancelled leaves nothing half-way: the thread goes on to the
        end of the snapshot.
        """
        connection = await self._acquire()

        def run() -> T:
            try:
                return read_on(connection._conn, query)
            finally:
                self._release(connection)

        value: T = await connection._execute(run)  # type: ignore[no-untyped-call]
        return value

    async def _acquire(self) -> aiosqlite.Connection:
        while True:
            self._core.check_readable()
            with self._lock:
                if self._idle:
                    return self._idle.pop()
                if self._count < MAX_READERS:
                    self._count += 1
                    break
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
            await turn
        try:
            return await self.connect()
        except BaseException:
            self._forget(1)
            raise

    async def connect(self) -> aiosqlite.Connection:
        """Return a new connection that only reads, on a daemon thread of its own."""
        raw: list[sqlite3.Connection] = []

        def connect() -> sqlite3.Connection:
            raw.append(self._core.connect_reader())
            return raw[0]

        connection = aiosqlite.Connection(connect, iter_chunk_size=64)
        # aiosqlite's own threads would keep a process with an unclosed store alive, and end
        # when somebody's loop does.
        connection._thread = threading.Thread(
            target=_serve, args=(connection._tx, raw), name="sessiondb-reader", daemon=True
        )
        opened: aiosqlite.Connection = await connection
        return opened

    def connection(self) -> AsyncConnection:
        """Return a connection of SQLAlchemy's that only reads, to be closed by the caller."""
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import NullPool

        self._core.check_usable()
        return create_async_engine(
            "sqlite+aiosqlite://", async_creator=self.connect, poolclass=NullPool
        ).connect()

    def _release(self, connection: aiosqlite.Connection) -> None:
        with self._lock:
            kept = not self._core.closed
            if kept:
                self._idle.append(connection)
        if not kept:
            _end(connection)
        self._forget(0 if kept else 1)

    def _forget(self, count: int) -> None:
        """Note that connections are gone, and let everybody who waits for one look again."""
        with self._lock:
            self._count -= count
            waiting, self._waiting = self._waiting, []
        for turn in waiting:
            settle(turn, None)

    def stop(self) -> None:
        """End the threads of all idle connections, without a loop."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for connection in idle:
            _end(connection)
            connection._thread.join()
        self._forget(len(idle))


def _serve(work: queue.SimpleQueue[Any], raw: list[sqlite3.Connection]) -> None:
    """Do the work of one connection, as aiosqlite's worker does, and close it at the end."""
    last = False
    while not last:
        future, function = work.get()
        value, error = None, None
        try:
            value = function()
        except BaseException as raised:
            error = raised
        if future is not None:
            settle(future, error, value)
        last = value is aiosqlite.core._STOP_RUNNING_SENTINEL
        # Until the next call comes they would keep alive what was read.
        del future, function, value, error
    for connection in raw:
        connection.close()


def _end(connection: aiosqlite.Connection) -> None:
    """Let a connection be closed by its thread, which ends with it."""
    connection._running, connection._connection = False, None
    connection._tx.put_nowait((None, lambda: aiosqlite.core._STOP_RUNNING_SENTINEL))
