"""A daemon thread that does what event loops ask of it, one call after the other.

A connection that is closed while another thread is inside it ends the
interpreter, and a task can be cancelled at any await. So no await decides who
has a connection: it is made, used and closed by calls to one worker, which runs
them in the order in which they were queued. A cancelled caller only stops waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from sessiondb.errors import StorageError
from sessiondb.opened.waking import settle

T = TypeVar("T")
_log = logging.getLogger("sessiondb")
_Call = tuple[asyncio.Future[Any] | None, Callable[[], Any]]


class Worker:
    """One thread and its queue; it ends after `end`, or when nobody refers to it any more.

    *last* is what the thread does at its end. Raises `StorageError` if the system
    starts no more threads.
    """

    def __init__(self, name: str, last: Callable[[], object] | None = None) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # Neither the thread nor *last* may refer to the worker: it would never be collected.
        self._thread = threading.Thread(
            target=_serve, args=(self._calls, last), name=name, daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            hint = "close other stores, or raise the limit on threads and processes"
            raise StorageError(f"{name}: {error}", hint=hint) from error

    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Queue a call; the future of the running loop gets what it returns or raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put((future, function))
        return future

    def end(self, last: Callable[[], object] | None = None) -> None:
        """End the thread after what is queued, with *last* before; never waits."""
        if last is not None:
            self._calls.put((None, last))
        self._calls.put(None)

    def join(self) -> None:
        """Wait for the end of the thread."""
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __del__(self) -> None:
        # A put is reentrant and takes no lock that this thread could hold.
        with contextlib.suppress(AttributeError):
            self._calls.put(None)


def _serve(calls: queue.SimpleQueue[_Call | None], last: Callable[[], object] | None) -> None:
    while (call := calls.get()) is not None:
        future, function = call
        value, error = None, None
        try:
            value = function()
        except BaseException as raised:
            error = raised
        if future is not None:
            settle(future, error, value)
        elif error is not None:
            _log.error("a thread of sessiondb met an error at its end", exc_info=error)
        # Until the next call comes they would keep alive what was read.
        del call, future, function, value, error
    if last is not None:
        last()
