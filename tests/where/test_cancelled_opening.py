"""A cancelled or failed opening of a store leaves nothing open."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from sessiondb import ALL, AsyncStore, CorruptionError, Store
from sessiondb.database import lifetime
from sessiondb.database.core import Core
from sessiondb.engine.default import target_at
from sessiondb.engine.sqlite.files import creation_lock
from sessiondb.writer import registry

pytestmark = pytest.mark.slow

#: When an opening is cancelled: after turns of the loop, or a share of the time that it takes.
MOMENTS = [
    *(("turns", n) for n in range(4)),
    *(("share", n / 10) for n in range(1, 12)),
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        store.create_session(title="mine")
    return path


def left_open(path: Path) -> list[object]:
    """Return the threads, writers and connections of the file that are still open."""
    own = [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("sessiondb")
    ]
    writers = [w for w in registry._writers.values() if w.connection.path == path]
    return [*own, *writers, *(c for c in lifetime.OPEN if c.path == path)]


async def opened(path: Path) -> None:
    """Open a store and close it, the latter even if the caller is cancelled."""
    store = await AsyncStore.open(path)
    store._core.close()


async def in_a_block(path: Path) -> None:
    """The same in a block."""
    async with AsyncStore.open(path) as store:
        store._core.close()


async def cancelled(work: Callable[[Any], Any], path: Any) -> AsyncGenerator[bool]:
    """Cancel *work* at each of the moments; yield whether it ended so."""
    began = time.monotonic()
    await work(path)
    seconds = time.monotonic() - began
    for unit, amount in MOMENTS:
        task = asyncio.ensure_future(work(path))
        for _ in range(int(amount) if unit == "turns" else 0):
            await asyncio.sleep(0)
        if unit == "share":
            await asyncio.sleep(amount * seconds)
        task.cancel()
        await asyncio.wait([task])
        yield task.cancelled()


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("work", [opened, in_a_block])
async def test_a_file_can_be_replaced_and_opened_at_once_after_a_cancelled_opening(
    kind: str, work: Callable[[Path], Any], database: Path, tmp_path: Path
) -> None:
    times = 0
    shutil.copy(database, tmp_path / "master.db")
    async for ended in cancelled(work, database):
        times += ended
        shutil.copy(tmp_path / "master.db", tmp_path / "next.db")
        os.replace(tmp_path / "next.db", database)
        if kind == "async":
            await opened(database)
        else:
            Store.open(database).close()
    assert times > 4
    await nothing_is_left(database)


async def nothing_is_left(path: Path) -> None:
    ends = time.monotonic() + 5
    while left_open(path):
        assert time.monotonic() < ends, left_open(path)
        await asyncio.sleep(0.005)


async def test_a_cancelled_opening_of_a_new_file_leaves_nothing_open(
    tmp_path: Path,
) -> None:
    made = (tmp_path / f"{number}.db" for number in count())

    async def fresh(_: Path) -> None:
        await opened(next(made))

    async for _ in cancelled(fresh, tmp_path):
        for path in tmp_path.glob("*.db"):
            await nothing_is_left(path)
    for path in tmp_path.glob("*.db"):
        Store.open(path).close()


async def test_a_cancelled_opening_of_a_database_in_memory_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async for _ in cancelled(opened, ":memory:"):
        pass
    ends = time.monotonic() + 5
    while list(tmp_path.iterdir()):
        assert time.monotonic() < ends
        await asyncio.sleep(0.005)


async def test_a_timeout_ends_an_opening_that_waits_for_another_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    with creation_lock(path, 1):
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(AsyncStore.open(path, busy_timeout=3), 0.05)
        assert time.monotonic() - began < 1.5
    await nothing_is_left(path)


def test_a_loop_that_ends_while_a_store_is_being_opened_leaves_nothing_open(
    database: Path,
) -> None:
    async def leave(turns: int, seconds: float) -> None:
        task = asyncio.ensure_future(opened(database))
        for _ in range(turns):
            await asyncio.sleep(0)
            # The thread may end its step within a turn, which decides where the task is left.
            time.sleep(seconds)
        assert not task.done()

    def leave_with_closed_loop(turns: int, seconds: float) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave(turns, seconds))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    for turns, seconds in product(range(3), (0, 0.05)):
        asyncio.run(leave(turns, seconds))
        leave_with_closed_loop(turns, seconds)
    # A task whose loop has ended is part of a cycle: its thread ends when it is collected,
    # which is after the step that the thread is in, because the thread refers to it until then.
    ends = time.monotonic() + 5
    while left_open(database):
        assert time.monotonic() < ends, left_open(database)
        gc.collect()
        time.sleep(0.005)


def damage(path: Path) -> None:
    """Overwrite the schema, behind the header of the file: nothing opens without it."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (size - 100))


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_opening_that_fails_leaves_nothing_open(
    kind: str, database: Path, tmp_path: Path
) -> None:
    shutil.copy(database, tmp_path / "good.db")
    damage(database)
    with pytest.raises(CorruptionError):
        await AsyncStore.open(database) if kind == "async" else Store.open(database)
    await nothing_is_left(database)
    os.replace(tmp_path / "good.db", database)
    with Store.open(database) as again:
        assert len(again.sessions(project=ALL, empty=True).items) == 1


@pytest.mark.parametrize("is_acquired", [False, True])
def test_an_opening_that_was_interrupted_before_it_started_harms_no_other(
    is_acquired: bool, database: Path
) -> None:
    core = Core(database)
    if is_acquired:
        core.writer = registry.acquire(target_at(database), core)
    # What the collector does with a store whose constructor was interrupted here.
    core.abandon()
    assert core in lifetime.COLLECTED
    with Store.open(database) as store:
        assert len(store.sessions(project=ALL, empty=True).items) == 1
    assert core not in lifetime.COLLECTED
    assert left_open(database) == []
