"""Two writers on one session: expectations are checked, and a lease has one holder."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from backends import Place
from facades import Contract, eventually
from peers import Connection, other

from sessiondb import (
    ConflictError,
    InvalidInputError,
    LeaseHeldError,
    NotFoundError,
    SessionHandle,
    Store,
    assistant,
    tool,
    user,
)
from sessiondb.effects.holders import new_holder, of_this_process

pytestmark = pytest.mark.slow


def stop_between_transactions(contract: Contract, pid: int) -> None:
    """Stop a process that holds no lock: with one it would keep it, and others waiting."""
    refusal = type(contract.backend.driver_error("it is in a transaction"))
    while True:
        os.kill(pid, signal.SIGSTOP)
        try:
            with contract.backend.locked(contract.place, patience=0.1):
                return
        except refusal:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.01)


async def test_an_expected_leaf_is_checked(
    contract: Contract, session: SessionHandle
) -> None:
    one = await contract.store.append(session, user("one"), expect_leaf=None)
    await contract.store.append(session, user("two"), expect_leaf=one.seq)
    for wrong in (None, one, one.seq, one.id, 99):
        with pytest.raises((ConflictError, NotFoundError)):
            await contract.store.append(session, user("three"), expect_leaf=wrong)
    found = await contract.store.messages(session)
    await contract.store.append(session, user("three"), expect_leaf=found[-1])
    assert len(await contract.store.messages(session)) == 3


async def test_an_expected_revision_is_checked(
    contract: Contract, session: SessionHandle
) -> None:
    revision = (await contract.store.session(session)).revision
    await contract.store.set_title(session, "Somebody else")
    with pytest.raises(ConflictError) as refused:
        await contract.store.append(session, user("one"), expect_revision=revision)
    assert refused.value.hint
    await contract.store.append(session, user("one"), expect_revision=revision + 1)


def append_in_turn(
    pipe: Connection, place: Place, session: str, name: str, times: int
) -> None:
    """Append only after the messages read, as an agent does between two answers."""
    with Store.open(place, durability="normal", source=name) as store:
        pipe.recv()
        conflicts = done = 0
        while done < times:
            leaf = store.session(session).leaf_seq
            try:
                store.append(session, user(f"{name} after {leaf}"), expect_leaf=leaf)
                done += 1
            except ConflictError:
                conflicts += 1
        pipe.send(conflicts)


async def test_two_processes_never_interleave_what_they_expect(
    contract: Contract,
) -> None:
    session = await contract.store.create_session(directory="/tmp")
    args = (contract.place, session.id)
    with (
        other(append_in_turn, *args, "ada", 15) as ada,
        other(append_in_turn, *args, "bob", 15) as bob,
    ):
        ada.say()
        bob.say()
        ada.hear()
        bob.hear()
    path = await contract.store.messages(session)
    assert [m.seq for m in path] == list(range(1, 31))
    assert [m.text.split(" after ")[1] for m in path] == [
        str(m.parent_seq) for m in path
    ]
    assert {m.text.split()[0] for m in path} == {"ada", "bob"}
    contract.check()


async def test_a_lease_has_one_holder(
    contract: Contract, session: SessionHandle
) -> None:
    second = await contract.open()
    async with contract.store.lease(session) as held:
        for store in (contract.store, second):
            with pytest.raises(LeaseHeldError) as refused:
                async with store.lease(session):
                    raise AssertionError("two holders")
        assert (refused.value.exit_code, refused.value.retryable) == (5, True)
        assert held.holder in str(refused.value)
        assert "try again" in (refused.value.hint or "")
        assert str(os.getpid()) in held.holder
    async with second.lease(session):
        pass
    assert contract.rows("SELECT * FROM lease") == []


async def test_a_lease_is_given_back_when_its_block_raises(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with contract.store.lease(session):
            1 / 0  # noqa: B018
    assert contract.rows("SELECT * FROM lease") == []


@pytest.mark.parametrize(
    "ttl", [0, -1, float("nan"), float("inf"), 86_401, "1", None, True]
)
async def test_a_lease_lasts_up_to_a_day(
    contract: Contract, session: SessionHandle, ttl: float
) -> None:
    with pytest.raises(InvalidInputError):
        async with contract.store.lease(session, ttl=ttl):
            pass


async def test_a_lease_is_of_a_session_that_is_here(contract: Contract) -> None:
    with pytest.raises(NotFoundError):
        async with contract.store.lease("ses_nowhere"):
            pass


async def test_a_lease_renews_itself(
    contract: Contract, session: SessionHandle
) -> None:
    second = await contract.open()
    async with contract.store.lease(session, ttl=0.15) as held:
        expires = contract.rows("SELECT time_expires FROM lease")
        ends = time.monotonic() + 0.5
        while time.monotonic() < ends:
            with pytest.raises(LeaseHeldError):
                async with second.lease(session):
                    pass
            await asyncio.sleep(0.02)
        assert contract.rows("SELECT time_expires FROM lease") > expires
        assert held.lost is None


def hold(pipe: Connection, place: Place, session: str, ttl: float) -> None:
    with Store.open(place, durability="normal") as store, store.lease(session, ttl=ttl):
        pipe.send("held")
        pipe.recv()


async def test_a_lease_of_a_dead_process_is_taken_over_when_it_expires(
    contract: Contract, session: SessionHandle
) -> None:
    with other(hold, contract.place, session.id, 0.5) as holder:
        holder.hear()
        holder.kill()
    (expires,) = contract.rows("SELECT time_expires FROM lease")[0]
    refusals = 0
    while True:
        try:
            async with contract.store.lease(session):
                taken = time.time_ns() // 1_000_000
            break
        except LeaseHeldError:
            refusals += 1
            await asyncio.sleep(0.02)
    assert refusals
    assert expires <= taken < expires + 2_000


def write_on(pipe: Connection, place: Place, session: str) -> None:
    """Stream until signalled to end; report how it ended."""
    with Store.open(place, durability="normal") as store:
        try:
            with store.stream(session, ttl=0.2) as out:
                said = out.text()
                said.add("before ")
                out.flush()
                pipe.send(os.getpid())
                pipe.recv()
                said.add("after")
                out.flush()
        except LeaseHeldError:
            pipe.send("lost")
        else:
            pipe.send("went on")


async def test_a_stopped_holder_that_lost_its_lease_writes_nothing_more(
    contract: Contract, session: SessionHandle
) -> None:
    with other(write_on, contract.place, session.id) as writer:
        pid = writer.hear()
        stop_between_transactions(contract, pid)
        await asyncio.sleep(0.25)
        async with contract.store.lease(session, ttl=30):
            await contract.store.append(session, user("I took over"))
            os.kill(pid, signal.SIGCONT)
            writer.say()
            assert writer.hear() == "lost"
    assert [m.text for m in await contract.store.messages(session)] == [
        "before ",
        "I took over",
    ]


async def test_the_holder_of_a_lease_learns_that_it_was_lost(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.lease(session, ttl=0.1) as held:
        contract.execute(
            "UPDATE lease SET holder = 'another', ttl = 60000, time_expires = time_expires + 59000"
        )
        await eventually(lambda: held.lost is not None)
        assert isinstance(held.lost, LeaseHeldError)
    assert contract.rows("SELECT holder FROM lease") == [("another",)]


@pytest.mark.parametrize("kept", ["lease", "stream"])
async def test_a_dead_holder_never_blocks_for_longer_than_twice_its_ttl_whatever_the_clock(
    contract: Contract, session: SessionHandle, kept: str
) -> None:
    await contract.store.append(session, assistant(tool("t")))
    with other(hold, contract.place, session.id, 30) as holder:
        holder.hear()
        holder.kill()
    # As if the clock had been set back by a second, which must not affect a living holder.
    contract.execute("UPDATE lease SET time_expires = time_expires + 1000")
    with pytest.raises(LeaseHeldError) as refused:
        await contract.store.recover(session)
    assert "again in 3" in (refused.value.hint or "")
    assert await contract.store.unfinished() == []

    contract.execute("UPDATE lease SET time_expires = time_expires + 86400000")
    assert [one.session.id for one in await contract.store.unfinished()] == [session.id]
    if kept == "lease":
        async with contract.store.lease(session, ttl=5):
            assert contract.rows("SELECT ttl FROM lease") == [(5000,)]
    else:
        async with contract.store.stream(session):
            pass
    await contract.store.recover(session)
    assert await contract.store.unfinished() == []


Verb = Callable[[Any, SessionHandle, dict[str, Any]], Awaitable[Any]]
#: Verbs that write messages, and verbs that do not.
MESSAGES: dict[str, Verb] = {
    "append": lambda store, s, _: store.append(s, user("x")),
    "add_part": lambda store, s, made: store.add_part(s, made["open"], "x"),
    "start": lambda store, s, made: store.start(s, made["calls"].parts[0]),
    "settle": lambda store, s, made: store.settle(
        s, made["calls"].parts[1], output="x"
    ),
    "finish": lambda store, s, made: store.finish(s, made["open"]),
    "set_leaf": lambda store, s, made: store.set_leaf(s, made["calls"]),
    "truncate": lambda store, s, made: store.truncate(s, after=made["calls"]),
    "recover": lambda store, s, _: store.recover(s),
}
OTHERS: dict[str, Verb] = {
    "set_title": lambda store, s, _: store.set_title(s, "Named meanwhile"),
    "label": lambda store, s, made: store.label(s, made["calls"], "here"),
    "set_todos": lambda store, s, _: store.set_todos(s, ["look"]),
    "archive": lambda store, s, _: store.archive(s),
    "fork": lambda store, s, _: store.fork(s),
    "delete": lambda store, s, _: store.delete(s),
}


async def test_no_other_process_writes_messages_under_a_lease(
    contract: Contract, session: SessionHandle
) -> None:
    calls = await contract.store.append(
        session, assistant(tool("a"), tool("b"), "said")
    )
    made = {
        "calls": calls,
        "open": await contract.store.append(session, assistant(), open=True),
    }
    sql = (
        "SELECT leaf_seq, last_seq, revision, (SELECT count(*) FROM part) FROM session"
    )
    before = contract.rows(sql)
    with other(hold, contract.place, session.id, 30) as holder:
        holder.hear()
        ((name,),) = contract.rows("SELECT holder FROM lease")
        for write in MESSAGES.values():
            with pytest.raises(LeaseHeldError, match=name):
                await write(contract.store, session, made)
        assert contract.rows(sql) == before
        for write in OTHERS.values():
            await write(contract.store, session, made)
        holder.say()
        holder.end()


async def test_a_unit_refused_under_a_lease_commits_once_the_lease_is_released(
    contract: Contract, session: SessionHandle
) -> None:
    unit = contract.store.unit()
    unit.append(session, user("I waited"))
    with other(hold, contract.place, session.id, 30) as holder:
        holder.hear()
        with pytest.raises(LeaseHeldError) as refused:
            await contract.store.commit(unit)
        assert (refused.value.effect, refused.value.retryable) == ("append", True)
        holder.say()
        holder.end()
    await contract.store.commit(unit)
    assert [m.text for m in await contract.store.messages(session)] == ["I waited"]


async def test_every_store_of_the_process_that_has_the_lease_may_write(
    contract: Contract, session: SessionHandle
) -> None:
    second = await contract.open()
    async with contract.store.lease(session):
        await contract.store.append(session, user("one"))
        await second.append(session, user("two"))
    assert len(await contract.store.messages(session)) == 2


def append_under_a_lease(pipe: Connection, place: Place, session: str) -> None:
    """Append under a lease until signalled to end; report how it ended."""
    with Store.open(place, durability="normal") as store, store.lease(session, ttl=0.2):
        store.append(session, user("mine"))
        pipe.send(os.getpid())
        pipe.recv()
        try:
            store.append(session, user("behind"))
        except LeaseHeldError:
            pipe.send("refused")
        else:
            pipe.send("written")


async def test_a_holder_that_was_stopped_does_not_append_behind_the_one_that_took_over(
    contract: Contract, session: SessionHandle
) -> None:
    with other(append_under_a_lease, contract.place, session.id) as first:
        pid = first.hear()
        stop_between_transactions(contract, pid)
        await asyncio.sleep(0.25)
        async with contract.store.lease(session, ttl=30):
            os.kill(pid, signal.SIGCONT)
            first.say()
            assert first.hear() == "refused"
        first.end()
    assert [m.text for m in await contract.store.messages(session)] == ["mine"]


def test_a_forked_child_is_not_the_holder_that_its_parent_is() -> None:
    holder = new_holder()
    assert of_this_process(holder)
    assert not of_this_process(f"elsewhere:{os.getpid()}:0123456789ab01234567")
    child = os.fork()
    if not child:
        os._exit(int(of_this_process(holder)) * 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
