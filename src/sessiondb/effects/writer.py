"""The writer: a role, not a thread.

One connection and one queue per process and database file (found by device and
inode). Whoever queues a unit and finds the role free commits everything that
queued meanwhile, in its own thread; async callers are served by one daemon
thread. Batches form by themselves from what queued during the last commit. A bad
unit never hurts its neighbours: the batch begins again, with a savepoint for each.
A result is given out only after the commit that holds it. Telling others comes
after that, outside of the lock.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sessiondb.effects.job import Job
from sessiondb.effects.transaction import Transaction
from sessiondb.engine import files
from sessiondb.engine.connection import DURABILITY, connect
from sessiondb.engine.failures import translate
from sessiondb.engine.opening import check_newer
from sessiondb.errors import (
    BusyError,
    DatabaseReplacedError,
    SessionDBError,
    StoreClosedError,
)
from sessiondb.model import Change
from sessiondb.schema.ddl import VERSION

MAX_BATCH = 256
CHECKPOINT_BYTES = 4 * 1024 * 1024
#: Seconds that a fork(2) waits for a running commit.
FORK_PATIENCE = 10.0
_log = logging.getLogger("sessiondb")
Sink = Callable[[list[Change]], None]


@dataclass(slots=True)
class Writer:
    """The writer of one database in this process."""

    path: Path
    identity: files.FileIdentity
    users: int = 0
    sinks: list[Sink] = field(default_factory=list)
    _queue: deque[Job] = field(default_factory=deque)
    _role: threading.Lock = field(default_factory=threading.Lock)
    _connection: sqlite3.Connection | None = None
    _durability: str = "full"
    _busy_timeout: float = 10.0
    _version: int = VERSION
    _committing: bool = False
    _told: deque[list[Change]] = field(default_factory=deque)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    _pid: int = field(default_factory=os.getpid)

    def run(self, job: Job) -> None:
        """Commit a unit in this thread, or let whoever has the role commit it; raises its error."""
        self.queue(job)
        self.serve(job)
        if job.error is not None:
            raise job.error

    def queue(self, job: Job) -> None:
        """Put a job in line; raises `StoreClosedError` after a fork(2)."""
        if os.getpid() != self._pid:
            raise StoreClosedError(
                "this store was opened before fork(2)", hint="open a store in the child"
            )
        self._queue.append(job)

    def serve(self, job: Job | None = None) -> None:
        """Commit what is queued, until *job* is done."""
        with self._role:
            while self._queue and not (job is not None and job.done):
                self._serve_batch()
        self._tell()

    def _serve_batch(self) -> None:
        taken, batch = self._take_batch()
        self._committing = False
        try:
            if batch:
                self._commit(batch)
        except sqlite3.Error as error:
            self._fail(batch, translate(error))
        except SessionDBError as error:
            self._fail(batch, error)
        except BaseException as error:
            # KeyboardInterrupt in the thread that holds the role: nobody may wait for ever.
            open_still = self._roll_back()
            stopped = StoreClosedError("the writing thread was interrupted; try again")
            for job in batch:
                job.end(job.error if self._committing and not open_still else stopped)
            raise error
        finally:
            for wake in {job.wake for job in taken if job.wake is not None}:
                wake()

    def _take_batch(self) -> tuple[list[Job], list[Job]]:
        """Take what is queued; return it, and those of it whose units are not committed yet.

        A unit that is queued twice waits for its own first outcome.
        """
        taken: list[Job] = []
        batch: list[Job] = []
        units: set[int] = set()
        while self._queue and len(batch) < MAX_BATCH and id(self._queue[0].unit) not in units:
            job = self._queue.popleft()
            taken.append(job)
            if job.unit.committed:
                job.end()
                continue
            units.add(id(job.unit))
            batch.append(job)
        return taken, batch

    def _fail(self, batch: list[Job], error: SessionDBError) -> None:
        """End a batch that could not begin or commit; several units get a try of their own."""
        self._roll_back()
        waiting = [job for job in batch if not job.done]
        if len(waiting) == 1 or isinstance(error, BusyError | DatabaseReplacedError):
            for job in waiting:
                job.end(error)
            return
        for job in waiting:
            try:
                self._commit([job])
            except sqlite3.Error as own:
                self._roll_back()
                job.end(translate(own))
            except SessionDBError as own:
                self._roll_back()
                job.end(own)

    def _commit(self, batch: list[Job]) -> None:
        connection = self._ready(batch)
        tx = self._begin(connection)
        good = self._apply_all(tx, batch)
        if not good and len(batch) > 1:
            # A savepoint for each unit costs an eighth of the batch: only where one failed.
            connection.execute("ROLLBACK")
            tx = self._begin(connection)
            good = sum(self._apply_guarded(tx, job) for job in batch) > 0
        if good:
            tx.finish()
            self._committing = True
            connection.execute("COMMIT")
        else:
            connection.execute("ROLLBACK")
        for tell in tx.settled:
            tell()
        if tx.changes:
            self._told.append(list(tx.changes.values()))
        for job in batch:
            # Failures too: what a unit met may be what its neighbour has only now committed.
            job.end(job.error)
        self._checkpoint_if_large(connection)

    def _begin(self, connection: sqlite3.Connection) -> Transaction:
        connection.execute("BEGIN IMMEDIATE")
        self._check_version(connection)
        return Transaction(connection)

    def _apply_all(self, tx: Transaction, batch: list[Job]) -> bool:
        """Apply the units one after the other; False after a failure, which the last one notes."""
        for job in batch:
            if not self._apply(tx, job):
                tx.settled.clear()
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
            own = translate(error) if isinstance(error, sqlite3.Error) else error
            own.__cause__ = None if own is error else error
            if isinstance(own, SessionDBError) and own.effect is None:
                own.effect, own.position = verb, position
            if not tx.connection.in_transaction:
                raise own from own.__cause__
            job.unit.tried, job.error = tried, own
            return False
        return True

    def _ready(self, batch: list[Job]) -> sqlite3.Connection:
        if not self._in_place():
            # Empties the -wal, which the new file would otherwise take for its own.
            self._hang_up()
        self.check_in_place()
        if self._connection is None:
            if not self.users:
                raise StoreClosedError("the store is closed")
            self._connection = connect(self.path)
            self._connection.execute("PRAGMA wal_autocheckpoint=4000")
            self._durability, self._busy_timeout = "full", 10.0
        durability = "full" if any(j.durability == "full" for j in batch) else "normal"
        if durability != self._durability:
            self._connection.execute(f"PRAGMA synchronous={DURABILITY[durability]}")
            self._durability = durability
        timeout = max(job.busy_timeout for job in batch)
        if timeout != self._busy_timeout:
            self._connection.execute(f"PRAGMA busy_timeout={int(timeout * 1000)}")
            self._busy_timeout = timeout
        return self._connection

    def check_in_place(self) -> None:
        """Raise `DatabaseReplacedError` if another file, or none, is at the path now."""
        if not self._in_place():
            raise DatabaseReplacedError(
                f"{self.path} was replaced or removed since it was opened",
                hint="close the store and open it again; what is at the path now was not written",
            )

    def _in_place(self) -> bool:
        return files.identity(self.path) == self.identity

    def _check_version(self, connection: sqlite3.Connection) -> None:
        """Another process may have migrated the file since the last commit."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != self._version:
            if version > VERSION:
                check_newer(connection, self.path, version, writing=True)
            self._version = version

    def _roll_back(self) -> bool:
        """End what is open; return whether anything was."""
        connection = self._connection
        if connection is None or not connection.in_transaction:
            return False
        connection.execute("ROLLBACK")
        return True

    def _checkpoint_if_large(self, connection: sqlite3.Connection) -> None:
        try:
            if os.stat(f"{self.path}-wal").st_size > CHECKPOINT_BYTES:
                self._checkpoint(connection)
        except OSError:
            return

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """TRUNCATE takes the write lock, which keeps clear of the reset race of SQLite < 3.51.3."""
        connection.execute("PRAGMA busy_timeout=50")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            # The commit stands; the next one tries again.
            return
        finally:
            connection.execute(f"PRAGMA busy_timeout={int(self._busy_timeout * 1000)}")

    def idle(self) -> None:
        """Checkpoint while nobody writes."""
        with self._role:
            if self._connection is not None and not self._queue:
                self._checkpoint(self._connection)

    def _tell(self) -> None:
        """Hand what was committed to those who are told, in order; a sink only puts it in line."""
        while self._told:
            with self._telling:
                changes = self._told.popleft() if self._told else []
                for sink in list(self.sinks) if changes else ():
                    try:
                        sink(changes)
                    except Exception:
                        _log.exception("changes could not be told; the commit stands")

    def close(self) -> None:
        """Checkpoint and close the connection."""
        with self._role:
            if os.getpid() == self._pid:
                self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if not self._in_place():
            # SQLite leaves the -wal of a file that was replaced, for the new file to find.
            self._checkpoint(connection)
        connection.close()

    def rest(self) -> bool:
        """Close the connection and keep the role until `resume`; False if a commit takes long."""
        if not self._role.acquire(timeout=FORK_PATIENCE):
            return False
        self._hang_up()
        return True

    def resume(self) -> None:
        """Give back the role after `rest`."""
        self._role.release()


