"""Notifications: callbacks and changes come after the commit, and name what to read."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from backends import Backend, Place
from facades import AwaitedStore, Contract, eventually
from peers import Connection, ran

from sessiondb import (
    ALL,
    BEGINNING,
    AsyncStore,
    Change,
    InvalidInputError,
    Message,
    NotFoundError,
    SessionHandle,
    Store,
    StoreClosedError,
    assistant,
    tool,
    tool_result,
    user,
)
from sessiondb.maintenance.backup import backup


async def test_callbacks_run_on_the_callers_loop_or_a_thread_of_their_own(
    contract: Contract, session: SessionHandle
) -> None:
    threads: list[threading.Thread] = []
    contract.store.on_commit(lambda _: threads.append(threading.current_thread()))
    await contract.store.append(session, user("Hello"))
    await eventually(lambda: threads)
    own = threading.current_thread()
    assert [thread is own for thread in set(threads)] == [contract.kind == "async"]


async def test_a_callback_may_write(contract: Contract, session: SessionHandle) -> None:
    log = await contract.store.create_session(id="log", directory="/tmp")
    store = contract.store.inner

    def wanted(changes: list[Change]) -> bool:
        return any(change.session_id == session.id for change in changes)

    def write(changes: list[Change]) -> None:
        if wanted(changes):
            store.append(log, user("notified"))

    async def write_async(changes: list[Change]) -> None:
        if wanted(changes):
            await store.append(log, user("notified"))

    contract.store.on_commit(write if contract.kind == "sync" else write_async)
    await contract.store.append(session, user("Hello"))
    sql = "SELECT count(*) FROM message WHERE session_id = 'log'"
    await eventually(lambda: contract.rows(sql) == [(1,)])


async def test_a_callback_that_raises_is_reported_and_hides_nothing(
    contract: Contract, session: SessionHandle, caplog: pytest.LogCaptureFixture
) -> None:
    notified: list[list[Change]] = []

    def broken(_: list[Change]) -> None:
        raise RuntimeError("a broken callback")

    async def broken_later(_: list[Change]) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("a broken callback")

    contract.store.on_commit(broken if contract.kind == "sync" else broken_later)
    contract.store.on_commit(notified.append)
    with caplog.at_level(logging.ERROR, logger="sessiondb"):
        await contract.store.append(session, user("Hello"))
        await contract.store.append(session, user("Hello again"))
        await eventually(lambda: len(notified) >= 2 and len(caplog.records) >= 2)
    assert "a broken callback" in caplog.text
    assert len(await contract.store.messages(session)) == 2


async def test_callbacks_run_in_the_order_of_commits_until_they_end(
    contract: Contract, session: SessionHandle
) -> None:
    notified: list[Change] = []
    end = contract.store.on_commit(notified.extend)
    with Store.open(contract.place, durability="normal") as other:
        mine = [contract.store.append(session, user("x")) for _ in range(20)]
        theirs = [
            asyncio.to_thread(other.append, session.id, user("y")) for _ in range(20)
        ]
        await asyncio.gather(*mine, *theirs)
        await eventually(lambda: notified and notified[-1].last_seq == 40)
    assert [c.cursor for c in notified] == sorted({c.cursor for c in notified})
    end()
    end()
    await contract.store.append(session, user("not notified"))
    await asyncio.sleep(0.02)
    assert notified[-1].last_seq == 40


async def test_nothing_is_reported_that_was_not_committed(
    contract: Contract, session: SessionHandle
) -> None:
    notified: list[Change] = []
    contract.store.on_commit(notified.extend)
    with pytest.raises(NotFoundError):
        async with contract.store.effects() as fx:
            fx.append(session, user("x"))
            fx.append("ses_nowhere", user("y"))
    last = await contract.store.append(session, user("z"))
    await eventually(lambda: any(c.last_seq == last.seq for c in notified))
    assert [
        c.last_seq for c in notified if c.session_id == session.id and c.last_seq
    ] == [1]


async def test_a_change_says_which_messages_to_read_again(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        fx.append(session, user("one"))
        a = fx.append(
            session, assistant(tool("t", call_id="c1"), tool("t", call_id="c2"))
        )
        fx.append(session, user("three"))
    notified: list[Change] = []
    contract.store.on_commit(notified.extend)

    async def since(wanted: int) -> int:
        await eventually(lambda: notified and notified[-1].revision == wanted)
        return notified[-1].since_seq

    await contract.store.append(session, user("four"))
    assert await since(3) == 3
    await contract.store.settle(session, a.parts[0], output="x")
    assert await since(4) == a.seq - 1
    await contract.store.append(session, user(tool_result("c2", "y")))
    assert await since(5) == a.seq - 1
    await contract.store.set_title(session, "No message changed")
    assert await since(6) == 5


@asynccontextmanager
async def following(
    store: AwaitedStore, *args: Any, **how: Any
) -> AsyncGenerator[list[Change]]:
    """The changes that a follower has received so far, while it follows."""
    found: list[Change] = []
    stop = threading.Event()
    more = {"stop": stop} if isinstance(store.inner, Store) else {}

    async def follow() -> None:
        async with aclosing(store.changes(*args, **how, **more)) as changes:
            async for change in changes:
                found.append(change)  # noqa: PERF401  it is read while it grows

    task = asyncio.ensure_future(follow())
    try:
        yield found
    finally:
        stop.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("make", [asyncio.Event, threading.Event])
async def test_an_event_ends_the_changes_of_an_async_store(
    make: Any, backend: Backend
) -> None:
    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        # Only an event of asyncio is noticed between two polls.
        stop, poll = make(), 3600 if make is asyncio.Event else 0.01
        await store.create_session()
        found = []
        async for change in store.changes(since=BEGINNING, poll=poll, stop=stop):
            found.append(change)
            asyncio.get_running_loop().call_later(0.02, stop.set)
        assert len(found) == 1
        assert [change async for change in store.changes(stop=stop)] == []


def append_three(_: Connection, place: Place, session: str) -> None:
    with Store.open(place, durability="normal") as store:
        for n in range(3):
            store.append(session, user(f"from elsewhere {n}"))


@pytest.mark.slow
async def test_changes_of_another_process_are_found(
    contract: Contract, session: SessionHandle
) -> None:
    start = await contract.store.newest_change()
    async with following(contract.store, since=start) as found:
        ran(append_three, contract.place, session.id)
        await eventually(lambda: found and found[-1].last_seq == 3)
    assert found[0].cursor > start
    assert {change.session_id for change in found} == {session.id}


async def test_changes_begin_with_the_next_commit(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("before"))
    async with following(contract.store) as found:
        await asyncio.sleep(0.1)
        assert found == []
        await contract.store.append(session, user("after"))
        await eventually(lambda: found)
    assert [change.last_seq for change in found] == [2]


async def test_changes_continue_after_any_one_of_them(contract: Contract) -> None:
    """Also after one of several sessions that one commit touched."""
    async with contract.store.effects() as fx:
        made = [fx.create_session(directory="/tmp").id for _ in range(5)]
    async with following(contract.store, since=BEGINNING) as found:
        await eventually(lambda: len(found) == 5)
    assert [change.session_id for change in found] == made
    for number, change in enumerate(found):
        async with following(contract.store, since=change.cursor) as rest:
            await eventually(lambda n=number, rest=rest: len(rest) == 4 - n)
        assert rest == found[number + 1 :]


@pytest.mark.slow
async def test_changes_find_more_sessions_than_they_read_at_once(
    contract: Contract,
) -> None:
    for size in (64, 300, 350):
        async with contract.store.effects() as fx:
            for _ in range(size):
                fx.create_session(directory="/tmp")
    async with following(contract.store, since=BEGINNING) as found:
        await eventually(lambda: len(found) == 714)
    assert len({change.session_id for change in found}) == 714


async def test_changes_of_one_session_leave_the_others_out(
    contract: Contract, session: SessionHandle
) -> None:
    other = await contract.store.create_session(directory="/tmp")
    start = await contract.store.newest_change()
    async with following(contract.store, session, since=start) as found:
        await contract.store.append(other, user("x"))
        await contract.store.append(session, user("x"))
        await eventually(lambda: found)
    assert {change.session_id for change in found} == {session.id}


async def test_a_deleted_session_and_those_below_it_are_reported(
    contract: Contract, session: SessionHandle
) -> None:
    below = await contract.store.create_session(parent=session)
    fork = await contract.store.fork(session)
    start = await contract.store.newest_change()
    async with following(contract.store, since=start) as found:
        await contract.store.delete(session, keep_forks=True)
        await eventually(lambda: len(found) == 3)
    assert {c.session_id: c.deleted for c in found} == {
        session.id: True,
        below.id: True,
        fork.id: False,
    }


@pytest.mark.slow
async def test_a_reader_that_follows_changes_has_everything(
    contract: Contract, session: SessionHandle
) -> None:
    """Text that grows, calls that are settled late, results of their own: in old messages too."""
    copy: dict[int, Message] = {}
    other = await contract.open()

    async def read(change: Change) -> None:
        after = await other.messages(session, branches=True)
        copy.update({m.seq: m for m in after if m.seq > change.since_seq})

    async def follow() -> None:
        async with aclosing(other.changes(session, since=BEGINNING)) as changes:
            async for change in changes:
                await read(change)

    task = asyncio.ensure_future(follow())
    a = await contract.store.append(
        session, assistant(tool("t", call_id="c1"), tool("u"))
    )
    await contract.store.append(session, user("meanwhile"))
    async with contract.store.stream(session) as out:
        said = out.text()
        for n in range(4):
            said.add(f"{n} ")
            await out.flush()
            await asyncio.sleep(0.03)
    await contract.store.settle(session, a.parts[1], output="late")
    await asyncio.sleep(0.03)
    await contract.store.append(session, user(tool_result("c1", "later")))
    truth = {m.seq: m for m in await contract.store.messages(session, branches=True)}
    await eventually(lambda: copy == truth)
    task.cancel()
    await other.close()
    with pytest.raises((asyncio.CancelledError, StoreClosedError)):
        await task


async def test_changes_refuse_an_unknown_session(contract: Contract) -> None:
    for bad in ({"session": 3}, {"since": 0}, {"since": 1 << 70}):
        with pytest.raises(InvalidInputError):
            await anext(contract.store.changes(**bad))


async def test_a_bad_or_foreign_cursor_is_refused_with_a_hint(
    contract: Contract, session: SessionHandle
) -> None:
    here = await contract.store.newest_change()
    # Not a fresh one, which may be a copy of the same empty database.
    with Store.open(contract.backend.place()) as other:
        other.create_session()
        there = other.newest_change()
    page = await contract.store.sessions(project=ALL, empty=True, limit=1)
    ahead = contract.backend.ahead_of(here)
    for cursor, why in (
        ("", "not a cursor of changes: ''"),
        ("now", "not a cursor of changes"),
        (page.next_cursor or "WzEsInNlc18iXQ", "not a cursor of changes"),
        (here.upper() + "-", "not a cursor of changes"),
        (there, "a cursor of another database"),
        (ahead, "a cursor ahead of this database"),
    ):
        with pytest.raises(InvalidInputError, match=why) as refused:
            await anext(contract.store.changes(since=cursor))
        assert "BEGINNING" in (refused.value.hint or "")


async def test_callbacks_and_followers_get_the_same_cursors(
    contract: Contract, session: SessionHandle
) -> None:
    notified: list[Change] = []
    contract.store.on_commit(notified.extend)
    start = await contract.store.newest_change()
    async with following(contract.store, since=start) as found:
        await contract.store.append(session, user("x"))
        await contract.store.delete(session)
        await eventually(lambda: len(notified) == 2 and len(found) >= 1)
        await eventually(lambda: found[-1].cursor == notified[-1].cursor)
    # On a server the newest one is behind all that is committed.
    for cursor in (await contract.store.newest_change(), notified[-1].cursor):
        assert contract.backend.unreported(contract.place, cursor) == 0


@pytest.mark.needs("is_file", "a backup is a file")
async def test_a_cursor_outlives_a_restored_copy_of_its_database(
    contract: Contract, session: SessionHandle, tmp_path: Path
) -> None:
    at = await contract.store.newest_change()
    backup(contract.store.inner, tmp_path / "copy.db")
    with Store.open(tmp_path / "copy.db") as copy:
        copy.append(session.id, user("x"))
        with closing(copy.changes(since=at)) as feed:
            assert next(feed).session_id == session.id


async def test_a_store_closes_while_changes_are_read(backend: Backend) -> None:
    async with AsyncStore.open(backend.fresh()) as store:
        task = asyncio.ensure_future(anext(store.changes(poll=0.01)))
        await asyncio.sleep(0.05)
    with pytest.raises(StoreClosedError):
        await asyncio.wait_for(task, 5)
