"""Metadata that a function computes from the stored metadata, inside the transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from backends import Backend
from facades import Contract
from processes import run, said, start

from sessiondb import AsyncStore, Store, user
from sessiondb.errors import (
    BusyError,
    CodecError,
    InvalidInputError,
    NotFoundError,
)
from sessiondb.maintenance import check

Metadata = dict[str, Any] | None


def counted(metadata: Metadata) -> Mapping[str, Any]:
    return {"n": (metadata or {"n": 0})["n"] + 1}


async def test_a_function_gets_the_metadata_and_returns_the_new(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    seen: list[Metadata] = []

    def fold(metadata: Metadata) -> Metadata:
        seen.append(metadata)
        return {"n": len(seen), "deep": {"list": [1]}}

    await store.update_metadata(session, fold)
    await store.update_metadata(session, fold)
    assert seen == [None, {"n": 1, "deep": {"list": [1]}}]
    assert (await store.session(session)).metadata == {"n": 2, "deep": {"list": [1]}}
    await store.update_metadata(session, lambda _: None)
    assert (await store.session(session)).metadata == {}
    contract.check()


async def test_an_equal_result_writes_nothing(contract: Contract) -> None:
    store = contract.store
    session = await store.create_session(metadata={"a": 1, "b": [True, None]})
    before = await store.session(session)

    def same(metadata: Metadata) -> Metadata:
        assert metadata is not None
        metadata.update({"b": metadata.pop("b"), "a": metadata.pop("a")})
        return metadata

    await store.update_metadata(session, same)
    assert await store.session(session) == before
    await store.update_metadata(session, lambda _: {"a": 1.0, "b": [True, None]})
    assert (await store.session(session)).revision == before.revision + 1


async def test_the_function_sees_what_its_unit_wrote_and_is_no_use_of_the_session(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session(time=1_700_000_000_000)
    async with store.effects() as fx:
        fx.set_metadata(session, {"n": 5})
        fx.update_metadata(session, counted)
        fx.update_metadata(session, counted)
    after = await store.session(session)
    assert after.metadata == {"n": 7}
    assert (after.revision, after.time_updated) == (2, 1_700_000_000_000)


async def test_the_secret_of_a_share_stays(contract: Contract) -> None:
    store = contract.store
    session = await store.create_session()
    await store.set_share(session, "https://example.org", secret="s")
    await store.update_metadata(session, lambda _: {"a": 1})
    shared = {"a": 1, "share": {"secret": "s"}}
    assert (await store.session(session)).metadata == shared
    with pytest.raises(InvalidInputError, match="share"):
        await store.update_metadata(session, lambda _: {"share": 1})


@pytest.mark.parametrize(
    "result",
    [[1], "text", 7, {"a": {1, 2}}, {1: "a"}, {"a": float("nan")}],
    ids=repr,
)
async def test_a_result_that_cannot_be_stored_discards_the_unit(
    contract: Contract, result: Any
) -> None:
    store = contract.store
    session = await store.create_session()
    with pytest.raises((InvalidInputError, CodecError)):
        await store.set_metadata(session, result)
    with pytest.raises((InvalidInputError, CodecError)) as refused:
        async with store.effects() as fx:
            fx.set_title(session, "not written")
            fx.update_metadata(session, lambda _: result)
    assert (refused.value.effect, refused.value.position) == ("update_metadata", 1)
    assert (await store.session(session)).title == ""


async def test_bad_arguments_are_refused_when_queued(contract: Contract) -> None:
    unit = contract.store.unit()
    with pytest.raises(InvalidInputError, match="fold must be a function"):
        unit.update_metadata("s", {"a": 1})  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        await contract.store.update_metadata("nowhere", counted)


class OwnError(Exception):
    """An error of the caller's."""


RAISED = [
    OwnError("own"), ValueError("x"), StopAsyncIteration(), "an error of the driver",
    NotFoundError("mine"), KeyboardInterrupt(), SystemExit(3),
]  # fmt: skip


