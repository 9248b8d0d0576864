"""One program under torture: a main thread, two threads and an event loop on one file.

Usage: ``python -m torturing.program DATABASE SEED [faults]``. It works until its standard
input is closed or, with ``faults``, until another file is in the place of its own. Each line of its output is a JSON object: what is about to be done where that
matters, what was acknowledged, and any error that the program itself can detect.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from sessiondb import (
    AsyncStore,
    BusyError,
    DatabaseReplacedError,
    LeaseHeldError,
    StorageError,
    Store,
    assistant,
    tool,
    user,
)
from sessiondb.effects import Unit
from torturing.faults import obey_permissions

#: Seconds after which a wait is considered a hang.
PATIENCE = 60.0


def log(kind: str, **facts: Any) -> None:
    """Print a line in one write, which SIGKILL cannot cut."""
    os.write(1, json.dumps({"kind": kind, **facts}).encode() + b"\n")


def unit_of(store: Store | AsyncStore) -> Unit:
    """Return an empty unit that is committed, and again, by hand."""
    return store._core.unit()  # noqa: SLF001  a block commits by itself, once


class Actor:
    """One line of work in sessions of its own."""

    def __init__(self, name: str, seed: int) -> None:
        self.random = random.Random(f"{seed} {name}")  # noqa: S311  to be repeated
        self.name = f"{os.getpid()}-{name}"
        self._numbers = itertools.count()
        self.session = ""

    def fresh(self) -> str:
        """Return a new id for a session or a message."""
        return f"{self.name}-{next(self._numbers)}"

    def filled(self, unit: Unit) -> list[tuple[Any, str]]:
        """Queue up to four messages; return their handles and texts."""
        queued = []
        for _ in range(self.random.randint(1, 4)):
            text = self.fresh() + "x" * self.random.choice((0, 50, 3_000))
            call = tool("t", {"n": 1}, output=text[:200])
            draft = self.random.choice((user(text), assistant(text, call)))
            queued.append((unit.append(self.session, draft), text))
        return queued

    def wrote(self, queued: list[tuple[Any, str]]) -> None:
        """Log acknowledged messages."""
        for handle, text in queued:
            if handle.seq is None:
                log("wrong", what=f"{handle.id} was acknowledged without a seq")
            log(
                "message", session=self.session, id=handle.id, seq=handle.seq, text=text
            )


class SyncActor(Actor):
    """Works through a `Store`; an interrupted unit is committed again."""

    def __init__(self, name: str, seed: int, store: Store) -> None:
        super().__init__(name, seed)
        self._store = store
        self._acts: list[Callable[[], None]] = [self.append] * 12
        self._acts += [
            self.begin,
            self.fork,
            self.delete,
            self.stream,
            self.drop,
            self.hold,
        ]

    def act(self) -> None:
        """Take one random step."""
        if self.session:
            self.random.choice(self._acts)()
        else:
            self.begin()

    def _commit(self, unit: Unit) -> None:
        acknowledged = False
        while not acknowledged:
            try:
                self._store.commit(unit)
                acknowledged = True
            except KeyboardInterrupt:
                log("interrupted", committed=unit.committed)
            except BusyError as error:
                log("busy", error=str(error))

    def begin(self) -> None:
        """Go to a new session."""
        unit = unit_of(self._store)
        session = unit.create_session(id=self.fresh(), directory="/tmp").id  # noqa: S108
        self._commit(unit)
        self.session = session
        log("session", session=session)

    def append(self) -> None:
        """Write a few messages in one unit."""
        unit = unit_of(self._store)
        queued = self.filled(unit)
        self._commit(unit)
        self.wrote(queued)

    def fork(self) -> None:
        """Fork the session and stay in the original."""
        unit = unit_of(self._store)
        fork = unit.fork(self.session, id=self.fresh()).id
        self._commit(unit)
        log("session", session=fork)

    def delete(self) -> None:
        """Delete the session with everything below it."""
        session, self.session = self.session, ""
        log("deleting", session=session)
        unit = unit_of(self._store)
        unit.delete(session, keep_forks=True)
        with suppress(LookupError):  # done before an interrupt
            self._commit(unit)
        log("deleted", session=session)

    def stream(self) -> None:
        """Stream an answer; log what was flushed."""
        with suppress(LeaseHeldError), self._store.stream(self.session, ttl=1) as out:
            said = out.text()
            for _ in range(self.random.randint(1, 5)):
                said.add(self.fresh() + " ")
            out.flush()
            log("flushed", session=self.session, id=out.message.id, text=said.content)
            said.add("and more")

    def hold(self) -> None:
        """Hold the lease for one append."""
        with suppress(LeaseHeldError), self._store.lease(self.session, ttl=1):
            self.append()

    def drop(self) -> None:
        """Drop a store with an active lease and leave both to the collector."""
        left: Any = Store.open(self._store.path, durability="normal")
        left.append(left.create_session(id=self.fresh(), directory="/tmp"), user("x"))  # noqa: S108
        left.itself = left
        del left
        if self.random.random() < 0.3:
            gc.collect()


class AsyncActor(Actor):
    """Works through an `AsyncStore`, in tasks that are cancelled now and then."""

    async def act(self, store: AsyncStore, ended: threading.Event) -> None:
        """Append in several tasks, some of which are cancelled."""
        if not self.session or self.random.random() < 0.05:
            made = await store.create_session(id=self.fresh(), directory="/tmp")  # noqa: S108
            self.session = made.id
            log("session", session=self.session)
        tasks = [asyncio.ensure_future(self._append(store)) for _ in range(8)]
        reading = asyncio.ensure_future(store.messages(self.session, last=3))
        await asyncio.sleep(self.random.uniform(0, 0.004))
        for task in (*tasks, reading):
            if self.random.random() < 0.3:
                task.cancel()
        _, waiting = await asyncio.wait((*tasks, reading), timeout=PATIENCE)
        if waiting:
            log("wrong", what="a task waits for ever")
        for task in tasks:
            error = None if task.cancelled() else task.exception()
            if error is not None and not is_expected(error, ended):
                log("wrong", what=repr(error))
        # Also one that was cancelled too late: nothing else would retrieve its error.
        if not reading.cancelled() and (error := reading.exception()) is not None:
            raise error

    async def _append(self, store: AsyncStore) -> None:
        unit = unit_of(store)
        queued = self.filled(unit)
        await store.commit(unit)
        self.wrote(queued)


class Subscriber:
    """Checks that changes come in order, each once."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, changes: list[Any]) -> None:
        """Take the changes of a commit."""
        for change in changes:
            if change.cursor <= self._last:
                log("wrong", what=f"change {change.cursor} came after {self._last}")
            self._last = change.cursor


