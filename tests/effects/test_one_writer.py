"""Two writers on one session: what was expected is checked, and a lease has one holder."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from facades import Contract, eventually
from peers import Connection, other

from sessiondb import (
    ConflictError,
    InvalidInputError,
    LeaseHeldError,
    NotFoundError,
    SessionHandle,
    Store,
    user,
)


async def test_an_expected_leaf_is_checked(contract: Contract, session: SessionHandle) -> None:
    one = await contract.store.append(session, user("one"), expect_leaf=None)
    await contract.store.append(session, user("two"), expect_leaf=one.seq)
    for wrong in (None, one, one.seq, one.id, 99):
        with pytest.raises((ConflictError, NotFoundError)):
            await contract.store.append(session, user("three"), expect_leaf=wrong)
    found = await contract.store.messages(session)
    await contract.store.append(session, user("three"), expect_leaf=found[-1])
    assert len(await contract.store.messages(session)) == 3


async def test_an_expected_revision_is_checked(contract: Contract, session: SessionHandle) -> None:
    revision = (await contract.store.session(session)).revision
    await contract.store.set_title(session, "Somebody else")
    with pytest.raises(ConflictError) as refused:
        await contract.store.append(session, user("one"), expect_revision=revision)
    assert refused.value.hint
    await contract.store.append(session, user("one"), expect_revision=revision + 1)


def append_in_turn(pipe: Connection, path: Path, session: str, name: str, times: int) -> None:
    """Append only after what was read, as an agent does between two answers."""
    with Store.open(path, durability="normal", source=name) as store:
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


async def test_two_processes_never_interleave_what_they_expect(contract: Contract) -> None:
    session = await contract.store.create_session(directory="/tmp")
    args = (contract.path, session.id)
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
    assert [m.text.split(" after ")[1] for m in path] == [str(m.parent_seq) for m in path]
    assert {m.text.split()[0] for m in path} == {"ada", "bob"}
    contract.check()


async def test_a_lease_has_one_holder(contract: Contract, session: SessionHandle) -> None:
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


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 86_401, "1", None, True])
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


async def test_a_lease_renews_itself(contract: Contract, session: SessionHandle) -> None:
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


def hold(pipe: Connection, path: Path, session: str, ttl: float) -> None:
    with Store.open(path, durability="normal") as store, store.lease(session, ttl=ttl):
        pipe.send("held")
        pipe.recv()


async def test_a_lease_of_a_dead_process_is_taken_over_when_it_expires(
    contract: Contract, session: SessionHandle
) -> None:
    with other(hold, contract.path, session.id, 0.5) as holder:
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


def write_on(pipe: Connection, path: Path, session: str) -> None:
    """Stream until told to end; say how it ended."""
    with Store.open(path, durability="normal") as store:
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


async def test_who_was_stopped_and_lost_the_lease_does_not_write_on(
    contract: Contract, session: SessionHandle
) -> None:
    with other(write_on, contract.path, session.id) as writer:
        pid = writer.hear()
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(0.25)
        async with contract.store.lease(session, ttl=30):
            await contract.store.append(session, user("I took over"))
            os.kill(pid, signal.SIGCONT)
            writer.say()
            assert writer.hear() == "lost"
    assert [m.text for m in await contract.store.messages(session)] == ["before ", "I took over"]


async def test_who_holds_a_lease_learns_that_it_was_lost(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.lease(session, ttl=0.1) as held:
        contract.execute("UPDATE lease SET holder = 'another', time_expires = 1 << 52")
        await eventually(lambda: held.lost is not None)
        assert isinstance(held.lost, LeaseHeldError)
    assert contract.rows("SELECT holder FROM lease") == [("another",)]
