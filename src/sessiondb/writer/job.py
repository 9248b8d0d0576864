"""Units on their way through the writer: one job for each, one batch per transaction.

A job is pending until its outcome is known; success is never the default. A batch
records how its transaction ended. From that record whoever has the writer's role can
finish what another thread left, so each step that follows may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.effects.queue import Queue
from sessiondb.errors import UnavailableError
from sessiondb.model import Change

#: Receives the serial number and the changes of a commit, more than once after an
#: interrupt; it only hands over.
Sink = Callable[[int, list[Change]], None]
Lock = Any  # a type only from Python 3.13 on


class Outcome(Enum):
    """The outcome of a unit."""

    PENDING = "pending"
    COMMITTED = "committed"
    FAILED = "failed"


@dataclass(slots=True, eq=False)
class Job:
    """One unit; ``error`` is why it failed.

    ``notify`` is called with the outcome, then ``wake`` once for all jobs of a batch
    that have the same. Either may be called again after an interrupt, and in any
    thread: they only hand over.
    """

    unit: Queue
    durability: str = "full"
    busy_timeout: float = 10.0
    root: str | None = None
    notify: Callable[[Job], None] | None = None
    wake: Callable[[], None] | None = None
    outcome: Outcome = Outcome.PENDING
    error: BaseException | None = None
    #: True once its caller was interrupted: it is not begun any more.
    abandoned: bool = False
    #: How often a batch with it was rolled back; then it is tried alone.
    tries: int = 0
    #: Why, unless its thread was interrupted.
    reason: Exception | None = None
    #: Locked while its thread waits for one that has the writer's role; `look_again`
    #: unlocks it. No Event: an interrupt may leave the lock inside of one locked.
    turn: Lock | None = None

    @property
    def pending(self) -> bool:
        """True until the outcome is known."""
        return self.outcome is Outcome.PENDING

    @property
    def is_crossed_again(self) -> bool:
        """Whether it was given up twice for other writers: nothing stops it alone."""
        was_lost = self.reason is None or isinstance(self.reason, UnavailableError)
        return self.tries > 1 and not was_lost

    def look_again(self) -> None:
        """Let its thread, if it waits, look at the outcome and who has the role."""
        if self.turn is not None:
            with suppress(RuntimeError):  # it is unlocked
                self.turn.release()

    def end(self) -> None:
        """Give out the outcome: failed if an error was recorded, else committed."""
        # Given out again after an interrupt, an outcome is what it was.
        if self.pending:
            is_good = self.error is None
            self.unit.committed |= is_good
            self.outcome = Outcome.COMMITTED if is_good else Outcome.FAILED

        self.look_again()
        if self.notify is not None:
            self.notify(self)


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one transaction; ``serial`` grows from batch to batch."""

    serial: int
    jobs: list[Job] = field(default_factory=list)
    #: One item once the transaction has ended: empty while it may still be open.
    ended: list[object] = field(default_factory=list)
    #: Steps to take once the transaction is committed, and its changes.
    after: list[Callable[[], None]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    #: ``full`` if a job wants its unit on disk when it returns.
    durability: str = "normal"
    #: Whether no other writer may come between: see `Queue.is_alone`.
    is_alone: bool = False
    #: Seconds that the most patient of them waits for other processes.
    busy_timeout: float = 0.0

    def add(self, job: Job) -> None:
        """Add a job, and what it needs of the connection."""
        self.jobs.append(job)
        if job.durability == "full":
            self.durability = "full"
        self.is_alone |= job.unit.is_alone or job.is_crossed_again
        self.busy_timeout = max(self.busy_timeout, job.busy_timeout)

    def resolve(self, sinks: Iterable[Sink]) -> None:
        """Give out every outcome; to be repeated after an interrupt.

        Sinks come first: who subscribes once a unit has returned is not called for it.
        """
        for step in self.after:
            step()

        if self.changes:
            for sink in list(sinks):
                sink(self.serial, self.changes)

        # Once for each loop, however many of its jobs ended: see `Loop`.
        wakes = set()
        for job in self.jobs:
            job.end()
            wakes.add(job.wake)

        for wake in filter(None, wakes):
            wake()
