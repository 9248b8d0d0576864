"""The reader connections of an `AsyncStore`, each owned by a thread.

An asynchronous driver would need a round trip for each statement of a read. Only
`connection`, which is SQLAlchemy's, uses that of the engine.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sessiondb.database.core import Core
from sessiondb.database.executor import SerialExecutor
from sessiondb.database.opening import open_soon
from sessiondb.database.reading import read_on
from sessiondb.engine.base import Connection
from sessiondb.errors import MissingExtraError, SessionDBError
from sessiondb.repository import Read
from sessiondb.writer.asyncio_loop import running_loop
from sessiondb.writer.loop import Future, Loop

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

#: Reader connections, and so threads, of one store.
MAX_READERS = 4
#: Seconds that closing a store waits for a read whose callers were cancelled.
PATIENCE = 5.0


class Reader:
    """A connection that only reads, and the executor that alone touches it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._connections: list[Connection] = []
        self.executor = SerialExecutor(
            "sessiondb-reader", last=partial(_close_connections, self._connections)
        )

    def read(self, query: Read[T]) -> T:
        """Run a read in one snapshot; only in the executor.

        The first read opens the connection.
        """
        opened = self._connections
        if opened and not self._core.engine.is_usable(opened[0]):
            _close_connections(opened)
        if not opened:
            opened.append(self._core.connect_reader(one_thread=True))
        try:
            return read_on(opened[0], query)
        except SessionDBError:
            # Another database in its place fails in many ways; it is one error.
            self._core.check_in_place()
            raise


def _close_connections(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


class Readers:
    """The readers of a store, each lent to one read at a time.

    Callers may be on different loops, and a loop may end during a read: so a reader is
    returned by its own thread, and callers who wait for one are woken to try again.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._idle: deque[Reader] = deque()
        self._busy: set[Reader] = set()
        self._waiting: list[tuple[Loop, Future[None]]] = []
        self._count = 0

    @classmethod
    def of(cls, core: Core) -> Readers:
        """Return the readers of a database: one set, however many façades it has."""
        if core.loop_readers is None:
            # Two threads may both come here: `close` stops the readers of both.
            core.loop_readers = cls(core)
            core.on_pause.append(core.loop_readers.stop)
        return core.loop_readers

    async def read(self, query: Read[T]) -> T:
        """Run a read in one snapshot and one round trip, and return its value.

        Cancelling the caller does not interrupt the read: the thread completes it.
        """
        await open_soon(self._core)
        reader = await self._acquire_reader()

        def run() -> T:
            try:
                return reader.read(query)
            finally:
                self._release_reader(reader)

        # No await in between, where a cancelled caller would keep the reader.
        return await reader.executor.call(run)

    async def _acquire_reader(self) -> Reader:
        while True:
            self._core.check_readable()
            with self._lock:
                if self._idle:
                    return self._lend_reader(self._idle.pop())
                if self._count < MAX_READERS:
                    self._count += 1
                    break
                loop = running_loop()
                turn = loop.new_future()
                self._waiting.append((loop, turn))
            await turn

        try:
            return self._lend_reader(Reader(self._core))
        except BaseException:
            self._forget_readers(1)
            raise

    def _lend_reader(self, reader: Reader) -> Reader:
        self._busy.add(reader)
        return reader

    def _release_reader(self, reader: Reader) -> None:
        with self._lock:
            self._busy.discard(reader)
            is_kept = not self._core.closed
            if is_kept:
                self._idle.append(reader)

        if not is_kept:
            reader.executor.end()
        self._forget_readers(0 if is_kept else 1)

    def _forget_readers(self, count: int) -> None:
        """Count readers as gone, and wake the callers who wait for one."""
        with self._lock:
            self._count -= count
            waiting, self._waiting = self._waiting, []
        for loop, turn in waiting:
            loop.resolve(turn, None)

    def stop(self) -> None:
        """End the threads of all idle readers; those of all readers once it is closed.

        It needs no event loop. After the close of a store its file may be copied or
        replaced, so the connection of a read that a cancelled caller left running is
        closed by then as well.
        """
        with self._lock:
            idle, self._idle = self._idle, deque()
            busy = list(self._busy) if self._core.closed else []

        for reader in idle:
            reader.executor.end()

        for reader in (*idle, *busy):
            reader.executor.join(PATIENCE)

        self._forget_readers(len(idle))


def async_connection(core: Core) -> AsyncConnection:
    """Return a read-only SQLAlchemy connection, to be closed by the caller.

    Raises `MissingExtraError` without the extra ``asyncio``.
    """
    core.check_usable()
    try:
        import greenlet  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"AsyncStore.connection needs {error.name}",
            hint="pip install 'sessiondb[asyncio]'",
        ) from error

    def connect() -> Connection:
        core.open()
        return core.connect_reader(one_thread=True)

    return core.engine.sqlalchemy_async(connect)
