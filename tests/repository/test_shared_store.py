"""One open database, called by one part of a program and awaited by another."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path

import pytest
import trio

from sessiondb import AsyncStore, Store, StoreClosedError, user
from sessiondb.adapters.opening import open_async_store, open_store
from sessiondb.errors import InvalidInputError


async def test_that_one_writes_the_other_one_reads(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db", source="mine") as store:
        awaited = AsyncStore.sharing(store)
        session = await awaited.create_session(title="Both")
        store.append(session, user("called"))
        await awaited.append(session, user("awaited"))
        for messages in (store.messages(session), await awaited.messages(session)):
            assert [message.text for message in messages] == ["called", "awaited"]
        assert (store.session(session).source, awaited.path) == ("mine", store.path)


async def test_a_shared_store_costs_no_second_set_of_readers(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        await AsyncStore.sharing(store).sessions()
        threads = threading.active_count()
        for _ in range(10):
            await AsyncStore.sharing(store).sessions()
        assert threading.active_count() == threads


def test_the_database_stays_open_when_the_shared_one_is_collected(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "s.db") as store:
        asyncio.run(AsyncStore.sharing(store).create_session())
        gc.collect()
        assert len(store.sessions(empty=True).items) == 1


def test_the_shared_one_keeps_the_database_open(tmp_path: Path) -> None:
    awaited = AsyncStore.sharing(Store.open(tmp_path / "s.db"))
    gc.collect()
    trio.run(awaited.create_session)
    called = Store.sharing(awaited)
    assert len(called.sessions(empty=True).items) == 1
    called.close()


async def test_a_close_of_either_closes_both(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s.db")
    awaited = AsyncStore.sharing(store)
    await awaited.sessions()
    await awaited.close()
    with pytest.raises(StoreClosedError):
        store.sessions()
    store.close()


def test_a_lazy_store_is_opened_to_be_called(tmp_path: Path) -> None:
    with Store.sharing(AsyncStore(tmp_path / "s.db")) as store:
        assert store.sessions().items == ()


def test_only_a_store_can_be_shared(tmp_path: Path) -> None:
    for cls in (Store, AsyncStore):
        with pytest.raises(InvalidInputError, match="str is neither"):
            cls.sharing(str(tmp_path))  # type: ignore[arg-type]


def test_an_adapter_takes_a_store_of_either_kind(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        assert open_store(store) is store
        awaited = open_async_store(store)
        assert open_async_store(awaited) is awaited
        assert open_store(awaited).path == store.path


def test_options_beside_an_open_store_are_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        for opening in (open_store, open_async_store):
            with pytest.raises(InvalidInputError, match="durability: the store is"):
                opening(store, durability="normal")
