"""A daemon thread that runs the calls of event loops, one after the other.

A connection that is closed while another thread is inside it ends the
interpreter, and a task can be cancelled at any await. So a connection never changes
hands at an await: it is made, used and closed by calls to one executor, which runs
them in the order in which they were queued. A cancelled caller only stops waiting.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from sessiondb.errors import BusyError
from sessiondb.writer.asyncio_loop import running_loop
from sessiondb.writer.loop import Future, Loop

T = TypeVar("T")
_log = logging.getLogger("sessiondb")
_Call = tuple[Loop, Future[Any], Callable[[], Any]]


class SerialExecutor:
    """One thread and its queue.

    It ends after `end`, or when nothing refers to it any more.

    *last* is called by the thread at its end. Raises `BusyError` if the system refuses
    the thread. One of `concurrent.futures` would keep a process with an unclosed store
    alive, and drops calls whose caller is cancelled before they begin.
    """

    def __init__(self, name: str, last: Callable[[], object] | None = None) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # Neither the thread nor *last* may refer to the executor: it would never be
        # collected.
        self._thread = threading.Thread(
            target=_serve_calls, args=(self._calls, last), name=name, daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            hint = "raise the limit of processes (ulimit -u), or end some"
            raise BusyError(f"no thread can be started: {error}", hint=hint) from error

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Queue a call; return a future of the running loop with its result."""
        loop = running_loop()
        future: Future[T] = loop.new_future()
        self._calls.put((loop, future, function))
        return future

    def end(self) -> None:
        """End the thread after all queued calls; never waits."""
        self._calls.put(None)

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of the thread, for *seconds* at most."""
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def __del__(self) -> None:
        # A put is reentrant and takes no lock that this thread could hold.
        with contextlib.suppress(AttributeError):
            self._calls.put(None)


def _serve_calls(
    calls: queue.SimpleQueue[_Call | None], last: Callable[[], object] | None
) -> None:
    while (call := calls.get()) is not None:
        loop, future, function = call
        value, error = None, None
        try:
            value = function()
        except BaseException as raised:
            error = raised
        loop.resolve(future, error, value)

        # Otherwise they would keep the result alive until the next call.
        del call, loop, future, function, value, error

    if last is None:
        return
    try:
        last()
    except Exception:
        _log.exception("a thread of sessiondb failed at its end")
