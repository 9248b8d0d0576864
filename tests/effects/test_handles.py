"""Handles: an id at once, a seq after the commit; effects take them, objects and full ids."""

from __future__ import annotations

import pytest
from facades import Contract

from sessiondb import (
    ConflictError,
    InvalidInputError,
    MessageHandle,
    NotFoundError,
    SessionHandle,
    assistant,
    tool,
    user,
)


async def test_an_id_is_known_at_once_and_a_seq_after_the_commit(
    contract: Contract,
) -> None:
    async with contract.store.effects() as fx:
        s = fx.create_session(directory="/tmp")
        first, second = (
            fx.append(s, user("one")),
            fx.append(s, assistant(tool("t"), "x")),
        )
        assert (first.seq, second.seq) == (None, None)
        assert s.id.startswith("ses_")
        assert first.id < second.id
        assert [part.id[:4] for part in second.parts] == ["prt_", "prt_"]
    assert (first.seq, second.seq) == (1, 2)
    assert [str(x) for x in (s, first, second.parts[0])] == [
        s.id,
        first.id,
        second.parts[0].id,
    ]
    found = await contract.store.messages(s)
    assert [(m.id, m.seq) for m in found] == [(first.id, 1), (second.id, 2)]
    assert [p.id for p in found[1].parts] == [p.id for p in second.parts]


async def test_a_handle_of_a_failed_unit_has_no_seq(contract: Contract) -> None:
    with pytest.raises(NotFoundError):
        async with contract.store.effects() as fx:
            s = fx.create_session(directory="/tmp")
            m = fx.append(s, user("one"))
            fx.append("ses_nowhere", user("two"))
    assert m.seq is None


async def test_effects_take_handles_objects_full_ids_and_seqs(
    contract: Contract, session: SessionHandle
) -> None:
    handle = await contract.store.append(session, user("one"))
    (message,) = await contract.store.messages(session)
    found = await contract.store.session(session)
    for number, (s, m) in enumerate(
        [
            (session, handle),
            (found, message),
            (session.id, handle.id),
            (found, handle.seq),
        ]
    ):
        await contract.store.label(s, m, f"name {number}")
        await contract.store.append(s, user("next"), after=m)
    assert len(await contract.store.labels(session)) == 4
    tree = await contract.store.messages(session, branches=True)
    assert [m.parent_seq for m in tree] == [None, 1, 1, 1, 1]
    call = (await contract.store.append(session, assistant(tool("a"), tool("b")))).parts
    parts = (await contract.store.messages(session))[-1].parts
    await contract.store.settle(session, call[0], output="by handle")
    await contract.store.settle(session, parts[1], output="by object")
    assert [p.text for p in (await contract.store.messages(session))[-1].parts] == [
        "by handle",
        "by object",
    ]


async def test_effects_take_no_prefixes(
    contract: Contract, session: SessionHandle
) -> None:
    m = await contract.store.append(session, assistant(tool("t")), open=True)
    short, tail = m.id[:-1], session.id[-6:]
    with pytest.raises(NotFoundError):
        await contract.store.append(tail, user("x"))
    with pytest.raises(NotFoundError):
        await contract.store.append(session.id[:-1], user("x"))
    with pytest.raises(NotFoundError):
        await contract.store.append(session, user("x"), after=short)
    with pytest.raises(NotFoundError):
        await contract.store.finish(session, short)
    with pytest.raises(NotFoundError):
        await contract.store.settle(session, m.parts[0].id[:-1], output="x")
    slug = (await contract.store.session(session)).slug
    with pytest.raises(NotFoundError):
        await contract.store.set_title(slug, "x")


