"""An interrupt may fall on any line of a commit. The lines are found by running it."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from backends import Backend
from lines import COMMIT_PATH, STREAM_PATH, Interrupter, interrupt

from sessiondb import (
    AsyncStore,
    Change,
    ConflictError,
    LeaseHeldError,
    NotFoundError,
    Store,
    assistant,
    tool,
)
from sessiondb.effects import Unit
from sessiondb.writer import service
from sessiondb.writer.role import Writer

#: Seconds after which a thread that is still waiting waits forever.
PATIENCE = 15.0
UNENDED = """
SELECT 1 FROM message WHERE session_id = ? AND time_completed IS NULL
UNION ALL SELECT 1 FROM lease WHERE session_id = ? AND time_expires > ?
"""
SESSIONS = ("main", "thread", "loop", "bad")


def number(change: Change) -> int:
    """The number that SQLite's cursors end with."""
    return int(change.cursor[-16:], 16)


class Notified:
    """The revisions that a subscriber was notified of, by session."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._checked = self._last = 0
        self._revisions: dict[str, int] = {}
        self._more = threading.Condition()

    def __call__(self, changes: list[Change]) -> None:
        with self._more:
            self.changes += changes
            self._more.notify_all()

    def check(self, revisions: dict[str, int], last: int) -> None:
        """Wait for the last change; assert that each was reported once, in order."""
        with self._more:
            seen = self._more.wait_for(
                lambda: self.changes and number(self.changes[-1]) >= last, PATIENCE
            )
        assert seen, "a subscriber was not called"
        while self._checked < len(self.changes):
            change = self.changes[self._checked]
            assert number(change) > self._last
            assert change.revision == self._revisions.get(change.session_id, 0) + 1
            self._last = number(change)
            self._revisions[change.session_id] = change.revision
            self._checked += 1
        assert self._revisions == revisions


class Ground:
    """One file, open in a store of each façade: a thread, an event loop, and this thread."""

    def __init__(self, path: Path, threads: ThreadPoolExecutor) -> None:
        self.path, self.threads = path, threads
        self.loop = asyncio.new_event_loop()
        self._runner = threading.Thread(target=self.loop.run_forever)
        self._runner.start()
        self._other = sqlite3.connect(path, isolation_level=None)
        self.store = Store.open(path, durability="normal")
        self.asynchronous = self.in_loop(_opened(path)).result(PATIENCE)
        self.notified, self.notified_in_loop = Notified(), Notified()
        self.store.on_commit(self.notified)
        self.in_loop(_subscribed(self.asynchronous, self.notified_in_loop)).result(
            PATIENCE
        )
        for session in SESSIONS:
            self.store.create_session(id=session, directory="/tmp")

    def rows(self, sql: str, *params: Any) -> list[Any]:
        """Return the rows that another connection sees."""
        return self._other.execute(sql, params).fetchall()

    def in_loop(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        self.in_loop(self.asynchronous.close()).result(PATIENCE)
        self.store.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._runner.join(PATIENCE)
        self.loop.close()
        self._other.close()

    def unit(self, session: str) -> Unit:
        unit = self.store._core.unit()
        unit.append(session, assistant("Hello", tool("t", {"a": 1}, output="x")))
        return unit

    def at_rest(self) -> None:
        """Wait until the writer has nothing left, and every subscriber was called."""
        writer = self.store._core.writer
        deadline = time.monotonic() + PATIENCE
        while writer._queue or writer._batch or writer._serving:
            assert time.monotonic() < deadline, "a job was left behind"
            time.sleep(0.0005)
        revisions = dict(self.rows("SELECT id, revision FROM session"))
        ((last,),) = self.rows("SELECT max(change) FROM session")
        self.notified.check(revisions, last)
        self.notified_in_loop.check(revisions, last)

    def on_disk(self, unit: Unit) -> bool:
        """Return whether a unit of `unit` is in the file, once."""
        sql = "SELECT count(*) FROM message WHERE id = ?"
        ((count,),) = self.rows(sql, handle(unit).id)
        assert count <= 1
        return bool(count)


async def _opened(path: Path) -> AsyncStore:
    return await AsyncStore.open(path, durability="normal")


async def _subscribed(store: AsyncStore, notified: Notified) -> None:
    store.on_commit(notified)


def handle(unit: Unit) -> Any:
    return next(e.handle for e in unit.effects if hasattr(e, "handle"))


@dataclass
class Breaking:
    """An effect whose COMMIT fails: it leaves a row without its parent, checked at the end."""

    verb = "breaking"

    def apply(self, tx: Any) -> None:
        tx.connection.execute("PRAGMA defer_foreign_keys=ON")
        tx.connection.execute(
            "INSERT INTO label (session_id, seq, label) VALUES ('no', 1, 'x')"
        )


@pytest.fixture
def ground(backend: Backend) -> Generator[Ground]:
    path = backend.fresh()
    faulthandler.dump_traceback_later(10 * PATIENCE, exit=True)
    with ThreadPoolExecutor(4) as threads:
        made = Ground(path, threads)
        try:
            yield made
        finally:
            made.close()
            faulthandler.cancel_dump_traceback_later()
    backend.assert_intact(path)


def others(
    ground: Ground, bad: Unit | None
) -> tuple[list[Unit], Callable[[], list[Future[Any]]]]:
    """Units of other callers, queued behind this thread's own."""
    units = [ground.unit("thread"), ground.unit("loop")]

    def begin() -> list[Future[Any]]:
        results = [
            ground.threads.submit(ground.store.commit, units[0]),
            ground.in_loop(ground.asynchronous.commit(units[1])),
        ]
        if bad is not None:
            results.append(ground.threads.submit(ground.store.commit, bad))
        return results

    return units, begin


