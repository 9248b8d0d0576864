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
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessiondb.effects.transaction import Transaction
from sessiondb.engine import disk
from sessiondb.engine.base import Connection
from sessiondb.engine.default import ENGINE
from sessiondb.errors import (
    BusyError,
    DatabaseReplacedError,
    SessionDBError,
    StoreClosedError,
)
from sessiondb.schema.version import VERSION
from sessiondb.writer.job import Batch, Job, Outcome, Sink

MAX_BATCH = 256
#: How often a unit is tried whose batch was interrupted.
TRIES = 10
CHECKPOINT_BYTES = 4 * 1024 * 1024
#: Seconds that a fork(2) waits for a running commit.
FORK_PATIENCE = 10.0
RLock = Any  # a type only from Python 3.13 on


@dataclass(slots=True)
class Writer:
    """The writer of one database in this process."""

    path: Path
    identity: disk.FileIdentity
    users: set[object] = field(default_factory=set)
    sinks: list[Sink] = field(default_factory=list)
    #: The number of the last batch that was ended.
    serial: int = 0
    _queue: deque[Job] = field(default_factory=deque)
    #: The batch that was taken and has not been ended.
    _batch: Batch | None = None
    _serials: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    #: An RLock only because its owner alone can release it: see `_let_go`.
    _role: RLock = field(default_factory=threading.RLock)
    _serving: int | None = None
    _connection: Connection | None = None
    _durability: str = ""
    _busy_timeout: float = -1.0
    _version: int = VERSION
    _pid: int = field(default_factory=os.getpid)

    # -- jobs ----------------------------------------------------------------

    def run(self, job: Job) -> None:
        """Commit a unit in this thread, or let whoever has the role commit it.

        Returns only if it is on disk, and raises its error otherwise.
        """
        try:
            self.queue(job)
            self.serve(job)
        except BaseException:
            job.abandoned = True
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
        self._as_writer(self._drain, job)

    def _as_writer(self, work: Callable[..., None], *args: object) -> None:
        """Do *work* with the role, which is given back on every path."""
        if self.serving_here:
            # From a signal handler or a finaliser (__del__), in the middle of a commit.
            raise BusyError(
                "this thread is in the middle of a commit",
                hint="do not write from a signal handler or a finaliser",
            )
        try:
            with self._role:
                # A function of its own: Python covers the line of a ``try`` that is
                # nested here by no handler at all.
                self._with_role(work, args)
        except BaseException:
            self._let_go()
            raise

    def _with_role(self, work: Callable[..., None], args: tuple[object, ...]) -> None:
        try:
            self._serving = threading.get_ident()
            self._end_batch()
            work(*args)
            if not self.users:
                self._disconnect()
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

    def _drain(self, job: Job | None) -> None:
        while self._queue and (job is None or job.pending):
            batch = self._take_batch()
            if batch.jobs:
                self._commit(batch)
            self._end_batch()
            self._checkpoint_if_large()

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
            elif id(job.unit) in units or (job.tries and batch.jobs):
                break
            else:
                units.add(id(job.unit))
                batch.jobs.append(job)
            self._queue.popleft()
            if job.tries:
                break
        return batch

    def _is_over(self, job: Job) -> bool:
        """Return whether a job is not to be begun; notes the error of one that failed."""
        if not job.pending:
            return True
        if job.unit.committed:
            job.error = None
            return True
        if job.abandoned or job.tries >= TRIES:
            job.error = BusyError("the thread that wrote it was interrupted; try again")
            return True
        return False

    # -- one transaction -----------------------------------------------------

    def _commit(self, batch: Batch) -> None:
        """Commit a batch, or note the errors; several units that fail are tried alone."""
        try:
            self._transact(batch)
        except Exception as error:
            if batch.ended:
                raise
            self._roll_back()
            own = _own(error)
            hopeless = isinstance(own, BusyError | DatabaseReplacedError)
            if len(batch.jobs) == 1 or hopeless:
                batch.after, batch.changes = [], []
                for job in batch.jobs:
                    job.error = own
                batch.ended.append(own)

    def _transact(self, batch: Batch) -> None:
        connection = self._ready(batch)
        tx = self._begin(connection)
        good = self._apply_all(tx, batch.jobs)
        if not good and len(batch.jobs) > 1:
            # A savepoint for each unit costs an eighth of the batch: only after a failure.
            connection.execute("ROLLBACK")
            tx = self._begin(connection)
            good = sum(self._apply_guarded(tx, job) for job in batch.jobs) > 0

        if good:
            tx.finish()
            batch.after = tx.after_commit
            batch.changes = list(tx.changes.values())
        # Executed and recorded by one call into C: no interrupt falls in between, so the
        # record says for certain whether COMMIT happened. `in_transaction` does not: it
        # is False as well after a COMMIT that failed.
        end = "COMMIT" if good else "ROLLBACK"
        batch.ended.extend(map(connection.execute, (end,)))

    def _end_batch(self) -> None:
        """Finish the batch that was taken; safe to repeat on whatever line it was left."""
        batch = self._batch
        if batch is None:
            return
        if batch.ended:
            batch.resolve(self.sinks)
        else:
            self._roll_back()
            for job in batch.jobs:
                job.tries += 1
            self._queue.extendleft(reversed(batch.jobs))
        self.serial = batch.serial
        self._batch = None

    def _begin(self, connection: Connection) -> Transaction:
        connection.execute(ENGINE.begin_write)
        self._check_version(connection)
        return Transaction(connection)

    def _apply_all(self, tx: Transaction, jobs: list[Job]) -> bool:
        """Apply units in turn; False after a failure, which the last one notes."""
        for job in jobs:
            if not self._apply(tx, job):
                tx.after_commit.clear()
                tx.changes.clear()
                return False
        return True

    def _apply_guarded(self, tx: Transaction, job: Job) -> bool:
        """Apply one unit; a failure leaves the others' work as it is."""
        tx.connection.execute("SAVEPOINT unit")
        mark = tx.mark()
        good = self._apply(tx, job)
        if not good:
            tx.undo_unit(mark)
            tx.connection.execute("ROLLBACK TO unit")
        tx.connection.execute("RELEASE unit")
        return good

    def _apply(self, tx: Transaction, job: Job) -> bool:
        """Apply one unit; a failure is noted in its job."""
        tried = job.unit.tried
        tx.begin_unit(tried, job.root)
        job.unit.tried, job.error = True, None
        position, verb = 0, "unit"
        try:
            for position, effect in enumerate(job.unit.effects):  # noqa: B007  named by errors
                verb = effect.verb
                tx.redirected(effect).apply(tx)
            tx.flush()
        except Exception as error:
            own = _own(error)
            own.__cause__ = None if own is error else error
            if isinstance(own, SessionDBError) and own.effect is None:
                own.effect, own.position = verb, position
            if not tx.connection.in_transaction:
                raise own from own.__cause__
            job.unit.tried, job.error = tried, own
            return False
        return True

    # -- the connection ------------------------------------------------------

    def _ready(self, batch: Batch) -> Connection:
        if not self._in_place():
            # Empties the -wal, which the new file would otherwise take for its own.
            self._disconnect()
        self.check_in_place()
        connection = self._connection
        if connection is None:
            connection = self._connect()
        full = any(job.durability == "full" for job in batch.jobs)
        durability = "full" if full else "normal"
        if durability != self._durability:
            # Unknown until it is done: an interrupt must not leave a wrong belief.
            self._durability = ""
            ENGINE.set_durability(connection, durability)
            self._durability = durability
        self._wait_up_to(connection, max(job.busy_timeout for job in batch.jobs))
        return connection

    def _connect(self) -> Connection:
        if not self.users:
            raise StoreClosedError("the store is closed")
        connection = self._connection = ENGINE.connect_writer(self.path)
        self._durability, self._busy_timeout = "full", 10.0
        return connection

    def _wait_up_to(self, connection: Connection, seconds: float) -> None:
        if seconds != self._busy_timeout:
            self._busy_timeout = -1.0
            ENGINE.set_busy_timeout(connection, seconds)
            self._busy_timeout = seconds

    def check_in_place(self) -> None:
        """Raise `DatabaseReplacedError` if another file, or none, is at the path now."""
        if not self._in_place():
            raise DatabaseReplacedError(
                f"{self.path} was replaced or removed since it was opened",
                hint="close the store and open it again; what is at the path now was not written",
            )

    def _in_place(self) -> bool:
        return disk.identity(self.path) == self.identity

    def _check_version(self, connection: Connection) -> None:
        """Another process may have migrated the file since the last commit."""
        version = ENGINE.schema_version(connection)
        if version != self._version:
            if version > VERSION:
                ENGINE.check_newer(connection, self.path, version, writing=True)
            self._version = version

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is None or not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except ENGINE.Error:
            # Closing rolls back, too.
            self._connection = None
            connection.close()

    def _checkpoint_if_large(self) -> None:
        connection = self._connection
        large = ENGINE.log_bytes(self.path) > CHECKPOINT_BYTES
        if large and connection is not None:
            self._checkpoint(connection)

    def _checkpoint(self, connection: Connection) -> None:
        try:
            self._wait_up_to(connection, 0.05)
            ENGINE.checkpoint(connection)
        except ENGINE.Error:
            # The commit is on disk; the next one tries again.
            return

    def idle(self) -> None:
        """Checkpoint if no unit is queued."""
        self._as_writer(self._checkpoint_idle)

    def _checkpoint_idle(self) -> None:
        if self._connection is not None and not self._queue:
            self._checkpoint(self._connection)

    def close(self) -> None:
        """Checkpoint and close the connection.

        In the middle of a commit of this thread it is closed when that ends: this
        writer is not used any more.
        """
        if os.getpid() == self._pid and not self.serving_here:
            self._as_writer(self._disconnect)

    def _disconnect(self) -> None:
        connection = self._connection
        if connection is None:
            return
        if not self._in_place():
            # Else the log of a file that was replaced is left for the new file to find.
            self._checkpoint(connection)
        self._connection = None
        connection.close()

    def pause(self) -> bool:
        """Close the connection and keep the role until `resume`, for a fork(2).

        False if a commit takes long, or is under way in this thread.
        """
        if self.serving_here or not self._role.acquire(timeout=FORK_PATIENCE):
            return False
        self._end_batch()
        self._disconnect()
        return True

    def resume(self) -> None:
        """Give back the role after `pause`."""
        if not self.serving_here:
            release_if_held(self._role)


def _own(error: Exception) -> Exception:
    """Return our error for one of the driver's; any other as it is."""
    return ENGINE.translate(error) if isinstance(error, ENGINE.Error) else error


def release_if_held(lock: RLock) -> None:
    """Release a lock if this thread holds it."""
    try:
        lock.release()
    except RuntimeError:
        return
