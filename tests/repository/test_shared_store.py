"""One open database, called by one part of a program and awaited by another."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from weakref import ref

import pytest
import trio
from backends import Backend

from sessiondb import AsyncStore, Store, StoreClosedError, user
from sessiondb.adapters.opening import borrow_store, open_async_store, open_store
from sessiondb.errors import InvalidInputError


async def test_that_one_writes_the_other_one_reads(backend: Backend) -> None:
    with Store.open(backend.fresh(), source="mine") as store:
        awaited = AsyncStore.sharing(store)
        session = await awaited.create_session(title="Both")
        store.append(session, user("called"))
        await awaited.append(session, user("awaited"))
        for messages in (store.messages(session), await awaited.messages(session)):
            assert [message.text for message in messages] == ["called", "awaited"]
        assert (store.session(session).source, backend.place_of(awaited)) == (
            "mine",
            backend.place_of(store),
        )


async def test_a_shared_store_costs_no_second_set_of_readers(backend: Backend) -> None:
    with Store.open(backend.fresh()) as store:
        await AsyncStore.sharing(store).sessions()
        threads = threading.active_count()
        for _ in range(10):
            await AsyncStore.sharing(store).sessions()
        assert threading.active_count() == threads


def test_the_database_stays_open_when_the_shared_one_is_collected(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh()) as store:
        asyncio.run(AsyncStore.sharing(store).create_session())
        gc.collect()
        assert len(store.sessions(empty=True).items) == 1


def test_the_shared_one_keeps_the_database_open(backend: Backend) -> None:
    awaited = AsyncStore.sharing(Store.open(backend.fresh()))
    gc.collect()
    trio.run(awaited.create_session)
    called = Store.sharing(awaited)
    assert len(called.sessions(empty=True).items) == 1
    called.close()


async def test_a_close_of_either_closes_both(backend: Backend) -> None:
    store = Store.open(backend.fresh())
    awaited = AsyncStore.sharing(store)
    await awaited.sessions()
    await awaited.close()
    with pytest.raises(StoreClosedError):
        store.sessions()
    store.close()


def test_a_lazy_store_is_opened_to_be_called(backend: Backend) -> None:
    with Store.sharing(AsyncStore(backend.place())) as store:
        assert store.sessions().items == ()


def test_only_a_store_can_be_shared(tmp_path: Path) -> None:
    for cls in (Store, AsyncStore):
        with pytest.raises(InvalidInputError, match="str is neither"):
            cls.sharing(str(tmp_path))  # type: ignore[arg-type]


def test_an_adapter_takes_a_store_of_either_kind(backend: Backend) -> None:
    with Store.open(backend.fresh()) as store:
        assert open_store(store) is store
        awaited = open_async_store(store)
        assert open_async_store(awaited) is awaited
        assert backend.place_of(open_store(awaited)) == backend.place_of(store)


def test_options_beside_an_open_store_are_refused(backend: Backend) -> None:
    with Store.open(backend.fresh()) as store:
        for opening in (open_store, open_async_store):
            with pytest.raises(InvalidInputError, match="durability: the store is"):
                opening(store, durability="normal")


class Borrower:
    """An object of a framework."""


async def test_objects_of_one_path_share_a_store_until_the_last_is_closed(
    backend: Backend,
) -> None:
    one, two = Borrower(), Borrower()
    place = backend.fresh()
    lent = borrow_store(one, place)
    assert borrow_store(two, str(place)) is lent
    lent.was_used = True
    await lent.store.create_session()
    lent.give_back(one)
    lent.give_back(one)
    assert len((await lent.store.sessions(empty=True)).items) == 1
    lent.give_back(two)
    assert lent.store.closed
    assert borrow_store(one, place) is not lent


def test_a_store_that_nothing_used_is_not_opened_to_be_closed(backend: Backend) -> None:
    one, place = Borrower(), backend.place()
    borrow_store(one, place).give_back(one)
    assert not backend.exists(place)


async def test_objects_that_are_collected_leave_no_store_behind(
    backend: Backend,
) -> None:
    one = Borrower()
    first = borrow_store(one, backend.fresh())
    await first.store.sessions()
    collected = ref(first.store)
    del one, first
    gc.collect()
    assert collected() is None


async def test_a_store_is_shared_by_equal_options_alone(backend: Backend) -> None:
    one, place = Borrower(), backend.fresh()
    lent = borrow_store(one, place)
    assert borrow_store(one, place, durability="normal") is not lent
    assert borrow_store(one, ":memory:") is not borrow_store(one, ":memory:")


async def test_a_store_that_was_closed_is_not_lent_again(backend: Backend) -> None:
    one, place = Borrower(), backend.fresh()
    lent = borrow_store(one, place)
    await lent.store.sessions()
    await lent.store.close()
    again = borrow_store(one, place)
    assert (await again.store.sessions()).items == ()
    await again.store.close()


def test_a_given_store_stays_that_of_the_caller(backend: Backend) -> None:
    one = Borrower()
    with Store.open(backend.fresh()) as store:
        lent = borrow_store(one, store)
        lent.was_used = True
        lent.give_back(one)
        assert not store.closed
