"""Parts and calls of a message that is finished: nothing has to stay open for them."""

from __future__ import annotations

import pytest
from facades import AwaitedStore, Contract
from processes import run

from sessiondb import (
    SessionHandle,
    assistant,
    part,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.errors import ConflictError, NotFoundError


async def calls_of(store: AwaitedStore, session: SessionHandle) -> list[str | None]:
    messages = await store.messages(session, branches=True)
    return [item.status for m in messages for item in m.parts if item.type == "tool"]


async def test_a_part_changes_the_last_use_and_nothing_that_was_finished(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    answer = await store.append(
        session, assistant("a"), cost=1.0, tokens={"output": 7}, time=1_700_000_000_000
    )
    before = await store.session(session)
    await store.add_part(session, answer, part("write", channel="x"))
    await store.add_part(session, answer, "findable")
    after = await store.session(session)
    assert (after.cost, after.tokens) == (before.cost, before.tokens)
    assert after.revision == before.revision + 2
    assert before.time_updated == 1_700_000_000_000 < after.time_updated
    message = await store.message(session, answer)
    assert message.time_completed == 1_700_000_000_000
    assert [item.text for item in message.parts] == ["a", None, "findable"]
    assert all(item.time_updated > message.time_completed for item in message.parts[1:])
    assert [hit.message_id for hit in await store.search("findable")] == [answer.id]
    assert await store.unfinished() == []
    contract.check()


async def test_a_unit_adds_to_what_it_wrote_as_finished_and_may_be_retried(
    contract: Contract, session: SessionHandle
) -> None:
    unit = contract.store.unit()
    message = unit.append(session, user("a"))
    unit.add_part(session, message, "b")
    await contract.store.commit(unit)
    unit.committed = False  # as if the outcome was unknown
    await contract.store.commit(unit)
    (stored,) = await contract.store.messages(session)
    assert [item.text for item in stored.parts] == ["a", "b"]
    contract.check()


async def test_a_block_with_ids_of_its_own_may_be_repeated(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    for _ in range(2):
        async with store.effects() as fx:
            fx.append(session, user("a", id="m"))
            fx.add_part(session, "m", text("b", id="p"))
    (stored,) = await store.messages(session)
    assert [item.text for item in stored.parts] == ["a", "b"]
    with pytest.raises(ConflictError, match="other content"):
        await store.append(session, user(id="m"))
    with pytest.raises(ConflictError, match="other content"):
        await store.add_part(session, "m", text("c", id="p"))


async def test_an_open_call_is_unfinished_until_it_is_settled(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.append(session, user("x"))
    answer = await store.append(session, assistant("a"))
    await store.add_part(session, answer, tool("bash", {"run": "early"}, call_id="c"))
    assert len(await store.search("early")) == 1
    contract.check()
    (open_call,) = await store.unfinished()
    assert open_call.session.id == session.id
    await store.start(session, "c", input={"run": "later"})
    assert len(await store.search("later")) == 1
    assert not await store.search("early")
    contract.check()
    await store.settle(session, "c", output="done")
    assert await store.unfinished() == []
    assert await calls_of(store, session) == ["completed"]
    contract.check()


async def test_a_result_that_is_added_ends_its_call(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.append(session, assistant(tool("bash", {}, call_id="c")))
    record = await store.append(session, system("results"))
    await store.add_part(session, record, tool_result("c", "findable"))
    assert await calls_of(store, session) == ["completed"]
    assert await store.unfinished() == []
    message = await store.message(session, record)
    assert message.parts[1].text == "findable"
    assert contract.rows("SELECT count(*) FROM part WHERE text = 'findable'") == [(1,)]
    contract.check()


async def test_a_prompt_counts_once_it_has_a_text(
    contract: Contract, session: SessionHandle
) -> None:
    message = await contract.store.append(session, user())
    await contract.store.add_part(session, message, "typed")
    await contract.store.add_part(session, message, "typed, too")
    assert (await contract.store.session(session)).prompt_count == 1
    contract.check()


async def test_a_copy_in_a_fork_gets_parts_that_are_copies_as_well(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    message = await store.append(session, user("a"))
    fork = await store.fork(session)
    await store.add_part(fork, message.id, "findable")
    contract.check()
    (original,) = await store.messages(session)
    assert [item.text for item in original.parts] == ["a"]


async def test_a_part_needs_a_message_that_is_there(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(NotFoundError):
        await contract.store.add_part(session, "nowhere", "x")


async def test_a_lease_protects_finished_messages_from_other_processes(
    contract: Contract, session: SessionHandle
) -> None:
    message = await contract.store.append(session, user("a"))
    code = """
    import sys
    from sessiondb import LeaseHeldError, Store
    with Store.open(sys.argv[1]) as store:
        try:
            store.add_part(sys.argv[2], sys.argv[3], "x")
        except LeaseHeldError:
            print("held")
    """
    async with contract.store.lease(session):
        done = run(code, contract.place, session, message)
    assert (done.stdout, done.stderr) == ("held\n", "")