def name_of(error: BaseException | str) -> str:
    return error if isinstance(error, str) else type(error).__name__


@pytest.fixture
def error(request: pytest.FixtureRequest, backend: Backend) -> BaseException:
    """What a function raises."""
    raised: BaseException | str = request.param
    return backend.driver_error(raised) if isinstance(raised, str) else raised


@pytest.mark.parametrize("error", RAISED, ids=name_of, indirect=True)
def test_what_a_function_raises_discards_its_unit_and_is_raised_as_it_is(
    store: Store, error: BaseException
) -> None:
    session = store.create_session()
    error.__cause__ = cause = KeyError("cause")

    def fold(_: Metadata) -> Metadata:
        raise error

    with pytest.raises(type(error)) as raised, store.effects() as fx:
        fx.append(session, user("not written"))
        fx.update_metadata(session, fold)
    assert raised.value is error
    assert raised.value.__cause__ is cause
    assert store.messages(session) == []
    store.update_metadata(session, counted)
    assert store.session(session).metadata == {"n": 1}
    assert check(store) == []


@pytest.mark.parametrize("error", RAISED[:5], ids=name_of, indirect=True)
async def test_tasks_of_the_same_commit_are_not_harmed(
    backend: Backend, error: BaseException
) -> None:
    def fold(_: Metadata) -> Metadata:
        raise error

    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        session = await store.create_session()
        results = await asyncio.gather(
            *(store.append(session, user(f"{number}")) for number in range(10)),
            store.update_metadata(session, fold),
            *(store.append(session, user(f"{number}")) for number in range(10, 20)),
            return_exceptions=True,
        )
        assert [item for item in results if isinstance(item, BaseException)] == [error]
        texts = {m.text for m in await store.messages(session)}
        assert texts == {f"{number}" for number in range(20)}


