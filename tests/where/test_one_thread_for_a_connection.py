"""A connection has one thread: cancelling a task never closes a connection in use."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import run, said

from sessiondb import ALL, AsyncStore, BusyError, user
from sessiondb.database.executor import SerialExecutor
from sessiondb.engine.sql import ComposedStatement
from sessiondb.model import Problem, SourceSession
from sessiondb.repository import Read

pytestmark = pytest.mark.slow

# In a child, because the fault would end the interpreter (a negative return code).
_CANCEL = """
    import asyncio, logging, random, sys
    from sessiondb import BEGINNING, AsyncStore, user
    # -X dev makes loops report each step that a busy machine slowed down.
    logging.getLogger("asyncio").setLevel(logging.ERROR)

    async def follow(store, poll):
        async for _ in store.changes(since=BEGINNING, poll=poll):
            pass

    async def work(store, session):
        while True:
            await store.append(session, user("x"))
            await asyncio.gather(store.messages(session, last=1), store.tree(session))

    async def ended(tasks):
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def main(path, poll, rounds):
        asyncio.get_running_loop().slow_callback_duration = 60  # the machine may be busy
        moments = random.Random(7)
        async with AsyncStore.open(path, durability="normal") as store:
            session = await store.create_session(directory="/tmp")
            workers = [asyncio.ensure_future(work(store, session)) for _ in range(2)]
            for _ in range(rounds):
                tasks = [asyncio.ensure_future(follow(store, poll)) for _ in range(5)]
                for _ in range(moments.randrange(6)):
                    await asyncio.sleep(0)
                await asyncio.sleep(moments.random() * 0.003)
                await ended(tasks)
            await ended(workers)
            print(len(await store.messages(session)) > 0)

    asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
"""


@pytest.mark.parametrize("poll", [0, 0.001])
def test_hundreds_of_cancelled_followers_end_no_interpreter(
    poll: float, tmp_path: Path
) -> None:
    done = run(_CANCEL, tmp_path / "s.db", poll, 60, flags=("-X", "dev"))
    assert (done.returncode, done.stderr) == (0, "")
    assert said(done) == "True"


async def test_sqlite_itself_refuses_another_thread_the_readers_of_an_async_store(
    tmp_path: Path,
) -> None:
    async with AsyncStore.open(tmp_path / "s.db", durability="normal") as store:
        await asyncio.gather(*(store.sessions(project=ALL) for _ in range(8)))
        connections = [c for one in store._readers._idle for c in one._connections]
        assert connections
        for connection in connections:
            for use in (connection.close, lambda c=connection: c.execute("SELECT 1")):
                with pytest.raises(sqlite3.ProgrammingError, match="same thread"):
                    use()


async def test_an_import_reads_from_its_first_record_to_its_end_in_one_thread(
    tmp_path: Path,
) -> None:
    threads: list[threading.Thread] = []

    def read() -> Iterator[SourceSession | Problem]:
        try:
            for number in range(3):
                threads.append(threading.current_thread())
                yield Problem("a file", f"line {number}")
        finally:
            threads.append(threading.current_thread())

    async with AsyncStore.open(tmp_path / "s.db") as store:
        assert len([problem async for problem in store.ingest(read())]) == 3
        results = store.ingest(read())
        await anext(results)
        await results.aclose()
        while len(threads) < 6:
            await asyncio.sleep(0.005)
    first, second = set(threads[:4]), set(threads[4:])
    assert len(first) == len(second) == 1
    assert threading.current_thread() not in first | second


async def test_an_executor_does_in_order_what_it_was_asked_and_ends_with_the_last_of_it() -> (
    None
):
    done: list[object] = []
    executor = SerialExecutor("tests", last=lambda: done.append("last"))
    calls = [executor.call(lambda n=n: done.append(n)) for n in range(3)]
    calls[1].cancel()
    executor.end()
    await asyncio.gather(calls[0], calls[2])
    await asyncio.to_thread(executor.join)
    assert done == [0, 1, 2, "last"]


async def test_an_executor_without_references_ends() -> None:
    ended = threading.Event()
    executor = SerialExecutor("tests", last=ended.set)
    assert await executor.call(lambda: 3) == 3
    del executor
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_thread_that_cannot_start_is_a_typed_error_and_the_store_still_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store = await AsyncStore.open(tmp_path / "s.db", durability="normal")
    session = await store.create_session()
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        for _ in range(8):
            with pytest.raises(BusyError, match="can't start new thread"):
                await store.messages(session)
    await store.append(session, user("later"))
    assert len(await store.messages(session)) == 1
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        await store.close()
    assert store._core.closed


_SLOW = ComposedStatement(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) SELECT count(*) FROM n"
)  # fmt: skip


async def test_closing_a_store_leaves_no_reader_of_a_cancelled_caller(
    tmp_path: Path,
) -> None:
    began = threading.Event()

    def slow() -> Read[int]:
        began.set()
        rows = yield _SLOW, {}
        return int(rows[0][0])

    store = await AsyncStore.open(tmp_path / "s.db", durability="normal")
    await store.create_session()
    task = asyncio.ensure_future(store._readers.read(slow()))
    while not began.is_set():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await store.close()
    assert not (tmp_path / "s.db-wal").exists()
    assert not [t for t in threading.enumerate() if t.name == "sessiondb-reader"]
