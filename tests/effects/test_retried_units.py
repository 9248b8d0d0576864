"""Units are retried as one: written rows are recognised, other content is a conflict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from backends import Backend
from facades import AwaitedStore, Contract
from test_one_transaction import everything, story

from sessiondb import (
    ConflictError,
    MessageDraft,
    SessionHandle,
    Store,
    assistant,
    event,
    file,
    part,
    reasoning,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.effects import Unit
from sessiondb.effects.open_message import CompleteText, OpenPart

LONG = "long " * 500


def unknown_outcome(unit: Unit) -> None:
    """Make a committed unit one whose outcome its caller never learned."""
    assert unit.committed
    unit.committed = False


def timeless(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows without their row numbers and times."""
    kept = (
        tuple(v for v in row[1:] if not isinstance(v, int) or v < 10**9) for row in rows
    )
    return sorted(kept, key=repr)


async def test_a_unit_of_every_verb_retried_gives_no_duplicates(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        for step in story(fx, session)[:-1]:
            step()
    before = everything(contract)
    unknown_outcome(fx)
    await contract.store.commit(fx)
    after = everything(contract)
    assert {n: len(r) for n, r in after.items()} == {
        n: len(r) for n, r in before.items()
    }
    for name in ("message", "part", "todo", "label", "file_diff", "blob", "project"):
        assert timeless(after[name]) == timeless(before[name]), name
    contract.check()


async def test_a_retried_delete_of_a_removed_session_succeeds(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        fx.delete(session)
    unknown_outcome(fx)
    await contract.store.commit(fx)
    await contract.store.reap()
    unknown_outcome(fx)
    await contract.store.commit(fx)


async def test_a_unit_that_failed_is_tried_again_as_it_is(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(LookupError):
        async with contract.store.effects() as fx:
            m = fx.append(session, user("one"))
            fx.append("late", user("two"))
    await contract.store.create_session(id="late", directory="/tmp")
    await contract.store.commit(fx)
    assert [x.seq for x in await contract.store.messages(session)] == [m.seq] == [1]
    assert len(await contract.store.messages("late")) == 1


async def the_same_block(store: AwaitedStore) -> dict[str, Any]:
    """Write a block as a program repeats it after it was killed: with ids of its own."""
    async with store.effects() as fx:
        s = fx.create_session(id="s1", title="Once", directory="/tmp")
        ask = fx.append(s, user("Go", file(content=b"x", mime="text/plain"), id="m1"))
        answer = fx.append(
            s, assistant(reasoning("hm"), tool("sh", {"a": 1, "b": [2]}, call_id="c1"), id="m2"),
            open=True, model="m", cost=0.5,
        )  # fmt: skip
        later = fx.add_part(s, answer, tool("web", {"q": LONG}, id="p3"))
        fx.add_part(s, answer, text(LONG, id="p4"))
        fx.start(s, answer.parts[1], input={"a": 2})
        fx.finish(s, answer, tokens={"output": 7})
        fx.append(s, MessageDraft("tool", (tool_result("c1", "done\0"),), id="m3"))
        fx.settle(s, later, error="no network", http=503)
        fx.append(s, event("model_change", model_id="n", id="m4"))
        fx.label(s, ask, "start")
        fx.set_todos(s, ["a"])
        fork = fx.fork(s, at=ask, id="f1")
        fx.set_leaf(s, ask)
        other = fx.append(s, assistant("Another way.", id="m5"), expect_leaf=ask)
        fx.add_prompt("Go", session=s, id="q1")
    return {"answer": answer, "other": other, "fork": fork}


@pytest.mark.slow
async def test_the_same_block_with_ids_of_its_own_gives_no_duplicates(
    contract: Contract,
) -> None:
    first = await the_same_block(contract.store)
    before = everything(contract)
    await contract.store.append("s1", user("Meanwhile.", id="later"))
    again = await the_same_block(contract.store)
    now = await contract.store.messages("s1", branches=True)
    assert [m.id for m in now] == ["m1", "m2", "m3", "m4", "m5", "later"]
    assert [m.id for m in await contract.store.messages("s1")] == ["m1", "m5", "later"]
    for name in ("session", "todo", "label", "prompt", "blob"):
        assert len(everything(contract)[name]) == len(before[name])
    assert [h.seq for h in again.values() if hasattr(h, "seq")] == [2, 5]
    assert again["answer"].parts == first["answer"].parts
    contract.check()


async def test_a_repeated_unit_does_not_change_the_revision(contract: Contract) -> None:
    async def block() -> None:
        async with contract.store.effects() as fx:
            fx.create_session(id="s1", directory="/tmp")
            m = fx.append("s1", assistant(id="m1"), open=True)
            c = fx.add_part("s1", m, tool("t", id="p1"))
            fx.start("s1", c)
            fx.settle("s1", c, output="x")
            fx.finish("s1", m)
            fx.set_leaf("s1", m)

    await block()
    before = everything(contract)
    await block()
    assert everything(contract) == before


OTHERS: dict[str, Callable[[Unit], object]] = {
    "role": lambda fx: fx.append("s", assistant("Go", id="m")),
    "kind": lambda fx: fx.append(
        "s", MessageDraft("user", (text("Go"),), id="m", kind="odd")
    ),
    "turn": lambda fx: fx.append("s", user("Go", id="m"), turn_id="elsewhere"),
    "text": lambda fx: fx.append("s", user("Stop", id="m")),
    "long text": lambda fx: fx.append("s", user(LONG + "?", id="long")),
    "fewer parts": lambda fx: fx.append("s", user(id="m")),
    "more parts": lambda fx: fx.append("s", user("Go", "on", id="m")),
    "type of a part": lambda fx: fx.append("s", user(reasoning("Go"), id="m")),
    "data": lambda fx: fx.append("s", user(part("x", n=2), id="data")),
    "large data": lambda fx: fx.append("s", user(part("x", n=LONG + "?"), id="large")),
    "file": lambda fx: fx.append("s", user(file("b.png"), id="file")),
    "tool": lambda fx: fx.append(
        "s", assistant(tool("u", {"a": 1}, output="o"), id="call")
    ),
    "input": lambda fx: fx.append(
        "s", assistant(tool("t", {"a": 2}, output="o"), id="call")
    ),
    "output": lambda fx: fx.append(
        "s", assistant(tool("t", {"a": 1}, output="p"), id="call")
    ),
    "how it ended": lambda fx: fx.append(
        "s", assistant(tool("t", {"a": 1}, error="o"), id="call")
    ),
    "result": lambda fx: fx.append("s", user(tool_result("c9", "y"), id="result")),
    "added part": lambda fx: fx.add_part("s", "open", text("y", id="p")),
    "settled": lambda fx: fx.settle("s", "pc", output="other"),
    "settled otherwise": lambda fx: fx.settle("s", "pc", error="o"),
    "started": lambda fx: fx.start("s", "pc", input={"other": 1}),
    "finished": lambda fx: fx.finish("s", "m2", finish="length"),
    "finished cost": lambda fx: fx.finish("s", "m2", cost=2.0),
    "parent": lambda fx: fx.create_session(id="child", directory="/tmp"),
    "relation": lambda fx: fx.create_session(id="child", parent="s", relation="fork"),
    "fork of another": lambda fx: fx.fork("other", id="fork"),
    "fork at another": lambda fx: fx.fork("s", at="m2", id="fork"),
    "prompt": lambda fx: fx.add_prompt("Stop", id="q"),
}


async def with_content(store: AwaitedStore) -> None:
    async with store.effects() as fx:
        fx.create_session(id="s", directory="/tmp")
        fx.create_session(id="other", directory="/tmp")
        fx.create_session(id="child", parent="s")
        fx.append("s", user("Go", id="m"))
        fx.append("s", user(LONG, id="long"))
        fx.append("s", user(part("x", n=1), id="data"))
        fx.append("s", user(part("x", n=LONG), id="large"))
        fx.append("s", user(file("a.png"), id="file"))
        fx.append("s", assistant(tool("t", {"a": 1}, output="o", id="pc"), id="call"))
        fx.append("s", assistant(tool("t", call_id="c9"), id="asks"))
        fx.append("s", user(tool_result("c9", "x"), id="result"))
        fx.append("s", assistant("x", id="m2"), cost=1.0, finish="stop")
        fx.append("s", assistant(text("x", id="p"), id="open"), open=True)
        fx.fork("s", at="m", id="fork")
        fx.add_prompt("Go", id="q")


async def test_other_content_under_a_known_id_is_a_conflict(contract: Contract) -> None:
    await with_content(contract.store)
    before = everything(contract)
    for name, queue in OTHERS.items():
        unit = contract.store.unit()
        queue(unit)
        with pytest.raises(ConflictError) as refused:
            await contract.store.commit(unit)
        assert refused.value.position == 0, name
    assert everything(contract) == before


async def test_the_order_of_keys_and_times_do_not_change_the_content(
    contract: Contract,
) -> None:
    await contract.store.create_session(id="s", directory="/tmp")
    one = assistant(
        tool("t", {"a": 1, "b": 2}, output="x"), part("y", c=1, d=2), id="m"
    )
    two = assistant(
        tool("t", {"b": 2, "a": 1}, output="x"), part("y", d=2, c=1), id="m"
    )
    first = await contract.store.append("s", one, time=1_700_000_000_000)
    again = await contract.store.append("s", two, time=1_700_000_001_000)
    assert (again.seq, again.parts) == (first.seq, first.parts)


async def test_a_message_that_was_continued_is_recognised_by_its_first_draft(
    contract: Contract,
) -> None:
    """An open message grew, its call was answered, and it was finished."""
    await contract.store.create_session(id="s", directory="/tmp")
    draft = assistant(text(""), tool("t", {"a": 1}), id="m")
    m = await contract.store.append("s", draft, open=True)
    await contract.store.start("s", m.parts[1], input={"a": 2})
    await contract.store.settle("s", m.parts[1], output="x", note=1)
    await contract.store.add_part("s", m, "more")
    await contract.store.finish("s", m)
    again = await contract.store.append("s", draft, open=True)
    assert (again.seq, again.parts) == (m.seq, m.parts)


def test_the_end_of_a_stream_may_be_written_again(backend: Backend) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        session = store.create_session()
        answer = store.append(session, assistant(text("")), open=True)
        open_part = OpenPart(session.id, answer.id, answer.parts[0].id)

        def end(said: str) -> None:
            unit = store._core.unit()
            unit.tried = True
            unit.add(CompleteText(open_part, (said, None, None, None), (), ended=True))
            unit.finish(session, answer)
            store.commit(unit)

        end("done")
        end("done")
        with pytest.raises(ConflictError, match="finished by another writer"):
            end("something else")
        (message,) = store.messages(session)
        assert (message.text, message.finish) == ("done", "stop")