#: Whether the machine may fail, which is an error that this program can expect.
FAULTS = "faults" in sys.argv[3:]


def is_expected(error: BaseException, ended: threading.Event) -> bool:
    """Log an error that a fault causes; one that another file is there ends the program."""
    if isinstance(error, BusyError):
        log("busy", error=str(error))
        return True
    if not FAULTS:
        return False
    if isinstance(error, DatabaseReplacedError):
        log("replaced")
        ended.set()
        return True
    if isinstance(error, StorageError):
        log("fault", error=str(error))
        return True
    return False


def work(actor: SyncActor, ended: threading.Event) -> None:
    """Act until the end."""
    while not ended.is_set():
        try:
            actor.act()
        except KeyboardInterrupt:
            log("interrupted")
        except Exception as error:  # noqa: BLE001  it is what this program is for
            if is_expected(error, ended):
                continue
            shown = "".join(traceback.format_exception(error))
            log("wrong", what=f"{actor.name}: {error!r}\n{shown}")


def interrupt(_number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt` while the main thread is in `work`, and nowhere else.

    Between two calls of `work` nothing would catch it, and this program would end.
    """
    while frame is not None:
        if frame.f_code is work.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


async def work_in_a_loop(path: Path, seed: int, ended: threading.Event) -> None:
    """Act in a loop until the end."""
    numbers = itertools.count()
    while not ended.is_set():
        actor = AsyncActor(f"loop{next(numbers)}", seed)
        try:
            async with AsyncStore.open(
                path, durability="normal", busy_timeout=30
            ) as store:
                store.on_commit(Subscriber())
                while not ended.is_set():
                    await actor.act(store, ended)
        except Exception as error:  # noqa: BLE001  as above
            if not is_expected(error, ended):
                log("wrong", what=f"the loop: {error!r}")


def opened(path: Path, ended: threading.Event) -> Store:
    """Open the store, when the machine permits it."""
    while True:
        try:
            return Store.open(path, durability="normal", busy_timeout=30)
        except StorageError as error:
            if not is_expected(error, ended):
                raise
            time.sleep(0.01)


def main() -> None:
    """Work until standard input is closed."""
    # A shell that starts this in the background ignores SIGINT for it.
    signal.signal(signal.SIGINT, interrupt)
    path, seed = Path(sys.argv[1]), int(sys.argv[2])
    if FAULTS:
        obey_permissions()
    ended = threading.Event()
    store = opened(path, ended)
    store.on_commit(Subscriber())
    threads = [
        threading.Thread(
            target=work, args=(SyncActor(f"thread{n}", seed, store), ended)
        )
        for n in range(2)
    ]
    looping = work_in_a_loop(path, seed, ended)
    threads.append(threading.Thread(target=lambda: asyncio.run(looping)))
    for thread in threads:
        thread.start()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    log("ready")
    actor = SyncActor("main", seed, store)
    while not ended.is_set():
        with suppress(KeyboardInterrupt):
            work(actor, ended)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for thread in threads:
        thread.join(PATIENCE)
        if thread.is_alive():
            log("wrong", what="a thread waits for ever")
            faulthandler.dump_traceback()
            os._exit(1)
    store.close()
    log("closed")


if __name__ == "__main__":
    main()
