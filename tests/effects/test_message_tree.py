"""Sessions are append-only trees: branches, leaves, labels, and truncation."""

from __future__ import annotations

import pytest
from facades import Contract

from sessiondb import (
    FileDiff,
    InvalidInputError,
    NotFoundError,
    SessionHandle,
    assistant,
    text,
    tool,
    user,
)


async def texts(contract: Contract, session: SessionHandle, **how: bool) -> list[str]:
    return [m.text for m in await contract.store.messages(session, **how)]


async def test_an_append_goes_after_the_leaf_or_after_the_given_message(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    one = await store.append(session, user("one"))
    await store.append(session, assistant("two"))
    await store.append(session, assistant("instead"), after=one)
    await store.append(session, user("another beginning"), after=None)
    found = await store.messages(session, branches=True)
    assert [(m.seq, m.parent_seq) for m in found] == [
        (1, None),
        (2, 1),
        (3, 1),
        (4, None),
    ]
    assert await texts(contract, session) == ["another beginning"]


async def test_set_leaf_continues_from_elsewhere_and_removes_nothing(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    one = await store.append(session, user("one"))
    two = await store.append(session, assistant("two"))
    await store.set_leaf(session, one)
    assert await texts(contract, session) == ["one"]
    await store.append(session, assistant("instead"))
    assert await texts(contract, session) == ["one", "instead"]
    await store.set_leaf(session, two)
    assert await texts(contract, session) == ["one", "two"]
    await store.set_leaf(session, None)
    assert await texts(contract, session) == []
    await store.append(session, user("afresh"))
    assert await texts(contract, session) == ["afresh"]
    assert len(await texts(contract, session, branches=True)) == 4


async def test_a_turn_is_that_of_the_message_before_or_of_the_prompt(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        lone = fx.append(session, assistant("before any prompt"))
        ask = fx.append(session, user("one"))
        fx.append(session, assistant("two"))
        again = fx.append(session, user("three"))
        fx.append(session, assistant("four"))
        fx.append(session, assistant("back on the first"), after=ask)
        fx.append(session, assistant("its own"), turn_id="mine")
        fx.append(session, assistant("follows"))
    found = await contract.store.messages(session, branches=True)
    assert [m.turn_id for m in found] == [
        None, ask.id, ask.id, again.id, again.id, ask.id, "mine", "mine",
    ]  # fmt: skip
    assert found[0].id == lone.id


async def test_truncate_removes_every_branch_that_follows(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    async with store.effects() as fx:
        one = fx.append(session, user("one"))
        two = fx.append(
            session, assistant(text("apricot " * 500), tool("t", output="b" * 5_000))
        )
        fx.append(session, user("three"), after=two)
        fx.append(session, assistant("side"), after=one)
        keep = fx.append(session, user("another root"), after=None)
        for m in (one, two, keep):
            fx.label(session, m, f"label {m.id}")
        fx.set_diffs(session, [FileDiff("a.py", seq=2, before=b"1"), FileDiff("b.py")])
    await store.append(session, assistant("costly"), after=two, cost=1.5)
    assert (await store.session(session)).cost == 1.5
    await store.truncate(session, after=one)
    assert await texts(contract, session, branches=True) == ["one", "another root"]
    assert await texts(contract, session) == ["one"]
    found = await store.session(session)
    assert (found.message_count, found.cost, found.last_seq) == (2, None, 6)
    assert {label.seq for label in await store.labels(session)} == {1, 5}
    assert [diff.path for diff in await store.diffs(session)] == ["b.py"]
    assert len(await store.search("apricot")) == 0
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()
    assert (await store.append(session, user("next"))).seq == 7


async def test_truncate_after_none_removes_everything(
    contract: Contract, session: SessionHandle
) -> None:
    for said in ("one", "two"):
        await contract.store.append(session, user(said))
    await contract.store.truncate(session, after=None)
    found = await contract.store.session(session)
    assert (found.message_count, found.leaf_seq, found.last_seq) == (0, None, 2)
    assert (await contract.store.append(session, user("three"))).seq == 3
    contract.check()


async def test_truncate_leaves_the_leaf_on_another_branch(
    contract: Contract, session: SessionHandle
) -> None:
    one = await contract.store.append(session, user("one"))
    two = await contract.store.append(session, user("two"))
    await contract.store.append(session, user("three"), after=one)
    await contract.store.truncate(session, after=two)
    assert await texts(contract, session) == ["one", "three"]


async def test_truncating_nothing_does_not_change_the_revision(
    contract: Contract, session: SessionHandle
) -> None:
    m = await contract.store.append(session, user("one"))
    before = await contract.store.session(session)
    await contract.store.truncate(session, after=m)
    assert await contract.store.session(session) == before
    with pytest.raises(NotFoundError):
        await contract.store.truncate(session, after="msg_nowhere")


async def test_forks_keep_what_their_parent_truncates(
    contract: Contract, session: SessionHandle
) -> None:
    one = await contract.store.append(session, user("one"))
    await contract.store.append(session, assistant("plum " * 400), cost=1.0)
    fork = await contract.store.fork(session)
    await contract.store.truncate(session, after=one)
    assert await texts(contract, fork) == ["one", "plum " * 400]
    assert (
        (await contract.store.session(fork)).cost,
        (await contract.store.session(session)).cost,
    ) == (
        1.0,
        None,
    )
    assert [hit.session.id for hit in await contract.store.search("plum")] == [fork.id]
    contract.check()


async def test_a_label_names_one_message_and_moves_with_its_name(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    one = await store.append(session, user("one"))
    two = await store.append(session, user("two"))
    for m, name in ((one, "a"), (one, "b"), (two, "c"), (two, "a")):
        await store.label(session, m, name)
    assert {(x.seq, x.label) for x in await store.labels(session)} == {
        (1, "b"),
        (2, "c"),
        (2, "a"),
    }
    assert (await store.message(session, "a")).id == two.id
    await store.label(session, two, None)
    assert [(x.seq, x.label) for x in await store.labels(session)] == [(1, "b")]
    for bad in ("", "a\nb", 3):
        with pytest.raises(InvalidInputError):
            await store.label(session, one, bad)
