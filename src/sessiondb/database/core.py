"""The common part of both façades: one opened database in this process.

It owns the reader connections and this process's writer, knows where the
database is, and turns directories into places. It is all of the
synchronous machinery; `Store` and `AsyncStore` only choose who waits.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sessiondb import codec, ids, location
from sessiondb.database.facts import Facts
from sessiondb.effects.delete import Delete, Reap
from sessiondb.effects.project import Place, RefreshProject
from sessiondb.effects.unit import Unit
from sessiondb.engine.base import DURABILITIES, Connection, Mode
from sessiondb.engine.default import ENGINE
from sessiondb.errors import (
    CorruptionError,
    InvalidInputError,
    ReadOnlyError,
    SessionDBError,
    StoreClosedError,
    abridged,
)
from sessiondb.model import Change, bounds
from sessiondb.places import named, stored
from sessiondb.repository import Read
from sessiondb.repository.sessions import project_at
from sessiondb.writer.callbacks import Callback, Notifier, Subscription
from sessiondb.writer.inbox import wake_late
from sessiondb.writer.job import Job, Sink
from sessiondb.writer.registry import acquire, check_free, release
from sessiondb.writer.service import Service
from sessiondb.writer.thread import in_worker

if TYPE_CHECKING:
    from sessiondb.database.damage import PastDamage

_log = logging.getLogger("sessiondb")
T = TypeVar("T")
Deliver = Callable[[Subscription, int, list[Change]], None]
#: Seconds after a delete until its rows begin to be removed.
REAP_AFTER = 1.0
#: Reader connections that are kept for the next read of some thread.
MAX_IDLE = 4
_open: weakref.WeakSet[Core] = weakref.WeakSet()
#: Cores whose stores were collected, to be closed by `close_collected`.
_collected: deque[Core] = deque()


def answered(
    connection: Connection, query: Read[T], damage: PastDamage | None = None
) -> T:
    """Run a read in the transaction that *connection* is in; raises `Engine.Error`.

    With *damage*, the statement that meets a damaged page and all after it are
    answered by the copy.
    """
    rows: Any = None
    while True:
        try:
            statement, params = query.send(rows)
        except StopIteration as done:
            value: T = done.value
            return value
        sql, bound = statement.bind(params)
        try:
            rows = connection.execute(sql, bound).fetchall()
        except ENGINE.Error as error:
            wanted = damage is not None and damage.active
            if not wanted or not isinstance(ENGINE.translate(error), CorruptionError):
                raise
            # For the rest of the read, too: its statements must agree on what there is.
            assert damage is not None, "wanted"
            connection, damage = damage.connection(), None
            rows = connection.execute(sql, bound).fetchall()


def read_on(
    connection: Connection, query: Read[T], damage: PastDamage | None = None
) -> T:
    """Run a read in one snapshot and return its value; raises the errors of `translate`."""
    try:
        connection.execute(ENGINE.begin_read)
        return answered(connection, query, damage)
    except ENGINE.Error as error:
        raise ENGINE.translate(error) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise InvalidInputError(
            f"not a value that can be stored here: {error}"
        ) from error
    finally:
        # Not COMMIT, which fails once more on a damaged file.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class Core:
    """One opened database."""

    def __init__(
        self,
        where: str | os.PathLike[str] | None,
        *,
        scope: Any,
        source: str,
        create: bool,
        read_only: bool,
        durability: str,
        busy_timeout: float,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        _check_level(durability)
        self.source = ids.valid_id(source, "a source")
        self.location = location.resolve(where, scope=scope, cwd=cwd)
        self.base = None if self.location.root is None else str(self.location.root)
        self.read_only, self.durability = read_only, durability
        self.busy_timeout = bounds.seconds(busy_timeout, "busy_timeout")
        self.cwd = cwd
        self._temporary = ENGINE.temporary() if self.location.path is None else None
        chosen = self._temporary.path if self._temporary else self.location.path
        self.path: Path = chosen  # type: ignore[assignment]
        self._pid = os.getpid()
        self._idle: deque[Connection] = deque()
        self.facts = Facts(self.base, self.read)
        self._notifier = Notifier()
        self._sinks: list[Sink] = []
        #: Functions that close connections that are not in use.
        self.on_pause: list[Callable[[], None]] = []
        #: Where reads continue behind a damaged page; None: they raise.
        self.damage: PastDamage | None = None
        self.closed = self._started = self._released = False
        close_collected()
        try:
            check_free(self.path)
            ENGINE.ensure(
                self.path, create=create, read_only=read_only, busy_timeout=busy_timeout,
                root=self.location.root,
            )  # fmt: skip
        except BaseException:
            self._remove_temporary()
            raise

    def start(self) -> None:
        """Take part in what this process shares of the file; leaves nothing of it if it fails.

        Until then nothing is open and nothing is registered, however the making ended.
        """
        try:
            self.writer = acquire(self.path, self)
            #: The daemon thread of this store, started when it is first needed.
            self.service = Service(self.writer, wake_late)
            self._started = True
            _open.add(self)
            self._see_newest()
        except BaseException:
            self.close()
            release(self)
            raise

    def _see_newest(self) -> None:
        connection = self.checkout()
        try:
            sql = (
                "SELECT (SELECT min(id) FROM session WHERE time_imported IS NULL), "
                "EXISTS (SELECT 1 FROM session WHERE time_deleted IS NOT NULL)"
            )
            newest, leftover = connection.execute(sql).fetchone()
        except ENGINE.Error as error:
            if not isinstance(why := ENGINE.translate(error), CorruptionError):
                raise why from error
            # The next read or write says so; an index alone stops no read.
            newest, leftover = None, False
        finally:
            self.give_back(connection)
        if newest is not None:
            ids.saw_session(newest)
        if leftover and not self.read_only:
            self.reap_soon()

    # -- reading -------------------------------------------------------------

    def check_usable(self) -> None:
        """Raise `StoreClosedError` when closed, or opened before a fork(2)."""
        if self.closed:
            raise StoreClosedError("the store is closed")
        if os.getpid() != self._pid:
            raise StoreClosedError(
                "this store was opened before fork(2)", hint="open a store in the child"
            )
        if _collected:
            self.service.post(close_collected)

    def check_readable(self) -> None:
        """Raise `StoreClosedError`, or `DatabaseReplacedError` where another file is now."""
        self.check_usable()
        self.writer.connection.check_in_place()

    def connect_reader(self, *, one_thread: bool = False) -> Connection:
        """Return a new connection that only reads; see `connect` for *one_thread*."""
        mode: Mode = "ro" if self.read_only else "reader"
        return ENGINE.connect(
            self.path, mode=mode, busy_timeout=self.busy_timeout, one_thread=one_thread
        )

    def checkout(self) -> Connection:
        """Return a reader for the caller alone; hand it to `give_back`."""
        self.check_readable()
        try:
            return self._idle.pop()
        except IndexError:
            return self.connect_reader()

    def give_back(self, connection: Connection) -> None:
        """Keep a reader for the next caller."""
        if len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        # After, not before: a thread that closes the store now would not see it.
        if self.closed:
            self._close_idle()

    def read(self, query: Read[T]) -> T:
        """Run a read in one snapshot and return its value."""
        connection = self.checkout()
        try:
            return read_on(connection, query, self.damage)
        finally:
            self.give_back(connection)

    # -- writing -------------------------------------------------------------

    def unit(self) -> Unit:
        """Return an empty unit."""
        return Unit(self.source, self.locate)

    def job(self, unit: Unit, durability: str | None = None, **more: Any) -> Job:
        """Return the job that commits a unit."""
        self.check_usable()
        if self.read_only:
            raise ReadOnlyError("the store was opened read-only")
        if not isinstance(unit, Unit):
            raise InvalidInputError(
                f"what is committed is a unit, not {abridged(unit)}"
            )
        if durability is not None:
            _check_level(durability)
        level = durability or self.durability
        return Job(unit, level, self.busy_timeout, self.base, **more)

    def commit(self, unit: Unit, durability: str | None = None) -> None:
        """Commit a unit in this thread; an empty one is nothing."""
        job = self.job(unit, durability)
        if not unit.effects:
            return
        self.facts.complete(unit)
        try:
            self.writer.run(job)
        finally:
            # Also after an interrupt: the unit may be on disk.
            self.committed(unit)
        self.service.touch()
        if self.facts.is_due(unit):
            self.refresh_project()

    def committed(self, unit: Unit) -> None:
        """Do what follows a commit, if *unit* was committed."""
        if unit.committed and any(
            isinstance(effect, Delete) for effect in unit.effects
        ):
            self.reap_soon()

    def reap_soon(self, seconds: float = REAP_AFTER) -> None:
        """Remove the rows of deleted sessions in the background, in small transactions."""
        self.service.call_later(seconds, self._reap_step)

    def _reap_step(self) -> None:
        if self.closed:
            return
        unit, step = self.unit(), Reap()
        unit.add(step)
        self.writer.run(self.job(unit, "normal"))
        if step.more:
            self.reap_soon(0.0)

    def subscribe(
        self, callback: Callback, deliver: Deliver | None = None
    ) -> Callable[[], None]:
        """Call *callback* after every commit of this process; return what ends that.

        *deliver* runs it where its owner wants it; the default is the notifier thread.
        Raises `BusyError` if that cannot be started.
        """
        self.check_usable()
        if deliver is None:
            self._notifier.check()
            deliver = self._notifier.deliver
        run, subscription = deliver, Subscription(callback)

        def sink(serial: int, changes: list[Change]) -> None:
            run(subscription, serial, changes)

        self._sinks.append(sink)
        self.writer.sinks.append(sink)

        def end() -> None:
            self._unsubscribe(sink)

        return end

    def _unsubscribe(self, sink: Sink) -> None:
        """End a subscription; from any thread, and again without effect."""
        for sinks in (self._sinks, self.writer.sinks):
            with contextlib.suppress(ValueError):
                sinks.remove(sink)

    # -- places --------------------------------------------------------------

    def locate(self, directory: str | None) -> Place:
        """Return the place of a directory (default: the current one)."""
        here = directory if directory is not None else (self.cwd or ".")
        path = os.fspath(here) if isinstance(here, str | os.PathLike) else None
        if not isinstance(path, str):
            raise InvalidInputError(f"a directory is a path, not {abridged(here)}")
        if codec.readable(path)[1]:
            raise InvalidInputError(
                f"a directory must be valid Unicode, without NUL: {abridged(path)}"
            )
        found = location.project_at(path)
        # The current directory may have a name of any bytes.
        return Place(
            named(found.root), named(found.directory), named(found.checkout), found.kind,
            found.vcs, complete=False,
        )  # fmt: skip

    def refresh_project(self) -> None:
        """Update the known facts of the current worktree's project.

        In a unit of its own, after one of the caller's: neither its order nor its
        outcome depends on git. A refresh that fails is tried again after the next look.
        """
        with contextlib.suppress(SessionDBError):
            place = self.facts.stale(self.locate)
            if place is None:
                return
            unit = self.unit()
            unit.add(RefreshProject(unit.add_place(place)))
            self.facts.complete(unit)
            self.writer.run(self.job(unit, "normal"))

    def project_of(self, project: Any) -> Read[str | None]:
        """Return the project id of a directory; None if this database knows none.

        A folder that moved shows the project that the next write from it adopts.
        """
        place = self.locate(project)
        roots = (place.root, place.checkout, place.directory)
        found = yield from project_at(tuple(stored(root, self.base) for root in roots))
        return found or (yield from self.facts.moved_here(place))

    # -- the end -------------------------------------------------------------

    def close(self) -> None:
        """Close what is open, from any thread, and in a forked child.

        Safe to call twice; the second call finishes what an interrupt cut short. In a
        signal handler during a commit of the same thread it waits for no thread.
        """
        self.closed = True
        if self._released or os.getpid() != self._pid:
            return
        if self._started:
            self._stop(wait=not self.writer.serving_here)
        self._remove_temporary()
        _open.discard(self)
        self._released = True

    def _stop(self, *, wait: bool) -> None:
        self.service.stop(wait=wait)
        for sink in list(self._sinks):
            self._unsubscribe(sink)
        self._notifier.stop(wait=wait)
        self.pause()
        if self.damage is not None:
            self.damage.close()
        release(self)

    def abandon(self) -> None:
        """Have this closed soon: its store was collected.

        A finaliser runs in whatever thread allocates next, on any line, with any lock
        held: it neither joins nor locks. The thread of this store closes it if there is
        one, else the next use of any store.
        """
        if self._released or os.getpid() != self._pid:
            return
        _collected.append(self)
        if self.service.running:
            self.service.put(self.close_now)

    def close_now(self) -> None:
        """Close a store that was collected."""
        try:
            self.close()
        except Exception:
            _log.exception("a store that was collected could not be closed")
        # Last, so that a thread that opens the file waits for its end.
        with contextlib.suppress(ValueError):
            _collected.remove(self)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.remove()

    def pause(self) -> None:
        """Close the idle readers; the next read opens one."""
        for function in self.on_pause:
            function()
        self._close_idle()

    def _close_idle(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()


def _check_level(durability: object) -> None:
    if not isinstance(durability, str) or durability not in DURABILITIES:
        raise InvalidInputError(
            f"durability is full or normal, not {abridged(durability)}"
        )


def close_collected() -> None:
    """Close the stores that were collected; where no lock is held.

    Each of our threads closes its own store only: two that close each other's would
    wait for each other. Any other thread waits for them, so that it finds none open.
    """
    for core in list(_collected):
        if core.service.running and in_worker():
            continue
        core.close_now()


def _close_all() -> None:
    for core in list(_open):
        core.close()


def _before_fork() -> None:
    for core in list(_open):
        core.pause()


atexit.register(_close_all)
os.register_at_fork(before=_before_fork, after_in_child=_collected.clear)
