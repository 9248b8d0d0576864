"""A failed stream keeps its content; a failed write is reported once and made again."""

from __future__ import annotations

import asyncio
import time

import pytest
from backends import Backend
from facades import Contract, eventually

from sessiondb import (
    AsyncStore,
    BusyError,
    ConflictError,
    LeaseHeldError,
    NotFoundError,
    SessionHandle,
    Store,
    StoreClosedError,
    user,
)


@pytest.mark.parametrize(
    ("error", "finish"),
    [(ValueError("no\0pe"), "error"), (KeyboardInterrupt(), "cancelled")],
    ids=["exception", "interrupt"],
)
async def test_an_exception_keeps_the_streamed_content_and_propagates(
    contract: Contract, session: SessionHandle, error: BaseException, finish: str
) -> None:
    with pytest.raises(type(error)) as raised:
        async with contract.store.stream(session) as out:
            said, call, done = out.text(), out.tool("sh", call_id="c"), out.tool("sh")
            said.add("half a ")
            call.add('{"cmd": "li')
            done.settle(output="x")
            await out.flush()
            said.add("sentence")
            raise error
    assert raised.value is error
    (message,) = await contract.store.messages(session)
    assert (message.text, message.finish) == ("half a sentence", finish)
    _, call, done = message.parts
    assert (call.status, call.outcome, call.input) == (
        "error",
        "interrupted",
        '{"cmd": "li',
    )
    assert (done.status, done.text) == ("completed", "x")
    known = {"name": "ValueError", "message": "no\0pe"}
    assert message.error == (known if finish == "error" else None)
    assert contract.rows("SELECT * FROM lease") == []
    assert len(await contract.store.search("sentence")) == 1
    contract.check()


@pytest.mark.slow
async def test_a_write_that_fails_in_the_background_is_raised_by_the_next_call_once(
    contract: Contract, session: SessionHandle
) -> None:
    hasty = await contract.open(busy_timeout=0.01)
    async with hasty.stream(session) as out:
        said = out.text()
        said.add("one ")
        with contract.locked():
            said.add("x" * 4096)
            await eventually(lambda: out.inner.inner._error)
            with pytest.raises(BusyError):
                said.add(" two")
            said.add(" three")
        await eventually(
            lambda: contract.rows("SELECT length(text) FROM part") == [(4110,)]
        )
    assert (await hasty.messages(session))[0].text == "one " + "x" * 4096 + " two three"
    contract.check()


async def test_a_flush_raises_the_error_of_its_write_and_the_next_one_writes_all(
    contract: Contract, session: SessionHandle
) -> None:
    hasty = await contract.open(busy_timeout=0.01)
    async with hasty.stream(session) as out:
        said, call = out.text(), out.tool("sh", call_id="c")
        said.add("kept")
        call.add("{}")
        call.start()
        with contract.locked():
            for _ in range(3):
                with pytest.raises(BusyError):
                    await out.flush()
        await out.flush()
        assert contract.rows("SELECT type, text, status FROM part ORDER BY idx") == [
            ("text", "kept", None),
            ("tool", None, "running"),
        ]
        call.settle(output="x")


async def test_a_flush_that_was_committed_despite_its_error_is_not_written_twice(
    contract: Contract, session: SessionHandle
) -> None:
    """Its commit failed as far as the caller knows, so the same is written again."""
    async with contract.store.stream(session) as out:
        inner = out.inner.inner
        grown = {out.text(): ["0 ", "1 ", "2 "], out.reasoning(): ["hm ", "\0", "hm "]}
        call = out.tool("sh")
        call.add("{}")
        for n in range(3):
            verbs = [*inner._verbs, *inner._queued]
            lengths = [part.written for part in grown]
            for part, deltas in grown.items():
                part.add(deltas[n])
            await out.flush()
            inner._verbs = verbs
            for part, length in zip(grown, lengths, strict=True):
                part._taken -= 1
                part.written = length
            await out.flush()
    (message,) = await contract.store.messages(session)
    assert [p.text for p in message.parts] == ["0 1 2 ", "hm \0hm ", None]
    contract.check()


async def test_a_session_deleted_under_a_stream_raises_and_leaves_nothing(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(NotFoundError):
        async with contract.store.stream(session) as out:
            out.text().add("x")
            await contract.store.delete(session)
    await contract.store.reap()
    for table in ("session", "message", "part", "lease", "blob"):
        assert contract.rows(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_a_message_finished_by_another_caller_does_not_grow(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(ConflictError):
        async with contract.store.stream(session) as out:
            said = out.text()
            said.add("mine")
            await out.flush()
            await contract.store.finish(session, out.message, finish="length")
            said.add(" and more")
    (message,) = await contract.store.messages(session)
    assert (message.text, message.finish) == ("mine", "length")


async def test_the_first_failure_is_the_one_that_is_raised(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with contract.store.stream(session) as out:
            out.text().add("x")
            await contract.store.delete(session)
            1 / 0  # noqa: B018


async def test_a_stream_does_not_open_behind_another_writer(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.lease(session):
        with pytest.raises(LeaseHeldError):
            async with contract.store.stream(session):
                raise AssertionError("two writers")
    with pytest.raises(ConflictError):
        async with contract.store.stream(session, expect_leaf=7):
            raise AssertionError("another leaf")
    assert await contract.store.messages(session) == []
    assert contract.rows("SELECT * FROM lease") == []


async def test_a_stream_continues_after_the_given_message(
    contract: Contract, session: SessionHandle
) -> None:
    one = await contract.store.append(session, user("one"))
    await contract.store.append(session, user("two"))
    async with contract.store.stream(session, after=one) as out:
        out.text().add("instead of two")
    assert [m.text for m in await contract.store.messages(session)] == [
        "one",
        "instead of two",
    ]


def test_a_store_closed_under_a_stream_raises_and_does_not_hang(
    backend: Backend,
) -> None:
    place = backend.fresh()
    store = Store.open(place, durability="normal")
    s = store.create_session(directory="/tmp")
    begun = time.monotonic()
    with pytest.raises(StoreClosedError), store.stream(s) as out:
        out.text().add("kept")
        out.flush()
        out.text().add("lost")
        store.close()
    assert time.monotonic() - begun < 5
    with Store.open(place) as again:
        assert again.messages(s)[0].text == "kept"


async def test_an_async_store_closed_under_a_stream_raises_and_does_not_hang(
    backend: Backend,
) -> None:
    store = await AsyncStore.open(backend.fresh(), durability="normal")
    s = await store.create_session(directory="/tmp")

    async def answer() -> None:
        async with store.stream(s) as out:
            out.text().add("lost")
            await store.close()

    with pytest.raises(StoreClosedError):
        await asyncio.wait_for(answer(), 5)
