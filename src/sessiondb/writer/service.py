"""The daemon thread beside a writer: serves async callers, timers, and idle time.

Being a daemon it never keeps a process alive; what it has not committed was not
acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable

from sessiondb.errors import StoreClosedError
from sessiondb.writer.job import Job
from sessiondb.writer.role import Writer
from sessiondb.writer.thread import Worker

#: After this many seconds without a write the log is emptied.
IDLE_SECONDS = 1.0
#: After this many seconds what was interrupted on this thread is begun again.
AGAIN_SECONDS = 0.01


class Service(Worker):
    """Runs a writer's queue, and functions at a time, on one daemon thread."""

    def __init__(self, writer: Writer, on_idle: Callable[[], None]) -> None:
        """*on_idle* is called on the thread now and then, and soon after a commit."""
        super().__init__("sessiondb-writer")
        self._writer, self._on_idle = writer, on_idle
        # Owned by the consumer.
        self._sent: dict[Job, Callable[[Job], None]] = {}
        self._watching = False
        self._seen = 0

    def send(self, job: Job, done: Callable[[Job], None] | None = None) -> None:
        """Commit a job; *done* is called on this thread, once.

        Raises `StoreClosedError`.
        """
        if done is not None:
            self._sent[job] = done
            job.notify = self._hand_over

        try:
            self.queue(job)
        except BaseException:
            self._sent.pop(job, None)
            raise

        self.begin()

    def queue(self, job: Job) -> None:
        """Put a job in line for `begin`. Raises `StoreClosedError`."""
        if self._stopped:
            raise StoreClosedError("the store is closed")
        self._writer.queue(job)

    def begin(self) -> None:
        """Serve what is queued."""
        self.post(self._serve_queue)

    def touch(self) -> None:
        """Have a large log shortened, and any log emptied once the commits are over."""
        if self._writer.connection.has_large_log:
            self.post(self._writer.shorten_log)
        # The consumer alone changes the flag: an interrupt here cannot leave it wrong.
        if not (self._watching and self.running):
            self.post(self._watch_idle)

    def stop(self, *, wait: bool = True) -> None:
        """End the thread; what is queued is served first."""
        super().stop(wait=wait)
        if wait:
            self._writer.serve()
            self._consume_here()

    def _serve_queue(self) -> None:
        try:
            self._writer.serve()
        except BaseException:
            # Its jobs are back in the queue, and no other thread will take them.
            self.call_later(AGAIN_SECONDS, self._serve_queue)
            raise
        if self._writer.connection.has_large_log:
            self._writer.shorten_log()
        self._watch_idle()

    def _hand_over(self, job: Job) -> None:
        self.put(lambda: self._hand_out(job))

    def _hand_out(self, job: Job) -> None:
        # An interrupted thread may have handed it over twice.
        done = self._sent.pop(job, None)
        if done is not None:
            done(job)

    def _watch_idle(self) -> None:
        if not self._watching:
            self._watching = True
            self.call_later(IDLE_SECONDS, self._look_idle)

    def _look_idle(self) -> None:
        """Checkpoint if nothing was written since the last look, else look later."""
        self._on_idle()
        seen, self._seen = self._seen, self._writer.serial
        if seen != self._seen:
            self.call_later(IDLE_SECONDS, self._look_idle)
            return

        self._watching = False
        if self._writer.serial != seen:
            self._watch_idle()
        else:
            self._writer.idle()
