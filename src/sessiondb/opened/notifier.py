"""Callbacks after the commit.

They run after the commit that they tell of and never under a lock. A callback
may write; one that raises is logged and cannot undo or hide the commit.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from sessiondb.model import Change

_log = logging.getLogger("sessiondb")
Callback = Callable[[list[Change]], object]


def call(callback: Callback, changes: list[Change]) -> None:
    """Run one callback; what it raises is logged."""
    try:
        callback(changes)
    except Exception:
        _log.exception("a callback on_commit of sessiondb raised; the commit stands")


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
            call(*item)
