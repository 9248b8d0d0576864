"""The writer: a role, not a thread.

One connection and one queue per process and database file (found by device and
inode). Whoever queues a unit and finds the role free commits everything that
has queued by then, in its own thread; async callers are served by a daemon thread.
Batches form by themselves from what queued during the last commit. A bad unit never
hurts its neighbours: the batch begins again, with a savepoint for each.

An interrupt may fall on any line, also between COMMIT and the next statement. So a
batch that was taken belongs to the writer and not to a frame. `_end_batch` finishes
it: committed, every outcome is given out; not committed, it is rolled back and its
jobs go back into the queue. The interrupted thread calls it on its way out, and
everyone who gets the role calls it first.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.effects.transaction import Transaction
from sessiondb.errors import (
    BusyError,
    DatabaseReplacedError,
    SessionDBError,
    StoreClosedError,
    UnavailableError,
)
from sessiondb.writer.applying import apply_all, apply_guarded, own_error
from sessiondb.writer.connection import WriterConnection
from sessiondb.writer.job import Batch, Job, Outcome, Sink

#: Units in one transaction.
MAX_BATCH = 256
#: How often a unit is tried whose batch was interrupted, or lost its database.
TRIES = 10
#: Seconds before the third try on a database that is out of reach; doubled for each
#: further one: 10 in all.
FIRST_PAUSE = 0.04
#: Seconds of a pause in which more units are queued, and how many are made while they
#: are.
GATHERING_PAUSE, MOST_PAUSES = 0.0005, 10
#: Seconds until a thread looks by itself whether the writer's role is free.
LONGEST_TURN = 1.0
#: Seconds that a fork(2) waits for a running commit.
FORK_PATIENCE = 10.0
RLock = Any  # a type only from Python 3.13 on


@dataclass(slots=True)
class Writer:
    """The writer of one database in this process."""

    connection: WriterConnection
    users: set[object] = field(default_factory=set)
    sinks: list[Sink] = field(default_factory=list)
    #: The number of the last batch that was ended.
    serial: int = 0
    _queue: deque[Job] = field(default_factory=deque)
    #: The batch that was taken and has not been ended.
    _batch: Batch | None = None
    #: How many jobs the last batch had.
    _last_size: int = 0
    _serials: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    #: An RLock only because its owner alone can release it: see `_let_go`.
    _role: RLock = field(default_factory=threading.RLock)
    _serving: int | None = None
    _pid: int = field(default_factory=os.getpid)

    # -- jobs ----------------------------------------------------------------

    def run(self, job: Job) -> None:
        """Commit a unit in this thread, or let whoever has the role commit it.

        Returns only if it is on disk, and raises its error otherwise.
        """
        self.refuse_in_commit()
        try:
            self.queue(job)
            self.serve(job)
        except BaseException:
            job.abandoned = True
            # An interrupt may end `_is_free` before it releases the lock.
            release_if_held(self._role)
            raise
        if job.outcome is not Outcome.COMMITTED:
            raise job.error or SessionDBError("the unit was not committed")

    def queue(self, job: Job) -> None:
        """Put a job in line; raises `StoreClosedError` after a fork(2)."""
        if os.getpid() != self._pid:
            raise StoreClosedError(
                "this store was opened before fork(2)", hint="open a store in the child"
            )
        self._queue.append(job)

    def serve(self, job: Job | None = None) -> None:
        """Commit what is queued, until the outcome of *job* is known."""
        if job is None or self._wait_for_turn(job):
            self._as_writer(self._drain_queue, job)

    def _wait_for_turn(self, job: Job) -> bool:
        """Wait while another thread has the role; False once *job* has its outcome.

        Not for the lock of the role: each of many threads would have to take it only to
        learn its outcome, and what it writes next would come too late for a batch. A
        commit to a file is over before that matters.
        """
        if not self.connection.engine.answers_late or self._is_free():
            return True
        job.turn = threading.Lock()
        job.turn.acquire()
        while job.pending:
            if self._is_free():
                return True
            # An interrupt may keep the other thread from ending it.
            job.turn.acquire(timeout=LONGEST_TURN)
        return False

    def _is_free(self) -> bool:
        """Return whether no thread has the role; a caller that gets True then takes it.

        `_serving` does not show that: the thread that gets the lock sets it only when
        it next runs, and all that look in the meantime would queue for the lock.
        """
        try:
            return bool(self._role.acquire(blocking=False))
        finally:
            release_if_held(self._role)

    def _pass_on(self) -> None:
        """Wake the thread of the next job that has one: nobody has the role."""
        for job in tuple(self._queue):
            if job.turn is not None and not job.abandoned:
                job.look_again()
                return

    def _as_writer(self, work: Callable[..., None], *args: object) -> None:
        """Do *work* with the role, which is given back on every path."""
        self.refuse_in_commit()
        try:
            with self._role:
                # A function of its own: Python covers the line of a ``try`` that is
                # nested here by no handler at all.
                self._with_role(work, args)
        except BaseException:
            self._let_go()
            self._pass_on()
            raise
        self._pass_on()

    def refuse_in_commit(self) -> None:
        """Raise `BusyError` in the middle of a commit of this thread.

        A signal handler, a finaliser (__del__) or a function given to
        `update_metadata` runs there, and would wait for its own thread.
        """
        if self.serving_here:
            raise BusyError(
                "this thread is in the middle of a commit",
                hint="do not write from a signal handler, a finaliser or the function "
                "of update_metadata",
            )

    def _with_role(self, work: Callable[..., None], args: tuple[object, ...]) -> None:
        try:
            self._serving = threading.get_ident()
            self._end_batch()
            work(*args)
            if not self.users:
                self.connection.disconnect()
        except BaseException:
            self._end_batch()
            raise
        finally:
            self._serving = None

    @property
    def serving_here(self) -> bool:
        """True while this thread has the role."""
        return self._serving == threading.get_ident()

    def _let_go(self) -> None:
        """Give back the role if this thread still has it.

        A signal never falls between a lock and its ``with`` block, but an exception
        raised by a tracer or debugger does.
        """
        if self.serving_here:
            self._serving = None
        release_if_held(self._role)

    def _drain_queue(self, job: Job | None) -> None:
        while self._queue and (job is None or job.pending):
            self._gather()
            batch = self._take_batch()
            if batch.jobs:
                self._commit_batch(batch)
            self._end_batch()
            self.connection.look_at_log()

    def _gather(self) -> None:
        """Let those whose units the last batch committed queue the next ones.

        The first to return is alone: without a pause every second batch would be a
        single unit, and a commit on a server takes many times as long as the pause.
        """
        if not self.connection.engine.answers_late:
            return
        for _ in range(MOST_PAUSES):
            size = len(self._queue)
            if size >= self._last_size:
                return
            time.sleep(GATHERING_PAUSE)
            if len(self._queue) == size:
                return

    def _take_batch(self) -> Batch:
        """Take what is queued.

        A unit that is queued twice waits for its own first outcome. A job leaves the
        queue last: an interrupt can double it, which is harmless, and never lose it.
        """
        batch = self._batch = Batch(next(self._serials))
        units: set[int] = set()
        while self._queue and len(batch.jobs) < MAX_BATCH:
            job = self._queue[0]
            if self._is_over(job):
                job.end()
                if job.wake is not None:
                    job.wake()
                self._queue.popleft()
                continue

            if id(job.unit) in units:
                break
            # One that was rolled back is tried alone, behind what is taken already.
            if job.tries and batch.jobs:
                break
            units.add(id(job.unit))
            batch.add(job)
            self._queue.popleft()
            if job.tries:
                break

        return batch

    def _is_over(self, job: Job) -> bool:
        """Return whether a job is over before it begins, and record its error."""
        if not job.pending:
            return True

        if job.unit.committed:
            job.error = None
            return True

        if job.abandoned or job.tries >= TRIES:
            job.error = job.reason or BusyError(
                "the thread that wrote it was interrupted; try again"
            )
            return True

        return False

    # -- one transaction -----------------------------------------------------

    def _commit_batch(self, batch: Batch) -> None:
        """Commit a batch, or record the errors; units that fail are tried alone."""
        self._wait_for_database(batch)
        try:
            self._run_transaction(batch)
        except Exception as error:
            if batch.ended:
                raise
            engine = self.connection.engine
            our_error = own_error(engine, error)
            is_repeated = engine.must_repeat(error) or self._is_lost(our_error)
            self.connection.roll_back()
            if is_repeated:
                # Not ended: its jobs go back into the queue.
                for job in batch.jobs:
                    job.reason = our_error
                return
            is_hopeless = isinstance(our_error, BusyError | DatabaseReplacedError)
            if len(batch.jobs) == 1 or is_hopeless:
                batch.after, batch.changes = [], []
                for job in batch.jobs:
                    job.error = our_error
                batch.ended.append(our_error)

    def _is_lost(self, our_error: Exception) -> bool:
        """Return whether the connection was lost, or the database is out of reach.

        Nobody knows whether the batch still committed: a unit that runs again
        recognises what it wrote.
        """
        return isinstance(our_error, UnavailableError) or self.connection.is_gone()

    def _wait_for_database(self, batch: Batch) -> None:
        """Give a database that was out of reach twice in a row time to come back."""
        tries = max(job.tries for job in batch.jobs)
        is_away = any(isinstance(job.reason, UnavailableError) for job in batch.jobs)
        if is_away and tries > 1:
            time.sleep(FIRST_PAUSE * 2 ** (tries - 2))

    def _run_transaction(self, batch: Batch) -> None:
        if not self.users and self.connection.inner is None:
            raise StoreClosedError("the store is closed")

        jobs, tried = batch.jobs, [job.unit.tried for job in batch.jobs]
        try:
            tx = self._begin(batch, is_first=True)
            if apply_all(tx, jobs):
                self._commit(tx, batch)
                return
        except self.connection.engine.Error as error:
            if not self._is_unclear(error, batch):
                raise
        else:
            if len(jobs) == 1 and not self._is_error_unclear(jobs[0], batch):
                self._give_up(batch)
                return

        # Again, with a savepoint for each unit: now it is certain whose an error is.
        self.connection.roll_back()
        batch.after, batch.changes = [], []
        for job, was_tried in zip(jobs, tried, strict=True):
            job.unit.tried = was_tried
        tx = self._begin(batch, is_first=False)
        if apply_guarded(tx, jobs):
            self._commit(tx, batch)
        else:
            self._give_up(batch)

    def _is_error_unclear(self, job: Job, batch: Batch) -> bool:
        """Return whether the error of a unit may be that of an earlier effect of it."""
        if job.error is None or len(job.unit.effects) == 1:
            return False
        return self._is_unclear(job.error.__cause__, batch)

    def _is_unclear(self, error: BaseException | None, batch: Batch) -> bool:
        """Return whether *error* may be of another statement than that which raised it.

        Not one for which the batch is run again anyway.
        """
        engine = self.connection.engine
        if not (engine.answers_late and isinstance(error, engine.Error)):
            return False
        our_error = own_error(engine, error)
        # It was waited for; that is not done twice for one unit.
        if isinstance(our_error, BusyError) and len(batch.jobs) == 1:
            return False
        return not (engine.must_repeat(error) or self._is_lost(our_error))

    def _begin(self, batch: Batch, *, is_first: bool) -> Transaction:
        connection = self.connection.ready(batch.durability)
        return self.connection.begin(
            connection,
            batch.busy_timeout,
            is_alone=batch.is_alone,
            units=[job.unit for job in batch.jobs] if is_first else (),
        )

    def _commit(self, tx: Transaction, batch: Batch) -> None:
        tx.finish()
        batch.after = tx.after_commit
        batch.changes = list(tx.changes.values())
        # Executed and recorded by one call into C: no interrupt falls in between, so
        # the record is certain about whether COMMIT happened. `in_transaction` is not:
        # it is False as well after a COMMIT that failed.
        batch.ended.extend(map(operator.call, (tx.connection.commit,)))
        self.connection.carryover = tx.carryover

    def _give_up(self, batch: Batch) -> None:
        self.connection.roll_back()
        batch.ended.append("ROLLBACK")

    def _end_batch(self) -> None:
        """Finish the batch that was taken; safe to repeat, wherever it was left."""
        batch = self._batch
        if batch is None:
            # One that was interrupted outside a batch.
            self.connection.roll_back()
            return

        if batch.ended:
            batch.resolve(self.sinks)
        else:
            self.connection.roll_back()
            for job in batch.jobs:
                job.tries += 1
            self._queue.extendleft(reversed(batch.jobs))

        self.serial, self._last_size = batch.serial, len(batch.jobs)
        self._batch = None

    # -- when it is not committing -------------------------------------------

    def shorten_log(self) -> None:
        """Checkpoint a log that is large."""
        self._as_writer(self.connection.shorten_log)

    def idle(self) -> None:
        """Complete search and sums, and checkpoint, if no unit is queued."""
        self._as_writer(self._rest)

    def _rest(self) -> None:
        if not self._queue:
            self.connection.put_waiting()
            self.connection.checkpoint()

    def close(self) -> None:
        """Complete search and sums, checkpoint, and close the connection.

        In the middle of a commit of this thread it is closed when that ends: this
        writer is not used any more.
        """
        if os.getpid() == self._pid and not self.serving_here:
            self._as_writer(self._disconnect)

    def _disconnect(self) -> None:
        self.connection.put_waiting()
        self.connection.disconnect()

    def pause(self) -> bool:
        """Close the connection and keep the role until `resume`, for a fork(2).

        False if a commit takes long, or is under way in this thread.
        """
        if self.serving_here or not self._role.acquire(timeout=FORK_PATIENCE):
            return False
        self._end_batch()
        self.connection.disconnect()
        return True

    def resume(self) -> None:
        """Give back the role after `pause`."""
        if not self.serving_here:
            release_if_held(self._role)


def release_if_held(lock: RLock) -> None:
    """Release a lock if this thread holds it."""
    try:
        lock.release()
    except RuntimeError:
        return
