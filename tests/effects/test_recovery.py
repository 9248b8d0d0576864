"""Work left open by a dead process is found and settled; that of a living one is not."""

from __future__ import annotations

import asyncio
import time

import pytest
from backends import Place
from facades import AwaitedStore, Contract, eventually
from peers import Connection, other

from sessiondb import (
    LeaseHeldError,
    NotFoundError,
    SessionHandle,
    Store,
    assistant,
    text,
    tool,
    user,
)

pytestmark = pytest.mark.slow


def stream_for_ever(pipe: Connection, place: Place, session: str, ttl: float) -> None:
    with (
        Store.open(place, durability="normal") as store,
        store.stream(session, ttl=ttl) as out,
    ):
        said, thought = out.text(), out.reasoning()
        said.add("What was said")
        thought.add("What was thought")
        asked, running = out.tool("web", call_id="c1"), out.tool("sh", call_id="c2")
        asked.add('{"url": "https://example.org"}')
        running.add('{"cmd": "make"}')
        running.start()
        out.flush()
        pipe.send("flushed")
        said.add(" and lost")
        pipe.recv()


async def unfinished(store: AwaitedStore) -> list[tuple[str, int, int]]:
    found = await store.unfinished()
    return [(one.session.id, len(one.messages), len(one.calls)) for one in found]


async def test_a_stream_that_was_killed_is_found_and_recovered(
    contract: Contract, session: SessionHandle
) -> None:
    with other(stream_for_ever, contract.place, session.id, 0.5) as writer:
        writer.hear()
        assert await unfinished(contract.store) == []
        writer.kill()
    assert await unfinished(contract.store) == []
    with pytest.raises(LeaseHeldError):
        await contract.store.recover(session)
    (expires,) = contract.rows("SELECT time_expires FROM lease")[0]
    await eventually(lambda: time.time() * 1_000 > expires)

    assert await unfinished(contract.store) == [(session.id, 1, 2)]
    await contract.store.recover(session)
    (message,) = await contract.store.messages(session)
    assert (message.finish, message.time_completed is None) == ("cancelled", False)
    facts = [(p.type, p.status, p.outcome, p.text, p.input) for p in message.parts]
    assert facts == [
        ("text", None, None, "What was said", None),
        ("reasoning", None, None, "What was thought", None),
        ("tool", "error", "interrupted", None, {"url": "https://example.org"}),
        ("tool", "error", "interrupted", None, {"cmd": "make"}),
    ]
    assert len(await contract.store.search("said")) == 1
    assert len(await contract.store.search("make")) == 1
    assert await unfinished(contract.store) == []
    contract.check()

    revision = (await contract.store.session(session)).revision
    await contract.store.recover(session)
    assert (await contract.store.session(session)).revision == revision
    await contract.store.append(session, user("Go on."))


async def test_nothing_is_settled_behind_a_living_process(
    contract: Contract, session: SessionHandle
) -> None:
    with other(stream_for_ever, contract.place, session.id, 0.2) as writer:
        writer.hear()
        for _ in range(12):
            await asyncio.sleep(0.05)
            assert await unfinished(contract.store) == []
            with pytest.raises(LeaseHeldError):
                await contract.store.recover(session)
        writer.say()
        writer.end()
    (message,) = await contract.store.messages(session)
    assert (message.finish, message.text) == ("stop", "What was said and lost")


async def test_work_left_open_without_a_lease_is_found_too(
    contract: Contract, session: SessionHandle
) -> None:
    done = await contract.store.create_session(directory="/tmp")
    await contract.store.append(done, assistant(tool("t", output="x")))
    await contract.store.append(
        session, assistant(tool("a"), tool("b", status="running"))
    )
    await contract.store.append(session, assistant(text("half a sen")), open=True)
    assert await unfinished(contract.store) == [(session.id, 1, 2)]
    async with contract.store.lease(session):
        assert await unfinished(contract.store) == []
    await contract.store.recover(session)
    first, second = await contract.store.messages(session)
    assert [(p.status, p.outcome) for p in first.parts] == [
        ("error", "interrupted")
    ] * 2
    assert (first.finish, second.finish, second.text) == (
        None,
        "cancelled",
        "half a sen",
    )


async def test_a_call_that_was_recovered_stays_as_it_is(
    contract: Contract, session: SessionHandle
) -> None:
    m = await contract.store.append(session, assistant(tool("t", {"a": 1})))
    await contract.store.recover(session)
    with pytest.raises(Exception, match="settled, with another result"):
        await contract.store.settle(session, m.parts[0], output="too late")


async def test_only_what_is_here_is_recovered(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(NotFoundError):
        await contract.store.recover("ses_nowhere")
    await contract.store.append(session, assistant(tool("t")), open=True)
    await contract.store.delete(session)
    assert await unfinished(contract.store) == []
    with pytest.raises(NotFoundError):
        await contract.store.recover(session)