async def test_a_stop_iteration_is_an_error_of_the_coroutine(backend: Backend) -> None:
    def fold(_: Metadata) -> Metadata:
        raise StopIteration

    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        session = await store.create_session()
        with pytest.raises(RuntimeError, match="StopIteration"):
            await store.update_metadata(session, fold)
        await store.append(session, user("after it"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exit_in_an_event_loop_ends_that_loop_and_not_the_writer(
    backend: Backend, error: type[BaseException]
) -> None:
    place = backend.fresh()

    def fold(_: Metadata) -> Metadata:
        raise error

    async def main() -> None:
        async with AsyncStore.open(place, durability="normal") as store:
            session = await store.create_session(id="s")
            await store.update_metadata(session, fold)

    with Store.open(place, durability="normal") as store:
        with pytest.raises(error):
            asyncio.run(main())
        store.append("s", user("after it"))
        assert len(store.messages("s")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("error", [OwnError, KeyboardInterrupt, SystemExit])
def test_threads_get_their_own_errors_whoever_commits(
    store: Store, error: type[BaseException]
) -> None:
    session = store.create_session()
    outcomes: dict[str, list[object]] = {"bad": [], "good": []}

    def fold(_: Metadata) -> Metadata:
        raise error

    def bad() -> None:
        for _ in range(100):
            try:
                store.update_metadata(session, fold)
            except BaseException as raised:  # noqa: BLE001  it is compared below
                outcomes["bad"].append(type(raised))

    def good() -> None:
        for _ in range(100):
            try:
                store.append(session, user("x"))
                outcomes["good"].append(None)
            except BaseException as raised:  # noqa: BLE001
                outcomes["good"].append(raised)

    threads = [threading.Thread(target=work) for work in (bad, good, good)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes["bad"] == [error] * 100
    assert outcomes["good"] == [None] * 200
    assert len(store.messages(session)) == 200


def test_a_write_in_the_function_is_refused_and_a_read_sees_what_was_before(
    store: Store,
) -> None:
    session = store.create_session(metadata={"n": 1})

    def writes(_: Metadata) -> Metadata:
        store.append(session, user("x"))
        return None

    with pytest.raises(BusyError, match="in the middle of a commit") as refused:
        store.update_metadata(session, writes)
    assert "update_metadata" in (refused.value.hint or "")

    def reads(metadata: Metadata) -> Metadata:
        return {"read": dict(store.session(session).metadata), "given": metadata}

    with store.effects() as fx:
        fx.set_metadata(session, {"n": 2})
        fx.update_metadata(session, reads)
    found = store.session(session).metadata
    assert found == {"read": {"n": 1}, "given": {"n": 2}}
    store.append(session, user("y"))
    assert [m.text for m in store.messages(session)] == ["y"]


def test_a_write_in_the_function_by_an_event_loop_is_refused(backend: Backend) -> None:
    async def main() -> None:
        async with AsyncStore.open(backend.fresh(), durability="normal") as store:
            session = await store.create_session()

            async def inner() -> None:
                await store.append(session, user("x"))

            def fold(_: Metadata) -> Metadata:
                asyncio.run(inner())
                return None

            with pytest.raises(BusyError, match="in the middle of a commit"):
                await asyncio.wait_for(store.update_metadata(session, fold), 10)
            await store.append(session, user("y"))
            assert len(await store.messages(session)) == 1

    asyncio.run(main())


def test_the_function_is_called_again_when_a_neighbour_fails(backend: Backend) -> None:
    calls = []

    def fold(metadata: Metadata) -> Metadata:
        calls.append(metadata)
        return {"n": 1}

    async def main() -> None:
        async with AsyncStore.open(backend.fresh(), durability="normal") as store:
            session = await store.create_session()
            await asyncio.gather(
                store.update_metadata(session, fold),
                store.append("nowhere", user("x")),
                return_exceptions=True,
            )
            assert (await store.session(session)).metadata == {"n": 1}

    asyncio.run(main())
    assert calls == [None, None]


COUNTING = """
import sys
from sessiondb import Store
with Store.open(sys.argv[1], durability="normal") as store:
    for _ in range(25):
        store.update_metadata("s", lambda old: {"n": (old or {"n": 0})["n"] + 1})
"""


@pytest.mark.slow
def test_four_processes_count_to_a_hundred(backend: Backend) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        store.create_session(id="s")
    children = [start(COUNTING, place) for _ in range(4)]
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
    with Store.open(place, durability="normal") as store:
        session = store.session("s")
        assert (session.metadata, session.revision) == ({"n": 100}, 101)
        assert check(store) == []


INTERRUPTED = """
import signal, sys, threading, time
from sessiondb import Store, user

store = Store.open(sys.argv[1], durability="normal")
store.create_session(id="main")
store.create_session(id="other")
errors, ended = [], threading.Event()

def fold(old):
    # Only while the main thread commits for the thread that queued it.
    if threading.current_thread() is threading.main_thread():
        signal.raise_signal(signal.SIGINT)
    return {"n": (old or {"n": 0})["n"] + 1}

def folds():
    while not ended.is_set():
        try:
            store.update_metadata("other", fold)
        except BaseException as error:
            errors.append(error)
        else:
            done.append(1)
        # Who committed last is the first to queue again, if nobody rests.
        time.sleep(0.002)

done, interrupts, threads = [], 0, [threading.Thread(target=folds) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(3_000):
    try:
        store.append("main", user("x"))
    except KeyboardInterrupt:
        interrupts += 1
    if interrupts == 3:
        break
ended.set()
for thread in threads:
    thread.join()
assert not errors, errors
assert store.session("other").metadata == {"n": len(done)}
print(interrupts)
"""


@pytest.mark.slow
def test_an_interrupt_of_the_main_thread_is_its_own_in_a_function_of_another(
    backend: Backend,
) -> None:
    place = backend.fresh()
    assert int(said(run(INTERRUPTED, place))) > 0
    with Store.open(place, durability="normal") as store:
        assert check(store) == []