class Meeting:
    """Lets the others queue when this thread is about to take its batch."""

    def __init__(self, ground: Ground, bad: Unit | None) -> None:
        self._ground = ground
        self.units, self._begin = others(ground, bad)
        self._wanted = {id(unit) for unit in (*self.units, bad) if unit is not None}
        self.results: list[Future[Any]] = []

    def begin(self) -> None:
        if not self.results:
            self.results = self._begin()

    def gather(self) -> None:
        self.begin()
        queue = self._ground.store._core.writer._queue
        for _ in range(10_000):
            if self._wanted <= {id(job.unit) for job in list(queue)}:
                return
            threading.Event().wait(0.0005)
        raise AssertionError(f"the others did not queue: {self.results}")


def interrupted_at(
    ground: Ground,
    at: int,
    error: BaseException,
    bad: Unit | None,
    only: tuple[str, ...],
) -> bool:
    """Commit with an interrupt on line *at*; return whether there was one."""
    mine, meeting = ground.unit("main"), Meeting(ground, bad)

    def act() -> None:
        raise error

    with Interrupter(
        at, act, {Writer._drain_queue.__name__: meeting.gather}, only
    ) as interrupter:
        try:
            ground.store.commit(mine)
        except type(error):
            assert interrupter.acted
        else:
            # Only an Exception, raised by a unit, may be recovered by a second attempt.
            assert not interrupter.acted or isinstance(error, Exception)
            assert mine.committed
    try:
        _check(ground, mine, meeting, bad)
    except BaseException as failed:
        failed.add_note(f"line {at}: {interrupter.place}")
        raise
    return interrupter.acted


def _check(ground: Ground, mine: Unit, meeting: Meeting, bad: Unit | None) -> None:
    # Another thread may have taken the unit over, and be between its COMMIT and the rest.
    deadline = time.monotonic() + PATIENCE
    while not (handle(mine).seq is not None) == mine.committed == ground.on_disk(mine):
        assert time.monotonic() < deadline, "the outcome is not known"
        time.sleep(0.0005)

    meeting.begin()
    for unit, result in zip(meeting.units, meeting.results, strict=False):
        result.result(PATIENCE)
        assert ground.on_disk(unit)
        assert handle(unit).seq is not None
    if bad is not None:
        with pytest.raises((NotFoundError, ConflictError)):
            meeting.results[2].result(PATIENCE)
        assert not bad.committed

    ground.store.commit(mine)
    assert ground.on_disk(mine)
    assert handle(mine).seq is not None
    ground.at_rest()


def every_line(interrupted: Callable[[int], bool], step: int = 1) -> int:
    """Interrupt at each line in turn until the last one; return its number."""
    at, missed = 1, 0
    # Several times: if another thread was quicker, a commit has fewer lines.
    while missed < 5:
        missed = 0 if interrupted(at) else missed + 1
        at += 0 if missed else step
    return at


@pytest.mark.slow
@pytest.mark.parametrize(("error", "step"), [(KeyboardInterrupt, 1), (MemoryError, 3)])
def test_an_interrupt_on_any_line_of_a_commit_for_others_loses_and_hangs_nothing(
    ground: Ground, error: type[BaseException], step: int
) -> None:
    def interrupted(at: int) -> bool:
        return interrupted_at(ground, at, error(), None, COMMIT_PATH)

    assert every_line(interrupted, step) > 300


@pytest.mark.slow
def test_an_interrupt_on_any_line_that_writes_a_unit_leaves_it_consistent(
    ground: Ground,
) -> None:
    """Every line of the package that a commit runs, thinned out by a stride."""

    def interrupted(at: int) -> bool:
        return interrupted_at(ground, at, SystemExit(), None, ())

    assert every_line(interrupted, 23) > 300


def unknown_session(ground: Ground) -> Unit:
    """A unit that fails when it is applied, so that the batch begins again."""
    return ground.unit("nowhere")


