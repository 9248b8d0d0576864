"""The callbacks of one store, each called for every commit of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from sessiondb.model import Change
from sessiondb.writer.callbacks import Callback, Notifier, Subscription
from sessiondb.writer.job import Sink

#: Calls a subscription on the thread or loop that its owner chose; never waits.
Deliver = Callable[[Subscription, int, list[Change]], None]


class Subscriptions:
    """The sinks that one store added to those of its writer."""

    def __init__(self, of_writer: list[Sink]) -> None:
        self._of_writer = of_writer
        self._own: list[Sink] = []
        self._notifier = Notifier()

    def add(
        self, callback: Callback, deliver: Deliver | None = None
    ) -> Callable[[], None]:
        """Call *callback* for every commit; return a function that unsubscribes.

        *deliver* makes the calls, by default a thread of this store. Raises `BusyError`
        if that cannot be started.
        """
        if deliver is None:
            self._notifier.check()
        run = deliver or self._notifier.deliver
        subscription = Subscription(callback)

        def sink(serial: int, changes: list[Change]) -> None:
            run(subscription, serial, changes)

        self._own.append(sink)
        self._of_writer.append(sink)
        return lambda: self._remove_sink(sink)

    def _remove_sink(self, sink: Sink) -> None:
        """End a subscription, from any thread; a no-op if it has ended."""
        for sinks in (self._own, self._of_writer):
            with contextlib.suppress(ValueError):
                sinks.remove(sink)

    def end(self, *, wait: bool) -> None:
        """End all subscriptions; with *wait* return after the last callback."""
        for sink in list(self._own):
            self._remove_sink(sink)
        self._notifier.stop(wait=wait)
