"""A store is used from any thread, an async store from any event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sessiondb import ALL, AsyncStore, Store, user
from sessiondb.errors import StoreClosedError
from sessiondb.model.handles import SessionHandle

THREADS, EACH = 8, 15


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.mark.slow
def test_one_store_is_written_and_read_from_many_threads(path: Path) -> None:
    with Store.open(path, durability="normal") as store:
        shared = store.create_session(title="shared")

        def work(name: int) -> list[str]:
            own = store.create_session(title=f"thread {name}")
            for number in range(EACH):
                with store.effects() as unit:
                    unit.append(own, user(f"{name} {number}"))
                    unit.append(shared, user(f"{name} {number}"))
                assert store.messages(own, last=1)[0].text == f"{name} {number}"
                assert store.search(str(number), all_hits=True).items
            return [str(message.text) for message in store.messages(own)]

        with ThreadPoolExecutor(THREADS) as pool:
            written = list(pool.map(work, range(THREADS)))
        assert written == [[f"{t} {n}" for n in range(EACH)] for t in range(THREADS)]
        seen = [str(message.text) for message in store.messages(shared)]
        assert sorted(seen) == sorted(text for texts in written for text in texts)
        for name in range(THREADS):
            of_one = [text for text in seen if text.startswith(f"{name} ")]
            assert of_one == written[name], (
                "what a thread wrote stands in the order it wrote it"
            )


def test_a_store_is_opened_in_one_thread_and_closed_in_another(path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        store = pool.submit(Store.open, path).result()
    store.append(store.create_session(), user("Hello"))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(store.close).result()
    with pytest.raises(StoreClosedError):
        store.create_session()
    store.close()


def test_threads_that_work_while_a_store_closes_get_an_error_and_no_hang(
    path: Path,
) -> None:
    store = Store.open(path, durability="normal")
    session = store.create_session()

    def work(_: int) -> int:
        acknowledged = 0
        try:
            while True:
                store.append(session, user("words"))
                acknowledged += 1
                if acknowledged == EACH:
                    store.close()
                store.messages(session, last=1)
        except StoreClosedError:
            return acknowledged

    with ThreadPoolExecutor(4) as pool:
        acknowledged = sum(pool.map(work, range(4)))
    with Store.open(path) as again:
        assert len(again.messages(session.id)) >= acknowledged


async def _use(store: AsyncStore, session: SessionHandle, name: str) -> None:
    async def one(number: int) -> None:
        await store.append(session, user(f"{name} {number}"))
        assert await store.messages(session, last=1)

    await asyncio.gather(*(one(number) for number in range(EACH)))
    async with store.stream(session) as out:
        out.text().add(f"{name} streamed")


def test_two_loops_in_two_threads_share_one_async_store(path: Path) -> None:
    store = asyncio.run(_opened(path))
    session = SessionHandle(asyncio.run(_only_session(store)))

    def work(name: str) -> None:
        asyncio.run(_use(store, session, name), debug=True)

    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(work, name) for name in ("first", "second")]
        failed = [result.exception() for result in results]
    # A lease is for one stream at a time: one of the two may have found it taken.
    assert [type(error).__name__ for error in failed if error] in (
        [],
        ["LeaseHeldError"],
    )
    with Store.open(path) as reader:
        texts = {message.text for message in reader.messages(session.id)}
    assert {
        f"{name} {number}" for name in ("first", "second") for number in range(EACH)
    } <= texts
    asyncio.run(store.close())


async def _opened(path: Path) -> AsyncStore:
    return await AsyncStore.open(path, durability="normal")


async def _only_session(store: AsyncStore) -> str:
    return (await store.create_session()).id


def test_a_store_keeps_working_in_the_next_loop_after_the_first_is_closed(
    path: Path,
) -> None:
    store = asyncio.run(_opened(path))
    session = SessionHandle(asyncio.run(_only_session(store)))
    for name in ("first", "second", "third"):
        asyncio.run(_use(store, session, name))
    asyncio.run(store.close())
    with Store.open(path) as reader:
        assert len(reader.messages(session.id)) == 3 * (EACH + 1)


def test_a_loop_that_ends_in_the_middle_costs_the_other_nothing(path: Path) -> None:
    store = asyncio.run(_opened(path))
    session = SessionHandle(asyncio.run(_only_session(store)))

    async def abandon() -> None:
        writes = [
            store.append(session, user(f"abandoned {number}")) for number in range(10)
        ]
        reads = [store.messages(session) for _ in range(10)]
        tasks = [asyncio.ensure_future(call) for call in (*writes, *reads)]
        await asyncio.sleep(0)
        assert not all(task.done() for task in tasks)

    for _ in range(8):
        asyncio.run(abandon())  # which cancels what still runs
    asyncio.run(_use(store, session, "after"))
    with Store.open(path) as reader:
        assert "after 0" in [message.text for message in reader.messages(session.id)]
    asyncio.run(store.close())


def test_both_facades_on_one_file_share_the_writer(path: Path) -> None:
    async def beside(sync: Store) -> None:
        async with AsyncStore.open(path, durability="normal") as store:
            session = await store.create_session()
            for number in range(EACH):
                await store.append(session, user(f"async {number}"))
                await asyncio.to_thread(sync.append, session, user(f"sync {number}"))
            assert (
                len(sync.messages(session))
                == len(await store.messages(session))
                == 2 * EACH
            )

    with Store.open(path, durability="normal") as sync:
        asyncio.run(beside(sync))
        sync.create_session(title="still open")
        assert len(sync.sessions(project=ALL, empty=True).items) == 2
