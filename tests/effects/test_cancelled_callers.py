"""Cancelling a caller never cancels a transaction: a unit is complete or absent, at any await."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

import pytest
import pytest_asyncio
from backends import Backend, Place
from facades import eventually

from sessiondb import ALL, AsyncStore, Store, assistant, text, tool, user
from sessiondb.database.connections import MAX_READERS
from sessiondb.database.core import Core
from sessiondb.effects import Unit

pytestmark = pytest.mark.slow

#: Steps of the loop, and milliseconds, after which a caller is cancelled; the last is
#: after whatever it does.
MOMENTS = [
    *(("steps", n) for n in range(16)),
    *(("ms", n / 4) for n in range(1, 13)),
    ("ms", 60_000),
]


@pytest_asyncio.fixture
async def store(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[AsyncStore]:
    # On a slow machine rows of deleted sessions would disappear during a test.
    monkeypatch.setattr(Core, "reap_soon", lambda *_: None)
    async with AsyncStore.open(
        backend.fresh(), durability="normal", source="tests"
    ) as opened:
        await opened.create_session(id="s", directory="/tmp")
        yield opened
    backend.assert_intact(opened)


async def cancelled(work: Coroutine[Any, Any, Any], moment: tuple[str, float]) -> bool:
    """Cancel *work* at a moment; return whether it ended so."""
    task = asyncio.ensure_future(work)
    unit, amount = moment
    for _ in range(int(amount) if unit == "steps" else 0):
        await asyncio.sleep(0)
    if unit == "ms":
        await asyncio.wait([task], timeout=amount / 1_000)
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


async def test_a_cancelled_unit_is_complete_or_absent_and_can_be_committed_again(
    store: AsyncStore,
    backend: Backend,
) -> None:
    ended = set()
    for number, moment in enumerate(MOMENTS):
        units: list[Unit] = []

        async def block(units: list[Unit] = units, number: int = number) -> None:
            async with store.effects() as fx:
                units.append(fx)
                s = fx.create_session(id=f"s{number}", directory="/tmp")
                m = fx.append(
                    s, assistant("Hello", tool("t", output="x" * 2_000)), open=True
                )
                fx.add_part(s, m, "more")
                fx.finish(s, m, cost=0.5)
                fx.append(s, user("Thanks"))

        ended.add(await cancelled(block(), moment))
        sql = "SELECT last_seq, cost, message_count FROM session WHERE id = ?"
        assert backend.rows(store, sql, f"s{number}") in ([], [(2, 0.5, 2)])
        for unit in units:
            await store.commit(unit)
        found = await store.messages(f"s{number}") if units else []
        assert [len(m.parts) for m in found] == ([3, 1] if units else [])
    assert ended == {True, False}


async def test_the_same_block_again_gives_no_duplicates(store: AsyncStore) -> None:
    for number, moment in enumerate(MOMENTS):

        async def block(number: int = number) -> None:
            async with store.effects() as fx:
                s = fx.create_session(id=f"s{number}", directory="/tmp")
                m = fx.append(s, user("Go", id="m1"))
                fx.append(s, assistant(tool("t", call_id="c"), id="m2"))
                fx.set_leaf(s, m)
                fx.append(s, assistant("No.", id="m3"))
                fx.fork(s, id=f"f{number}")

        await cancelled(block(), moment)
        await block()
        assert [m.id for m in await store.messages(f"s{number}")] == ["m1", "m3"]
        assert len(await store.messages(f"s{number}", branches=True)) == 3
        assert [m.id for m in await store.messages(f"f{number}")] == ["m1", "m3"]


VERBS: dict[str, Callable[[AsyncStore, str], Awaitable[Any]]] = {
    "create_session": lambda st, v: st.create_session(id=v + "new", parent=v),
    "append": lambda st, v: st.append(v, user("x", id="x")),
    "add_part": lambda st, v: st.add_part(v, "open", text("x", id="x")),
    "start": lambda st, v: st.start(v, "call", input={"a": 1}),
    "settle": lambda st, v: st.settle(v, "call", output="x"),
    "finish": lambda st, v: st.finish(v, "open", cost=1.0),
    "set_leaf": lambda st, v: st.set_leaf(v, "ask"),
    "truncate": lambda st, v: st.truncate(v, after="ask"),
    "fork": lambda st, v: st.fork(v, id=v + "fork"),
    "delete": lambda st, v: st.delete(v),
    "set_title": lambda st, v: st.set_title(v, "x"),
    "set_directory": lambda st, v: st.set_directory(v, "/tmp/x"),
    "set_metadata": lambda st, v: st.set_metadata(v, {"a": 1}),
    "set_todos": lambda st, v: st.set_todos(v, ["x"]),
    "label": lambda st, v: st.label(v, "ask", "x"),
    "archive": lambda st, v: st.archive(v),
    "add_prompt": lambda st, v: st.add_prompt("x", id=v + "x", session=v),
    "recover": lambda st, v: st.recover(v),
}
FACTS = """
SELECT relation, title, leaf_seq, last_seq, message_count, cost, time_archived IS NULL,
    time_deleted IS NULL, directory, metadata,
    (SELECT count(*) FROM todo t WHERE t.session_id = session.id),
    (SELECT count(*) FROM label l WHERE l.session_id = session.id),
    (SELECT count(*) FROM prompt q WHERE q.session_id = session.id)
