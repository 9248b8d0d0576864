"""`AsyncStore` under trio: the same names, and a cancelled task never cancels a write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from backends import Backend, Place

from sessiondb import (
    ALL,
    AsyncStore,
    Change,
    ConflictError,
    NotFoundError,
    Store,
    StoreClosedError,
    assistant,
    tool,
    user,
)
from sessiondb.maintenance import check


def run(function: Callable[..., Awaitable[Any]], *args: object) -> Any:
    """Run a coroutine function under trio, with a limit."""

    async def limited() -> Any:
        with trio.fail_after(30):
            return await function(*args)

    return trio.run(limited)


def texts(place: Place) -> list[str]:
    with Store.open(place) as store:
        (session,) = store.sessions(project=ALL).items
        assert check(store) == []
        return [message.text for message in store.messages(session)]


@pytest.fixture
def place(backend: Backend) -> Place:
    return backend.place()


def test_a_conversation_is_written_and_read(place: Place) -> None:
    async def converse() -> None:
        async with AsyncStore.open(place, source="tests") as store:
            async with store.effects() as fx:
                session = fx.open_session("t")
                fx.append(session, user("why?"))
                answer = fx.append(
                    session, assistant(tool("read", {}, call_id="c")), open=True
                )
            await store.settle(session, "c", output="because")
            await store.finish(session, answer)
            assert [m.role async for m in store.walk(session)] == ["user", "assistant"]
            assert (await store.search("because")).items
            fork = await store.fork(session)
            assert len(await store.messages(fork)) == 2
            await store.delete(fork)
            assert await store.reap() >= 1
            with pytest.raises(NotFoundError):
                await store.session("nowhere")
            with pytest.raises(ConflictError):
                await store.append(session, user("x"), expect_leaf=7)

    run(converse)
    assert texts(place) == ["why?", ""]


def test_many_tasks_append_at_once(place: Place) -> None:
    async def append_all() -> None:
        async with AsyncStore.open(place) as store, trio.open_nursery() as nursery:
            session = await store.create_session()
            for number in range(64):
                nursery.start_soon(store.append, session, user(str(number)))

    run(append_all)
    assert sorted(texts(place), key=int) == [str(number) for number in range(64)]


def test_a_task_that_is_cancelled_in_a_write_does_not_cancel_it(place: Place) -> None:
    async def cancel_each() -> None:
        async with AsyncStore.open(place) as store:
            session = await store.create_session()
            for number in range(20):
                with trio.CancelScope() as scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(store.append, session, user(str(number)))
                        for _ in range(number % 5):
                            await trio.lowlevel.checkpoint()
                        scope.cancel()
            await store.append(session, user("20"))

    run(cancel_each)
    written = [int(text) for text in texts(place)]
    # One that was cancelled before it was queued was not written; none was written twice.
    assert written == sorted(set(written))
    assert written[-1] == 20


def test_a_stream_that_is_cancelled_keeps_its_text_and_gives_its_lease_back(
    place: Place,
) -> None:
    async def stream() -> None:
        async with AsyncStore.open(place) as store:
            session = await store.create_session()
            with trio.CancelScope() as scope:
                async with store.stream(session) as out:
                    out.text().add("half an ans")
                    await out.flush()
                    scope.cancel()
                    await trio.sleep_forever()
            async with store.stream(session) as out:
                out.text().add("another")
            async with store.lease(session):
                await store.append(session, user("mine"))

    run(stream)
    assert texts(place) == ["half an ans", "another", "mine"]


@pytest.mark.needs("is_file", "an opening makes no database on a server")
def test_an_opening_that_is_cancelled_leaves_nothing_open(
    backend: Backend, place: Place
) -> None:
    async def cancel() -> None:
        for checkpoints in range(6):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:

                    async def opened() -> None:
                        async with AsyncStore.open(place):
                            await trio.sleep_forever()

                    nursery.start_soon(opened)
                    for _ in range(checkpoints):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

    run(cancel)
    backend.remove(place)
    Store.open(place).close()


def test_changes_end_at_once_when_their_event_is_set(place: Place) -> None:
    async def follow() -> list[str]:
        stop = trio.Event()
        seen: list[str] = []
        async with AsyncStore.open(place) as store, trio.open_nursery() as nursery:

            async def listen(task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
                task_status.started()
                feed = store.changes(since=first, poll=0.01, stop=stop)
                seen.extend([change.session_id async for change in feed])

            first = await store.newest_change()
            await nursery.start(listen)
            session = await store.create_session()
            while not seen and not (await store.messages(session)):
                await trio.sleep(0.02)
                stop.set()
        assert set(seen) <= {session.id}
        return seen

    run(follow)


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_callbacks_run_on_the_loop_of_their_subscriber(
    place: Place, is_coroutine: bool
) -> None:
    async def subscribe() -> None:
        done = trio.Event()
        threads: list[threading.Thread] = []

        def plain(changes: list[Change]) -> None:
            assert changes
            threads.append(threading.current_thread())
            done.set()

        async def coroutine(changes: list[Change]) -> None:
            await trio.lowlevel.checkpoint()
            plain(changes)

        async with AsyncStore.open(place) as store:
            end = store.on_commit(coroutine if is_coroutine else plain)
            await store.create_session()
            await done.wait()
            end()
        assert threads == [threading.current_thread()]

    run(subscribe)


def test_a_store_is_used_by_loops_of_both_kinds_one_after_the_other_and_at_once(
    place: Place,
) -> None:
    store = AsyncStore(place)

    async def append(number: int) -> None:
        session = await store.open_session("t")
        await store.append(session, user(str(number)))

    run(append, 0)
    asyncio.run(append(1))
    run(append, 2)
    others = [
        threading.Thread(target=run, args=(append, 3)),
        threading.Thread(target=asyncio.run, args=(append(4),)),
    ]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    run(store.close)
    assert sorted(texts(place)) == ["0", "1", "2", "3", "4"]


# -- opened by the first use, whichever loop it is on ------------------------------------


def test_a_store_that_is_made_without_a_loop_is_opened_by_its_first_use(
    backend: Backend,
    place: Place,
) -> None:
    store = AsyncStore(place, source="tests")
    assert (backend.place_of(store), backend.exists(place)) == (place, False)

    async def use() -> None:
        await asyncio.gather(*(store.open_session("t") for _ in range(10)))
        async with store:
            assert len((await store.sessions(project=ALL, empty=True)).items) == 1
        with pytest.raises(StoreClosedError):
            await store.create_session()

    asyncio.run(use())


@pytest.mark.parametrize("first", ["lease", "stream", "on_commit", "changes", "export"])
async def test_whatever_comes_first_opens_it(place: Place, first: str) -> None:
    Store.open(place).close()
    with Store.open(place) as other:
        session = other.create_session()
    store = AsyncStore(place)
    match first:
        case "lease":
            async with store.lease(session):
                pass
        case "stream":
            async with store.stream(session) as out:
                out.text().add("hi")
        case "on_commit":
            store.on_commit(lambda _: None)()
        case "changes":
            stop = threading.Event()
            stop.set()
            assert [c async for c in store.changes(stop=stop)] == []
            await store.newest_change()
        case "export":
            assert (await store.export(session)).session.id == session.id
    assert (await store.session(session)).id == session.id
    await store.close()


async def test_a_store_that_is_closed_before_its_first_use_is_closed(
    backend: Backend,
    place: Place,
) -> None:
    store = AsyncStore(place)
    await store.close()
    with pytest.raises(StoreClosedError):
        await store.create_session()
    assert not backend.exists(place)


@pytest.mark.needs("is_file", "an opening makes no database on a server")
async def test_a_store_that_is_closed_while_it_opens_is_closed(
    backend: Backend, place: Place
) -> None:
    for turns in range(5):
        store = AsyncStore(place)
        first = asyncio.create_task(store.create_session())
        for _ in range(turns):
            await asyncio.sleep(0)
        await store.close()
        with suppress(StoreClosedError):
            await first
        with pytest.raises(StoreClosedError):
            await store.create_session()
    backend.remove(place)
    Store.open(place).close()
