"""A system that starts no more threads: nothing hangs, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from backends import Backend
from processes import run, said

from sessiondb import AsyncStore, BusyError, Store, user

pytestmark = pytest.mark.slow

PATIENCE = 20.0


@contextmanager
def refused(prefix: str = "") -> Generator[None]:
    """Refuse threads of these names, as the system does at the limit of processes."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith(prefix):
            raise RuntimeError("can't start new thread")
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        yield


def test_a_store_works_without_threads_and_starts_them_when_it_can(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        with refused():
            s = store.create_session(directory="/tmp")
            other = store.create_session(directory="/tmp")
            store.append(s, user("one"))
            with store.stream(s, ttl=5) as out:
                said = out.text()
                said.add("streamed ")
                out.flush()
                said.add("without a thread")
            with store.lease(s):
                pass
            store.delete(other)
            with pytest.raises(BusyError, match="thread"):
                store.on_commit(print)
        assert [m.text for m in store.messages(s)] == [
            "one",
            "streamed without a thread",
        ]

        notified: list[object] = []
        store.on_commit(notified.extend)
        store.append(s, user("two"))
        deadline = time.monotonic() + PATIENCE
        while not (notified and store._core.service.running):
            assert time.monotonic() < deadline
            time.sleep(0.001)
    backend.assert_intact(place)


def test_a_store_closes_without_threads(backend: Backend) -> None:
    place = backend.fresh()
    with refused():
        with Store.open(place) as store:
            s = store.create_session(directory="/tmp")
        with Store.open(place) as store:
            store.append(s, user("one"))
            assert len(store.messages(s)) == 1


async def test_async_writes_are_committed_without_the_writers_thread(
    backend: Backend,
) -> None:
    place = backend.fresh()
    async with AsyncStore.open(place, durability="normal") as store:
        with refused("sessiondb-writer"):
            s = await store.create_session(directory="/tmp")
            appended = [store.append(s, user(str(n))) for n in range(20)]
            made = await asyncio.wait_for(asyncio.gather(*appended), PATIENCE)
            assert sorted(m.seq for m in made) == list(range(1, 21))
        await asyncio.wait_for(store.append(s, user("later")), PATIENCE)
        assert store._core.service.running
    backend.assert_intact(place)


def test_a_store_is_used_while_the_interpreter_ends(backend: Backend) -> None:
    """From Python 3.12 on no thread can be started then."""
    code = """
        import atexit, sys
        from sessiondb import Store, user
        store = Store.open(sys.argv[1])
        session = store.create_session()
        def last():
            store = Store.open(sys.argv[1])
            print(store.append(session, user("last words")).seq)
            store.close()
        atexit.register(last)
    """
    assert said(run(code, backend.fresh(), flags=("-X", "dev"))) == "1"