_writers: dict[files.FileIdentity, Writer] = {}
_resting: list[Writer] = []
_lock = threading.RLock()


def acquire(path: Path) -> Writer:
    """Return this process's writer of the file at *path*, which must exist."""
    identity = files.identity(path)
    if identity is None:
        raise DatabaseReplacedError(f"{path} does not exist any more")
    with _lock:
        writer = _writers.get(identity)
        if writer is None:
            writer = _writers[identity] = Writer(path, identity)
        writer.users += 1
        return writer


def check_free(path: Path) -> None:
    """Refuse to open a file beside one that this process has open and that was at *path* before.

    Both would use one ``-wal`` and one ``-shm``. Raises `DatabaseReplacedError`.
    """
    identity = files.identity(path)
    with _lock:
        others = [w for w in _writers.values() if w.path == path and w.identity != identity]
    for writer in others:
        writer.check_in_place()


def release(writer: Writer) -> None:
    """Give a writer back; the last user closes it."""
    with _lock:
        writer.users -= 1
        last = writer.users == 0
        if last and _writers.get(writer.identity) is writer:
            del _writers[writer.identity]
    if last:
        writer.close()


def _before_fork() -> None:
    _resting.extend(writer for writer in list(_writers.values()) if writer.rest())


def _after_fork_in_parent() -> None:
    while _resting:
        _resting.pop().resume()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _writers.clear()
    _resting.clear()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