async def test_a_message_of_another_session_is_not_taken_for_one_of_this(
    contract: Contract, session: SessionHandle
) -> None:
    """Seqs agree by chance; a fork's do not, they mean the same message."""
    await contract.store.append(session, user("here"))
    other = await contract.store.create_session(directory="/tmp")
    await contract.store.append(other, user("there"))
    (message,) = await contract.store.messages(other)
    with pytest.raises(NotFoundError):
        await contract.store.set_leaf(session, message)
    with pytest.raises(NotFoundError):
        await contract.store.append(session, user("x"), after=message)
    fork = await contract.store.fork(other)
    await contract.store.append(fork, user("on"), after=message)
    assert [m.text for m in await contract.store.messages(fork)] == ["there", "on"]


async def test_a_call_is_settled_in_a_later_unit_after_its_message_finished(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        m = fx.append(session, assistant(), open=True)
        call = fx.add_part(session, m, tool("sh", {"cmd": "make"}))
        fx.finish(session, m, finish="tool-calls", cost=0.1)
    await contract.store.append(session, user("While it runs"))
    await contract.store.start(session, call)
    async with contract.store.effects() as fx:
        fx.settle(session, call, output="built", title="Build", exit=0)
        fx.append(session, assistant("It is built."))
    (answer, _, _) = await contract.store.messages(session)
    (part,) = answer.parts
    assert (part.status, part.text, part.title, part.data) == (
        "completed", "built", "Build", {"exit": 0},
    )  # fmt: skip
    assert part.time_started is not None
    assert part.time_ended is not None
    assert part.time_started <= part.time_ended
    assert (await contract.store.session(session)).cost == 0.1
    assert len(await contract.store.search("built")) == 1


async def test_a_call_goes_forward_and_never_back(
    contract: Contract, session: SessionHandle
) -> None:
    m = await contract.store.append(session, assistant(tool("t", {"a": 1}), tool("u")))
    call, failed = m.parts
    await contract.store.start(session, call)
    await contract.store.start(session, call, input={"a": 1})
    with pytest.raises(ConflictError):
        await contract.store.start(session, call, input={"a": 2})
    await contract.store.settle(session, call, output="x")
    await contract.store.settle(session, call, output="x")
    with pytest.raises(ConflictError):
        await contract.store.settle(session, call, output="y")
    await contract.store.settle(session, failed, outcome="denied")
    with pytest.raises(ConflictError):
        await contract.store.settle(session, failed, error="denied")
    (message,) = await contract.store.messages(session)
    assert [(p.status, p.outcome) for p in message.parts] == [
        ("completed", None),
        ("error", "denied"),
    ]


async def test_a_part_is_added_to_an_open_or_a_finished_message(
    contract: Contract, session: SessionHandle
) -> None:
    opened = await contract.store.append(session, assistant("a"), open=True)
    for text in ("b", "c"):
        await contract.store.add_part(session, opened, text)
    await contract.store.finish(session, opened)
    await contract.store.add_part(session, opened, "d")
    with pytest.raises(ConflictError):
        await contract.store.finish(session, opened, finish="length")
    (message,) = await contract.store.messages(session)
    assert [p.text for p in message.parts] == ["a", "b", "c", "d"]


async def test_usage_said_when_a_message_opened_is_counted_once(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    kept = await store.append(
        session, assistant(), open=True, cost=0.5, tokens={"input": 3}
    )
    more = await store.append(
        session, assistant(), open=True, cost=0.5, tokens={"input": 3}
    )
    await store.finish(session, kept)
    await store.finish(session, more, cost=2.0, tokens={"output": 4}, error={"x": 1})
    found = await store.session(session)
    assert (found.cost, found.tokens_input, found.tokens_output) == (2.5, 6, 4)
    first, second = await store.messages(session)
    assert (first.cost, first.tokens_input, first.tokens_output) == (0.5, 3, None)
    assert (second.cost, second.tokens_input, second.tokens_output) == (2.0, 3, 4)
    contract.check()


async def test_a_seq_names_no_message_before_it_is_there(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(NotFoundError):
        await contract.store.set_leaf(session, 1)
    with pytest.raises(InvalidInputError):
        await contract.store.set_leaf(session, 0)
    never = MessageHandle(session.id, "msg_never")
    with pytest.raises(NotFoundError):
        await contract.store.set_leaf(session, never)
