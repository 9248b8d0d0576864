"""Callbacks after the commit.

They run after the commit that they report and never under a lock. A callback
may write; one that raises is logged and cannot undo or hide the commit. A writer that
was interrupted hands a commit over again: the number of the last one that a
subscription has seen keeps its callback from being called twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sessiondb.errors import BusyError
from sessiondb.model import Change
from sessiondb.writer.thread import Worker, logger

if TYPE_CHECKING:
    from sessiondb.writer.loop import Loop

Callback = Callable[[list[Change]], object]


class Subscription:
    """A callback and the last commit it was called for; used by one thread."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._seen = 0

    def call(self, serial: int, changes: list[Change]) -> object:
        """Call the callback unless it was; None if it raised, which is logged."""
        if serial <= self._seen:
            return None

        self._seen = serial
        try:
            return self._callback(changes)
        except Exception:
            _report_failure()
            return None


def _report_failure() -> None:
    logger().exception(
        "a callback on_commit of sessiondb raised; the commit is not affected"
    )


class LoopNotifier:
    """Runs callbacks of an asynchronous store on its loop, and awaits awaitables."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def deliver(
        self, subscription: Subscription, serial: int, changes: list[Change]
    ) -> None:
        """Put a call in line; never waits, and a closed loop is not called."""
        self._loop.call_from_thread(
            lambda: self._run_callback(subscription, serial, changes)
        )

    def _run_callback(
        self, subscription: Subscription, serial: int, changes: list[Change]
    ) -> None:
        result = subscription.call(serial, changes)
        if isinstance(result, Awaitable):
            self._loop.start_task(lambda: self._finish_awaitable(result))

    @staticmethod
    async def _finish_awaitable(result: Awaitable[object]) -> None:
        try:
            await result
        except Exception:
            _report_failure()


class Notifier(Worker):
    """Runs callbacks of a synchronous store on a daemon thread of their own."""

    def __init__(self) -> None:
        super().__init__("sessiondb-notifier")

    def check(self) -> None:
        """Raise `BusyError` if the system refuses the thread."""
        if not self.start():
            raise BusyError(
                "no thread can be started for callbacks",
                hint="raise the limit of processes (ulimit -u), or end some",
            )

    def deliver(
        self, subscription: Subscription, serial: int, changes: list[Change]
    ) -> None:
        """Put a call in line; never waits."""
        # Not `post`: the writer is in the middle of its work here.
        self.put(lambda: subscription.call(serial, changes))