def broken_commit(ground: Ground) -> Unit:
    """A unit whose COMMIT fails, and with it that of every unit in its batch."""
    unit = ground.unit("bad")
    unit.add(Breaking())
    return unit


@pytest.mark.slow
@pytest.mark.parametrize("bad", [unknown_session, broken_commit])
def test_an_interrupt_beside_a_unit_that_fails_does_no_harm_either(
    ground: Ground, bad: Callable[[Ground], Unit]
) -> None:
    only = ("writer/role.py", "writer/job.py")

    def interrupted(at: int) -> bool:
        return interrupted_at(ground, at, KeyboardInterrupt(), bad(ground), only)

    assert every_line(interrupted) > 100


def test_a_signal_that_arrives_during_the_commit_loses_no_notification(
    ground: Ground,
) -> None:
    """SQLite itself reports the statement: no line of Python runs between it and its end."""
    writing = ground.store._core.writer.connection
    send_sigint = ctypes.pythonapi.PyErr_SetInterrupt

    def watch(frame: FrameType, event: str, _: object) -> object:
        if frame.f_code.co_qualname != "Transaction.finish":
            return None
        if event == "return":
            sys.settrace(None)
            assert writing.inner is not None
            writing.inner.set_trace_callback(send_sigint)
        return watch

    for _ in range(20):
        unit = ground.unit("main")
        sys.settrace(watch)
        with pytest.raises(KeyboardInterrupt):
            ground.store.commit(unit)
        writing.inner.set_trace_callback(None)
        assert unit.committed
        ground.at_rest()


def interrupted_in_a_loop(ground: Ground, at: int) -> bool:
    """Interrupt a task's commit in this thread's loop, beside a task that waits for its own."""
    mine, neighbour = ground.unit("main"), ground.unit("thread")
    with closing(asyncio.new_event_loop()) as loop:
        store = loop.run_until_complete(_opened(ground.path))
        waiting = loop.create_task(store.commit(neighbour))
        with Interrupter(at, interrupt, only=COMMIT_PATH) as interrupter:
            try:
                loop.run_until_complete(store.commit(mine))
            except KeyboardInterrupt:
                assert interrupter.acted
            else:
                assert not interrupter.acted, interrupter.place
        try:
            loop.run_until_complete(asyncio.wait_for(_ended(waiting), PATIENCE))
            ground.at_rest()
            for unit in (mine, neighbour):
                assert unit.committed == ground.on_disk(unit)
                assert (handle(unit).seq is not None) == unit.committed
            assert neighbour.committed or waiting.exception() is not None
            loop.run_until_complete(asyncio.wait_for(store.commit(mine), PATIENCE))
            assert ground.on_disk(mine)
            loop.run_until_complete(asyncio.wait_for(store.close(), PATIENCE))
        except BaseException as failed:
            failed.add_note(f"line {at}: {interrupter.place}")
            raise
    return interrupter.acted


async def _ended(task: asyncio.Task[Any]) -> None:
    await asyncio.wait([task])


@pytest.mark.slow
def test_an_interrupt_on_any_line_of_a_loop_leaves_its_other_tasks_their_outcomes(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "IDLE_SECONDS", 0.05)
    assert every_line(lambda at: interrupted_in_a_loop(ground, at)) > 50


def interrupted_stream(ground: Ground, at: int) -> bool:
    """Interrupt a stream anywhere between its opening and its end."""
    session = ground.store.create_session(directory="/tmp").id
    with Interrupter(at, interrupt, only=STREAM_PATH) as interrupter:
        try:
            with ground.store.stream(session, ttl=0.05) as out:
                said, call = out.text(), out.tool("t", call_id="c")
                said.add("Hello")
                call.add("{}")
                out.flush()
                call.settle(output="x")
                said.add(" world")
                out.finish("stop")
        except KeyboardInterrupt:
            assert interrupter.acted
        else:
            assert not interrupter.acted, interrupter.place
    try:
        ground.threads.submit(ground.store.commit, ground.unit("thread")).result(
            PATIENCE
        )
        deadline = time.monotonic() + PATIENCE
        while ground.rows(UNENDED, session, session, time.time() * 1000):
            # A caller interrupted before the end of its stream lets the lease expire.
            assert time.monotonic() < deadline, "the lease is renewed forever"
            with suppress(LeaseHeldError):
                ground.store.recover(session)
            time.sleep(0.01)
        ground.at_rest()
    except BaseException as failed:
        failed.add_note(f"line {at}: {interrupter.place}")
        raise
    return interrupter.acted


@pytest.mark.slow
def test_an_interrupt_on_any_line_of_a_stream_leaves_the_writer_to_others(
    ground: Ground,
) -> None:
    assert every_line(lambda at: interrupted_stream(ground, at)) > 50
