"""Several reads of one moment: outside of a unit, and in one before it writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import pytest
from backends import Backend, Place
from peers import Connection, other

from sessiondb import (
    AsyncStore,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    Store,
    user,
)
from sessiondb.errors import BusyError
from sessiondb.maintenance import check


def both(reads: Any) -> Generator[Any, Any, Any]:
    one = yield from reads.value("pair", "one")
    other = yield from reads.value("pair", "other")
    return one and one.value, other and other.value


def write_pairs(pipe: Connection, place: Place) -> None:
    with Store.open(place, durability="normal") as store:
        for number in range(200):
            with store.effects() as fx:
                fx.set_value("pair", "one", number)
                fx.set_value("pair", "other", number)
            if not number:
                pipe.send("started")


def test_reads_of_a_snapshot_agree_while_another_process_writes(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place) as store, other(write_pairs, place) as writer:
        writer.hear()
        one = 0
        while one < 199:
            one, second = store.snapshot(both)
            assert one == second
        writer.end()


async def test_a_later_read_depends_on_what_an_earlier_one_found(
    backend: Backend,
) -> None:
    def last_message(reads: Any) -> Generator[Any, Any, Any]:
        page = yield from reads.sessions()
        return (yield from reads.messages(page.items[0], last=1))

    async with AsyncStore.open(backend.fresh()) as store:
        session = await store.create_session()
        await store.append(session, user("Hello"))
        (message,) = await store.snapshot(last_message)
        assert message.text == "Hello"
        called = Store.sharing(store)
        assert called.snapshot(last_message) == [message]


def test_reads_of_a_unit_see_what_its_writes_replace(backend: Backend) -> None:
    with Store.open(backend.fresh()) as store:
        for number in range(3):
            with store.effects() as fx:
                found = fx.snapshot(both)
                again = fx.snapshot(both)
                fx.set_value("pair", "one", number)
                fx.set_value("pair", "other", number)
            before = number - 1 if number else None
            assert found.value == again.value == (before, before)


def exchange(pipe: Connection, place: Place, name: str) -> None:
    with Store.open(place, durability="normal") as store:
        seen = []
        for number in range(50):
            with store.effects() as fx:
                found = fx.snapshot(both)
                fx.set_value("pair", "one", f"{name}{number}")
            seen.append(found.value[0])
        pipe.send(seen)


def test_what_processes_exchange_is_found_by_one_of_them_each(backend: Backend) -> None:
    place = backend.fresh()
    with (
        other(exchange, place, "a") as one,
        other(exchange, place, "b") as two,
        other(exchange, place, "c") as three,
    ):
        seen = [*one.hear(), *two.hear(), *three.hear()]
    with Store.open(place) as store:
        seen.append(store.snapshot(both)[0])
        assert check(store) == []
    written = [f"{name}{number}" for name in "abc" for number in range(50)]
    assert sorted(filter(None, seen)) == sorted(written)


def test_units_of_one_commit_see_those_before_them(backend: Backend) -> None:
    async def exchange_many(store: AsyncStore) -> list[Any]:
        async def one(number: int) -> Any:
            async with store.effects() as fx:
                found = fx.snapshot(both)
                fx.set_value("pair", "one", number)
            return found.value[0]

        return await asyncio.gather(*map(one, range(20)))

    with Store.open(backend.fresh()) as store:
        seen = asyncio.run(exchange_many(AsyncStore.sharing(store)))
        last = store.value("pair", "one")
        assert last is not None
        assert sorted([*filter(lambda it: it is not None, seen), last.value]) == [
            *range(20)
        ]


def test_reads_come_before_the_writes_of_a_unit(backend: Backend) -> None:
    with Store.open(backend.fresh()) as store:
        writes_first = pytest.raises(InvalidInputError, match="before its writes")
        with writes_first, store.effects() as fx:
            fx.set_value("a", "k", 1)
            fx.snapshot(both)
        with pytest.raises(InvalidInputError, match="begun by a store"):
            type(fx)(fx.engine, "me", lambda directory: None).snapshot(both)  # type: ignore[arg-type,return-value]
        assert store.value("a", "k") is None


def test_an_error_in_the_reads_is_raised_and_nothing_is_written(
    backend: Backend,
) -> None:
    def missing(reads: Any) -> Generator[Any, Any, Any]:
        return (yield from reads.messages("ses_nothing"))

    def failing(reads: Any) -> Generator[Any, Any, Any]:
        yield from both(reads)
        raise ZeroDivisionError

    with Store.open(backend.fresh()) as store:

        def writing(reads: Any) -> Generator[Any, Any, Any]:
            store.set_value("a", "k", 1)
            return (yield from both(reads))

        for reads, error in (
            (missing, NotFoundError),
            (failing, ZeroDivisionError),
            (lambda _: 7, InvalidInputError),
            (writing, BusyError),
        ):
            if reads is not writing:
                with pytest.raises(error):
                    store.snapshot(reads)
            with pytest.raises(error), store.effects() as fx:
                fx.snapshot(reads)
                fx.set_value("b", "k", 1)
            assert store.value("b", "k") is None
        with pytest.raises(InvalidInputError, match="reads must be a function, not 7"):
            store.snapshot(7)  # type: ignore[arg-type]


def test_a_neighbour_that_fails_leaves_the_result_right(backend: Backend) -> None:
    """Units of one commit: the batch is repeated without the one that fails."""
    with Store.open(backend.fresh()) as store:
        awaited = AsyncStore.sharing(store)
        threads = set()

        def noting(reads: Any) -> Generator[Any, Any, Any]:
            threads.add(threading.get_ident())
            return (yield from both(reads))

        async def good() -> Any:
            async with awaited.effects() as fx:
                found = fx.snapshot(noting)
                fx.set_value("pair", "one", 1)
            return found.value

        async def bad() -> None:
            async with awaited.effects() as fx:
                fx.snapshot(noting)
                fx.set_value("pair", "other", 1, expect_revision=9)

        async def run() -> list[Any]:
            return await asyncio.gather(good(), bad(), good(), return_exceptions=True)

        first, error, second = asyncio.run(run())
        assert (first, second) == ((None, None), (1, None))
        assert isinstance(error, ConflictError)
        assert threads - {threading.get_ident()}
