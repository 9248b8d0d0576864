"""The common part of both façades: one opened database in this process.

It opens the file, owns the connections that read and write it, and closes them. All of
it is synchronous; `Store` and `AsyncStore` only choose who waits.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from sessiondb import ids, location
from sessiondb.arguments import checked
from sessiondb.clock import now_ms
from sessiondb.database import lifetime
from sessiondb.database.open_units import OpenUnits, named_by
from sessiondb.database.reading import (
    IdleReaders,
    answered_in_unit,
    is_corrupt,
    read_message,
)
from sessiondb.database.subscriptions import Deliver, Subscriptions
from sessiondb.database.worktrees import Worktrees
from sessiondb.effects.delete import Delete, Reap
from sessiondb.effects.project import RefreshProject
from sessiondb.effects.unit import Unit
from sessiondb.engine.base import DURABILITIES, Connection
from sessiondb.engine.default import target_at, temporary_place
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    StoreClosedError,
    abridged,
)
from sessiondb.hints import command
from sessiondb.model import bounds
from sessiondb.writer.callbacks import Callback
from sessiondb.writer.job import Job
from sessiondb.writer.loop import wake_late
from sessiondb.writer.registry import acquire, check_free, release
from sessiondb.writer.service import Service
from sessiondb.writer.thread import logger

if TYPE_CHECKING:
    from sessiondb.database.connections import Readers
    from sessiondb.database.queries import Queries

#: Seconds after a delete until its rows begin to be removed.
REAP_AFTER = 1.0
#: The lowest id of a session made here, whether rows of deleted ones are left, and when
#: the first value expires.
_STATE = (
    "SELECT (SELECT min(id) FROM session WHERE time_imported IS NULL), "
    "EXISTS (SELECT 1 FROM session WHERE time_deleted IS NOT NULL), "
    "(SELECT min(time_expires) FROM key_value WHERE time_expires IS NOT NULL)"
)


class Core:
    """One database: its place is known at once, and `open` opens it."""

    @checked
    def __init__(
        self,
        where: str | os.PathLike[str] | None = None,
        *,
        scope: str = "auto",
        source: str = "sessiondb",
        create: bool = True,
        parents: bool = False,
        read_only: bool = False,
        durability: str = "full",
        busy_timeout: float = 10.0,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        check_level(durability)
        self.source = ids.valid_id(source, "a source")
        # `resolve` refuses unknown scopes.
        self.location = location.resolve(where, scope=cast(Any, scope), cwd=cwd)
        self.base = None if self.location.root is None else str(self.location.root)
        self.read_only = read_only or self.location.mode == "ro"
        self.durability = durability
        self.busy_timeout = bounds.seconds(busy_timeout, "busy_timeout")
        self._temporary = None
        target = self.location.target()
        if target is None:
            self._temporary = temporary_place()
            target = target_at(self._temporary.path)
        self.target, self.engine = target, target.engine
        self._pid = os.getpid()

        self.readers = IdleReaders(
            self.check_readable, self.check_in_place, self.connect_reader
        )
        # Bound once: every read is called through this name.
        self.read = self.readers.read
        self.worktrees = Worktrees(self.base, cwd, self.read)
        self.locate = self.worktrees.locate
        #: The reads of this database; a façade sets them, because they are made of it.
        self.queries: Queries
        #: The readers of event loops, made with the first façade that is awaited.
        self.loop_readers: Readers | None = None
        #: Functions that close connections that are not in use.
        self.on_pause: list[Callable[[], None]] = [self.readers.pause]
        self.open_units = OpenUnits()
        self.closed = self._started = self._released = False
        self._create = create and self.location.mode == "rwc"
        self._parents = parents
        self._opening = threading.Lock()
        #: When a timer removes expired values, in Unix ms; None without one.
        self._next_expiry: int | None = None

    def open(self) -> None:
        """Open the database unless it is open; any thread may need it first.

        Raises what `prepare` and `start` raise.
        """
        with self._opening:
            if self._started:
                return
            self._check_not_closed()
            try:
                self.prepare()
                self.start()
            finally:
                # By another thread, perhaps before there was anything to close.
                if self.closed:
                    self._released = False
                    self.close()
        self._check_not_closed()

    @property
    def is_open(self) -> bool:
        """Whether it was opened; it may be closed again."""
        return self._started

    def prepare(self) -> None:
        """Make sure that there is a database; nothing is open or registered after it.

        Raises the errors of `Store.open`.
        """
        lifetime.close_collected()
        try:
            check_free(self.target)
            if self._create and not (self.read_only or self._parents):
                _check_folder(self.location)
            # The file that is verified has to be the one that `start` finds.
            self._identity = self.target.identity()
            reader = self.target.ensure(
                create=self._create,
                read_only=self.read_only,
                busy_timeout=self.busy_timeout,
                root=self.location.root,
            )
        except BaseException:
            self._remove_temporary()
            raise
        if reader is not None:
            self.readers.give_back(reader)

    def start(self) -> None:
        """Join the state that this process shares for the file.

        Nothing is registered before this call, and nothing is open after it failed.
        """
        try:
            self.writer = acquire(self.target, self)
            if self.writer.connection.identity != self._identity:
                self.readers.pause()
            #: The daemon thread of this store, started when it is first needed.
            self.service = Service(self.writer, wake_late)
            self._subscriptions = Subscriptions(self.writer.sinks)
            self._started = True
            lifetime.OPEN.add(self)
            self._see_state()
        except BaseException:
            self.close()
            raise

    def _see_state(self) -> None:
        """Continue other processes' work: ids below theirs, rows left to be removed."""
        connection = self.readers.checkout()
        try:
            newest, leftover, expiry = connection.execute(_STATE).fetchone()
        except self.engine.Error as error:
            self.check_in_place()
            if not is_corrupt(self.engine, error):
                raise self.engine.translate(error) from error
            # The next read or write reports it; a damaged index may affect none.
            newest, leftover, expiry = None, False, None
        finally:
            self.readers.give_back(connection)

        if newest is not None:
            ids.saw_session(newest)
        if self.read_only:
            return
        if leftover:
            self.reap_soon()
        if expiry is not None:
            # By the clock of this machine; each step then learns that of the database.
            self._reap_expired(expiry - now_ms())

    # -- reading -------------------------------------------------------------

    def _check_not_closed(self) -> None:
        if self.closed:
            raise StoreClosedError("the store is closed")
        if os.getpid() != self._pid:
            raise StoreClosedError(
                "this store was opened before fork(2)", hint="open a store in the child"
            )

    def check_usable(self) -> None:
        """Raise `StoreClosedError` when closed, or opened before a fork(2)."""
        self._check_not_closed()
        if lifetime.COLLECTED and self._started:
            self.service.post(lifetime.close_collected)

    def check_readable(self) -> None:
        """Raise `StoreClosedError`, or `DatabaseReplacedError` for another file."""
        self.check_usable()
        self.check_in_place()

    def check_in_place(self) -> None:
        """Raise `DatabaseReplacedError` if another file is at the path."""
        self.writer.connection.check_in_place()

    def connect_reader(self, *, one_thread: bool = False) -> Connection:
        """Return a new connection that only reads.

        See `Target.connect` for *one_thread*.
        """
        connection = self.target.connect(
            mode="ro" if self.read_only else "reader",
            busy_timeout=self.busy_timeout,
            one_thread=one_thread,
        )
        try:
            # The files were opened one after the other: another database that took
            # the place meanwhile would be read in part, or in place of this one.
            self.check_in_place()
        except BaseException:
            connection.close()
            raise
        return connection

    # -- writing -------------------------------------------------------------

    def unit(self) -> Unit:
        """Return an empty unit."""
        return Unit(
            self.engine, self.source, self.locate, read_message, self._read_in_unit
        )

    def _read_in_unit(self, connection: Connection, reads: Callable[..., Any]) -> Any:
        return answered_in_unit(connection, self.queries.snapshot(reads))

    def job(self, unit: Unit, durability: str | None = None, **more: Any) -> Job:
        """Return the job that commits a unit."""
        self.check_usable()
        if self.read_only:
            raise ReadOnlyError("the store was opened read-only")
        if not isinstance(unit, Unit):
            raise InvalidInputError(f"a unit is committed, not {abridged(unit)}")
        if durability is not None:
            check_level(durability)

        level = durability or self.durability
        return Job(unit, level, self.busy_timeout, self.base, **more)

    def commit(self, unit: Unit, durability: str | None = None) -> None:
        """Commit a unit in this thread; a no-op if it is empty."""
        job = self.job(unit, durability)
        if not unit.effects:
            return

        self.worktrees.complete(unit)
        try:
            self.writer.run(job)
        except NotFoundError as error:
            self.open_units.explain(error, named_by(unit))
            raise
        finally:
            # Also after an interrupt: the unit may be on disk.
            self.committed(unit)

        self.service.touch()
        if self.worktrees.is_due(unit):
            self.refresh_project()

    def committed(self, unit: Unit) -> None:
        """Do the work that follows a commit, if *unit* was committed."""
        if not unit.committed:
            return
        if unit.shortest_ttl is not None:
            self._reap_expired(unit.shortest_ttl)
        for effect in unit.effects:
            if isinstance(effect, Delete):
                self.reap_soon()
                return

    def reap_soon(self, seconds: float = REAP_AFTER) -> None:
        """Remove what is deleted or expired in the background, bit by bit."""
        self.service.call_later(seconds, self._reap_step)

    def _reap_expired(self, delay: int) -> None:
        """Remove values in the background soon after one expires, in *delay* ms.

        There is one timer for the earliest expiry, since each step finds the next one.
        """
        expiry = now_ms() + delay
        if self._next_expiry is None or expiry < self._next_expiry:
            self._next_expiry = expiry
            self.reap_soon(max(0, delay) / 1000 + REAP_AFTER)

    def _reap_step(self) -> None:
        if self.closed:
            return

        # First: what is committed from here on has its own timer, or is seen below.
        self._next_expiry = None
        unit, step = self.unit(), Reap()
        unit.add(step)
        self.writer.run(self.job(unit, "normal"))

        if step.more:
            self.reap_soon(0.0)
        elif step.expires_in is not None:
            self._reap_expired(step.expires_in)

    def refresh_project(self) -> None:
        """Update the stored git facts of the current worktree's project.

        This is a unit of its own, after the caller's, whose order and outcome therefore
        do not depend on git. A refresh that fails is tried again when it is next due.
        """
        with contextlib.suppress(SessionDBError):
            place = self.worktrees.stale()
            if place is None:
                return

            unit = self.unit()
            unit.add(RefreshProject(unit.add_place(place)))
            self.worktrees.complete(unit)
            self.writer.run(self.job(unit, "normal"))

    def subscribe(
        self, callback: Callback, deliver: Deliver | None = None
    ) -> Callable[[], None]:
        """Call *callback* after every commit of this process.

        *deliver* runs it where its owner wants it; the default is a thread of this
        store. Raises `BusyError` if that cannot be started.
        """
        self.check_usable()
        return self._subscriptions.add(callback, deliver)

    # -- the end -------------------------------------------------------------

    def close(self) -> None:
        """Close everything, from any thread; a forked child only marks it as closed.

        Safe to call twice; the second call completes one that was interrupted. In a
        signal handler during a commit of the same thread it waits for no thread.
        """
        self.closed = self.readers.closed = True
        if self._released or os.getpid() != self._pid:
            return

        if self._started:
            self._stop_threads(wait=not self.writer.serving_here)
        self.readers.pause()
        # Also what was acquired by a start that was interrupted.
        release(self)
        self._remove_temporary()
        lifetime.OPEN.discard(self)
        self._released = True

    def _stop_threads(self, *, wait: bool) -> None:
        self.service.stop(wait=wait)
        self._subscriptions.end(wait=wait)
        self.pause()
        if self.readers.past is not None:
            self.readers.past.close()

    def abandon(self) -> None:
        """Arrange for this to be closed soon: its store was collected.

        A finaliser runs in whatever thread allocates next, on any line, with any lock
        held: it neither joins nor locks. The thread of this store closes it if there is
        one, else the next use of any store.
        """
        if self._released or os.getpid() != self._pid:
            return

        lifetime.COLLECTED.append(self)
        if self.has_thread:
            self.service.put(self.close_now)

    @property
    def has_thread(self) -> bool:
        """Whether the thread of this store runs; one that never started has none."""
        return self._started and self.service.running

    def close_now(self) -> None:
        """Close a store that was collected."""
        try:
            self.close()
        except Exception:
            logger().exception("a store that was collected could not be closed")

        # Last, so that a thread that opens the file waits until it is closed.
        with contextlib.suppress(ValueError):
            lifetime.COLLECTED.remove(self)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.remove()

    def pause(self) -> None:
        """Close the connections that are not in use; the next read opens one."""
        for function in self.on_pause:
            function()


def _check_folder(place: location.Database) -> None:
    """Refuse a path that a caller named, in a folder that does not exist.

    It is more often mistyped than meant. A project's database has a folder of its own
    in the project, and the folders of default places are ours to make.
    """
    if place.kind != "explicit" or place.path is None:
        return
    folder = place.path.parent if place.root is None else place.root
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        made_by = command("--db", str(place.path), "init")
        raise NotFoundError(
            f"there is no folder {folder} for the database",
            hint=f"check the path; {made_by} makes it (in Python: parents=True)",
        ) from error
    except OSError:
        # The engine reports it.
        return


def check_level(durability: object) -> None:
    """Raise `InvalidInputError` unless *durability* is one of `DURABILITIES`."""
    if not isinstance(durability, str) or durability not in DURABILITIES:
        raise InvalidInputError(
            f"durability is full or normal, not {abridged(durability)}"
        )
