"""A daemon thread that runs what is posted to it, one function after the other.

Its inbox is a `queue.SimpleQueue`: putting into it is one uninterruptible step that
takes no lock of Python's, so it is allowed in finalisers and signal handlers. Exactly
one thread at a time consumes it, the one that holds ``_consuming``; it looks again
after it has let go, so nothing that was posted stays behind.

The thread starts when it is first needed. If the system refuses one, the caller
consumes the inbox itself, and the next post tries again to start it.
"""

from __future__ import annotations

import heapq
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

_here = threading.local()


def logger() -> Logger:
    """Return the logger of sessiondb; few processes need it, and it is slow to load."""
    from logging import getLogger

    return getLogger("sessiondb")


def in_worker() -> bool:
    """Return whether this thread is one of a `Worker`."""
    return getattr(_here, "working", False)


def _end_thread() -> None:
    """End the thread when it comes to this function."""


class Worker:
    """One daemon thread, functions to run and functions to run later."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inbox: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._consuming = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = False
        # Owned by the consumer.
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._pid = os.getpid()

    @property
    def running(self) -> bool:
        """True while a thread consumes the inbox."""
        return self._consuming.locked()

    def put(self, function: Callable[[], object]) -> None:
        """Queue a function for the thread, if it runs; from anywhere."""
        self._inbox.put(function)

    def post(self, function: Callable[[], object]) -> None:
        """Run *function* on the thread, or here where no thread can be had."""
        self._inbox.put(function)
        if not self.start():
            self._consume_here()

    def call_later(self, seconds: float, function: Callable[[], object]) -> None:
        """Run *function* on the thread after *seconds*; late where none can be had."""
        due = time.monotonic() + seconds
        self.post(partial(self._schedule_timer, due, function))

    def start(self) -> bool:
        """Start the thread unless it runs; False once stopped, or if refused."""
        if self._consuming.locked():
            return True

        thread = self._thread
        if thread is not None and thread.is_alive():
            return True
        if self._stopped:
            return False

        thread = threading.Thread(target=self._run_thread, name=self._name, daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:
            # The limit of processes is reached, or the interpreter is ending.
            logger().debug("%s could not be started", self._name, exc_info=True)
            return False

        return True

    def stop(self, *, wait: bool = True) -> None:
        """End the thread after what was posted; later posts run in their callers."""
        self._stopped = True
        self._inbox.put(_end_thread)
        thread = self._thread
        if not wait or thread is threading.current_thread() or os.getpid() != self._pid:
            return
        if thread is not None and thread.is_alive():
            thread.join()

        self._consume_here()

    def _run_thread(self) -> None:
        if not self._consuming.acquire(blocking=False):
            return

        _here.working = True
        try:
            while self._next_steps():
                pass
        finally:
            # In this order: whoever posts from now on finds no thread to rely on.
            self._thread = None
            self._consuming.release()

        self._consume_here()

    def _next_steps(self) -> bool:
        """Consume until `stop`; True if an error ended it early, to be called again."""
        try:
            while (function := self._next_function()) is not _end_thread:
                self._run_guarded(function)
        except BaseException:
            # Even SystemExit: other threads rely on this one.
            logger().exception("an error in the thread %s", self._name)
            return True
        return False

    def _next_function(self) -> Callable[[], object]:
        """Wait for what is posted or due."""
        while True:
            seconds = None
            if self._timers:
                seconds = self._timers[0][0] - time.monotonic()
                if seconds <= 0:
                    return heapq.heappop(self._timers)[2]

            try:
                return self._inbox.get(timeout=seconds)
            except queue.Empty:
                continue

    def _consume_here(self) -> None:
        """Consume what is posted, in this thread, unless another one does."""
        while not self._inbox.empty() and self._consuming.acquire(blocking=False):
            try:
                while not self._inbox.empty():
                    self._run_guarded(self._next_function())
            finally:
                self._consuming.release()

    def _schedule_timer(self, due: float, function: Callable[[], object]) -> None:
        heapq.heappush(self._timers, (due, next(self._order), function))

    def _run_guarded(self, function: Callable[[], object]) -> None:
        try:
            function()
        except Exception:
            # One failure must not end the thread that all others wait for.
            logger().exception("an error in the thread %s", self._name)