FROM session WHERE id LIKE ? ORDER BY id
"""
CALLS = """
SELECT seq, id, status, text FROM part WHERE session_id LIKE ? AND status IS NOT NULL
ORDER BY session_id, seq, idx
"""


async def test_a_cancelled_verb_is_done_once_when_it_is_repeated(
    store: AsyncStore,
    backend: Backend,
) -> None:
    for verb, call in VERBS.items():
        truth: list[Any] = []
        for number, moment in enumerate([None, *MOMENTS[1::5]]):
            name = f"{verb}-{number}-"
            async with store.effects() as fx:
                s = fx.create_session(id=name, title="x", directory="/tmp")
                fx.append(s, user("Go", id="ask"))
                fx.append(s, assistant(tool("t", id="call"), id="open"), open=True)
            if moment is not None:
                await cancelled(_run(call(store, name)), moment)
            try:
                await call(store, name)
            except LookupError:
                assert verb == "delete"
            found = [backend.rows(store, sql, f"{name}%") for sql in (FACTS, CALLS)]
            assert found == (truth or found), (verb, moment)
            truth = found


async def _run(work: Awaitable[Any]) -> None:
    await work


async def test_a_stream_that_is_cancelled_anywhere_ends_its_message_and_its_lease(
    store: AsyncStore,
    backend: Backend,
) -> None:
    moments = [*MOMENTS, *(("ms", n) for n in range(4, 16))]
    for number, moment in enumerate(moments):
        name = f"s{number}"
        await store.create_session(id=name, directory="/tmp")

        async def answer(name: str = name) -> None:
            async with store.stream(name) as out:
                said, call = out.text(), out.tool("t", call_id="c")
                said.add("Hello ")
                call.add('{"a": 1}')
                await out.flush()
                said.add("world")
                await out.flush()
                call.settle(output="x")
                out.finish("stop", cost=0.5)

        was = await cancelled(answer(), moment)
        # Units are written in their order: after this one, the stream is open or never.
        await store.create_session(id=f"after {name}", directory="/tmp")
        sql = "SELECT count(*) FROM message WHERE session_id = ? AND time_completed IS NULL"
        await eventually(
            lambda name=name, sql=sql: backend.rows(store, sql, name) == [(0,)]
        )
        await eventually(lambda: backend.rows(store, "SELECT * FROM lease") == [])
        found = await store.messages(name)
        assert was or found
        for message in found:
            said, calls = (
                message.text,
                [p.status for p in message.parts if p.type == "tool"],
            )
            if message.finish == "stop":
                assert (said, calls) == ("Hello world", ["completed"])
            else:
                assert was
                assert message.finish == "cancelled"
                assert "Hello world".startswith(said)
                assert set(calls) <= {"completed", "error"}
    assert await store.unfinished() == []


async def test_a_second_cancel_does_not_stop_the_end_of_a_stream(
    store: AsyncStore,
    backend: Backend,
) -> None:
    said = asyncio.Event()

    async def answer() -> None:
        async with store.stream("s") as out:
            out.text().add("kept")
            said.set()
            await asyncio.sleep(60)

    task = asyncio.ensure_future(answer())
    await said.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: backend.rows(store, "SELECT * FROM lease") == [])
    (message,) = await store.messages("s")
    assert (message.text, message.finish) == ("kept", "cancelled")


async def test_a_lease_that_is_cancelled_anywhere_is_given_back(
    store: AsyncStore,
    backend: Backend,
) -> None:
    async def hold() -> None:
        async with store.lease("s"):
            await asyncio.sleep(0.001)

    for moment in MOMENTS:
        await cancelled(hold(), moment)
        await eventually(lambda: backend.rows(store, "SELECT * FROM lease") == [])


async def test_a_cancelled_read_leaves_no_transaction_and_no_connection_behind(
    store: AsyncStore,
) -> None:
    for number in range(5):
        await store.append("s", user(f"Hello {number}"))

    async def read() -> None:
        await asyncio.gather(
            *(store.messages("s") for _ in range(3)),
            store.sessions(project=ALL),
            store.tree("s"),
        )

    for moment in MOMENTS * 2:
        await cancelled(read(), moment)
    assert len(await store.messages("s")) == 5
    readers = store._readers
    await eventually(lambda: len(readers._idle) == readers._count)
    assert readers._count <= MAX_READERS
    assert not any(c.in_transaction for one in readers._idle for c in one._connections)


def test_a_loop_that_ends_with_units_on_their_way_loses_and_doubles_nothing(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh()) as own:
        own.create_session(id="s", directory="/tmp")
        store = asyncio.run(_opened(backend.place_of(own)))

        async def leave(number: int) -> None:
            for n in range(5):
                draft = user(f"{number}.{n}", id=f"m{number}.{n}")
                task = asyncio.ensure_future(store.append("s", draft))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            assert not task.done()

        for number in range(5):
            asyncio.run(leave(number))
        asyncio.run(_run(store.append("s", user("last"))))
        assert len(own.messages("s")) == 26
        asyncio.run(store.close())


async def _opened(place: Place) -> AsyncStore:
    return await AsyncStore.open(place)
