"""Callbacks after the commit.

They run after the commit that they tell of and never under a lock. A callback
may write; one that raises is logged and cannot undo or hide the commit.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from sessiondb.model import Change

_log = logging.getLogger("sessiondb")
Callback = Callable[[list[Change]], object]


@contextmanager
def _reported() -> Generator[None]:
    try:
        yield
    except Exception:
        _log.exception("a callback on_commit of sessiondb raised; the commit stands")


class LoopNotifier:
    """Runs callbacks of an asynchronous store on its caller's loop; awaits what is awaitable."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()

    def tell(self, callback: Callback, changes: list[Change]) -> None:
        """Put a call in line; never waits, and a closed loop is not told."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._run, callback, changes)

    def _run(self, callback: Callback, changes: list[Change]) -> None:
        with _reported():
            result = callback(changes)
            if isinstance(result, Awaitable):
                task = self._loop.create_task(self._finish(result))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    @staticmethod
    async def _finish(result: Awaitable[object]) -> None:
        with _reported():
            await result


class Notifier:
    """Runs callbacks of a synchronous store on a daemon thread of their own."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Callback, list[Change]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sessiondb-notifier", daemon=True)
        self._thread.start()

    def tell(self, callback: Callback, changes: list[Change]) -> None:
        """Put a call in line; never waits."""
        self._queue.put((callback, changes))

    def stop(self) -> None:
        """End the thread after what is in line."""
        self._queue.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            callback, changes = item
            with _reported():
                callback(changes)
