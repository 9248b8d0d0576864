"""The daemon thread of a writer: serves async callers, timers, and idle time.

It starts when somebody first needs it. Being a daemon it never keeps a process
alive; what it has not committed was not acknowledged.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable

from sessiondb.effects.job import Job
from sessiondb.effects.writer import Writer
from sessiondb.errors import StoreClosedError

#: After this many seconds without a write the WAL is checkpointed.
IDLE_SECONDS = 1.0
_log = logging.getLogger("sessiondb")


class Service:
    """Runs a writer's queue, and functions at a time, on one daemon thread."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._wake = threading.Condition()
        self._work = False
        self._stopped = False
        self._touched = False
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def send(self, job: Job) -> None:
        """Queue a job; its ``notify`` is called on this thread. Raises `StoreClosedError`."""
        self.queue(job)
        self.begin()

    def queue(self, job: Job) -> None:
        """Queue a job that `begin` or `stop` will serve. Raises `StoreClosedError`."""
        with self._wake:
            if self._stopped:
                raise StoreClosedError("the store is closed")
            self._writer.queue(job)
            self._start()

    def begin(self) -> None:
        """Serve what is queued."""
        if self._work:
            return
        with self._wake:
            self._work = True
            self._wake.notify()

    def touch(self) -> None:
        """Note a commit of another thread, so that the WAL is checkpointed once it is over."""
        if self._touched:
            return
        with self._wake:
            self._touched = True
            self._start()
            self._wake.notify()

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        """Run *function* on this thread after *seconds*."""
        due = time.monotonic() + seconds
        with self._wake:
            self._start()
            heapq.heappush(self._timers, (due, next(self._order), function))
            self._wake.notify()

    def stop(self) -> None:
        """End the thread after what it is doing; queued jobs are served first."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        thread = self._thread
        ours = thread is not threading.current_thread() and os.getpid() == self._pid
        if thread is not None and ours:
            thread.join()
        self._thread = None

    def _start(self) -> None:
        if self._thread is None and not self._stopped:
            self._thread = threading.Thread(target=self._run, name="sessiondb-writer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        busy = False
        while True:
            with self._wake:
                if not self._work and not self._stopped:
                    timed_out = not self._wake.wait(self._patience(busy))
                else:
                    timed_out = False
                stopped, worked, self._work = self._stopped, self._work, False
                due = self._take_due()
            for function in due:
                self._guard(function)
            if worked or stopped:
                self._guard(self._writer.serve)
                busy = True
            elif timed_out and not due:
                busy = self._rest(busy)
            if stopped:
                return

    def _patience(self, busy: bool) -> float | None:
        waits = [IDLE_SECONDS] if busy or self._touched else []
        if self._timers:
            waits.append(max(0.0, self._timers[0][0] - time.monotonic()))
        return min(waits, default=None)

    def _rest(self, busy: bool) -> bool:
        """Checkpoint unless others wrote meanwhile; return whether to come back for it."""
        if self._touched:
            self._touched = False
            return True
        if busy:
            self._guard(self._writer.idle)
        return False

    def _take_due(self) -> list[Callable[[], None]]:
        now = time.monotonic()
        due = []
        while self._timers and self._timers[0][0] <= now:
            due.append(heapq.heappop(self._timers)[2])
        return due

    @staticmethod
    def _guard(function: Callable[[], None]) -> None:
        try:
            function()
        except Exception:
            # One failure must not end the thread that everybody else waits for.
            _log.exception("the writer thread of sessiondb met an error")
