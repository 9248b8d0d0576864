"""The reader connections of an `AsyncStore`, over aiosqlite."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from functools import partial
from typing import Any, TypeVar

import aiosqlite

from sessiondb.opened.core import Core, read_on
from sessiondb.opened.streams import resolve
from sessiondb.repository import Read

T = TypeVar("T")

#: Reader connections, and so threads, of one store.
MAX_READERS = 4


class Readers:
    """aiosqlite connections that wait for work, handed out one caller at a time.

    Callers may be on different loops, so who waits is told through its own loop.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._idle: deque[aiosqlite.Connection] = deque()
        self._waiting: deque[asyncio.Future[aiosqlite.Connection]] = deque()
        self._count = 0

    async def acquire(self) -> aiosqlite.Connection:
        """Return a connection that nobody else uses; hand it to `release`."""
        self._core.check_readable()
        future: asyncio.Future[aiosqlite.Connection] | None = None
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._count >= MAX_READERS:
                future = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
            else:
                self._count += 1
        if future is not None:
            try:
                return await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self.release(future.result())
                raise
        try:
            return await self._connect()
        except BaseException:
            self._count -= 1
            raise

    async def read(self, query: Read[T]) -> T:
        """Run a read in one snapshot and one hop, and return its value.

        A caller who is cancelled, or whose loop ends, leaves nothing half-way: the
        thread goes on to the end of the snapshot.
        """
        connection = await self.acquire()
        try:
            run = partial(read_on, connection._conn, query)
            value: T = await connection._execute(run)  # type: ignore[no-untyped-call]
            return value
        finally:
            self.release(connection)

    async def _connect(self) -> aiosqlite.Connection:
        connection = aiosqlite.Connection(self._core.connect_reader, iter_chunk_size=64)
        # aiosqlite's own threads would keep a process with an unclosed store alive, and end
        # when somebody's loop does.
        connection._thread = threading.Thread(
            target=_serve, args=(connection._tx,), name="sessiondb-reader", daemon=True
        )
        opened: aiosqlite.Connection = await connection
        return opened

    def release(self, connection: aiosqlite.Connection) -> None:
        """Hand a connection to whoever waits, or keep it."""
        with self._lock:
            while self._waiting:
                future = self._waiting.popleft()
                try:
                    future.get_loop().call_soon_threadsafe(self._hand, future, connection)
                except RuntimeError:
                    continue  # that loop is closed, and nobody waits on it any more
                return
            if not self._core.closed:
                self._idle.append(connection)
                return
        connection.stop()

    def _hand(
        self, future: asyncio.Future[aiosqlite.Connection], connection: aiosqlite.Connection
    ) -> None:
        if future.done():
            self.release(connection)
        else:
            future.set_result(connection)

    def stop(self) -> None:
        """End the threads of all idle connections, without a loop."""
        with self._lock:
            idle, self._idle = self._idle, deque()
            self._count -= len(idle)
        for connection in idle:
            stop(connection)


def _serve(work: queue.SimpleQueue[Any]) -> None:
    """Do the work of one connection, as aiosqlite's worker does."""
    last = False
    while not last:
        future, function = work.get()
        value, error = None, None
        try:
            value = function()
        except BaseException as raised:
            error = raised
        if future is not None:
            # A loop that is closed has nobody who waits.
            with contextlib.suppress(RuntimeError):
                future.get_loop().call_soon_threadsafe(resolve, future, error, value)
        last = value is aiosqlite.core._STOP_RUNNING_SENTINEL
        # Until the next call comes they would keep alive what was read.
        del future, function, value, error


def stop(connection: aiosqlite.Connection) -> None:
    """Close a connection and end its thread, from anywhere."""
    raw, connection._connection = connection._connection, None

    def last() -> Any:
        if raw is not None:
            raw.close()
        return aiosqlite.core._STOP_RUNNING_SENTINEL

    connection._running = False
    connection._tx.put_nowait((None, last))
    connection._thread.join()
