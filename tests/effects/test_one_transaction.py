"""One transaction: a unit is written completely and in order, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from facades import Contract

from sessiondb import (
    AsyncStore,
    ConflictError,
    FileDiff,
    NotFoundError,
    SessionDBError,
    SessionHandle,
    Store,
    Todo,
    assistant,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.dataclass import dataclass
from sessiondb.effects import Unit
from sessiondb.effects.session import put_label
from sessiondb.effects.transaction import Transaction
from sessiondb.schema.tables import metadata

pytestmark = pytest.mark.slow

LONG = "long " * 500


def story(fx: Unit, s: SessionHandle) -> list[Callable[[], Any]]:
    """Every verb once, in an order that works; each element queues one effect."""
    made: dict[str, Any] = {}

    def keep(name: str, value: Any) -> Any:
        made[name] = value
        return value

    return [
        lambda: keep("new", fx.create_session(title="New", metadata={"a": 1})),
        lambda: keep("ask", fx.append(made["new"], user(text(LONG)))),
        lambda: keep(
            "answer", fx.append(made["new"], assistant(), open=True, model="m")
        ),
        lambda: keep(
            "call", fx.add_part(made["new"], made["answer"], tool("sh", call_id="c1"))
        ),
        lambda: fx.start(made["new"], made["call"], input={"cmd": LONG}),
        lambda: fx.finish(made["new"], made["answer"], cost=0.5, tokens={"input": 3}),
        lambda: fx.settle(made["new"], made["call"], output=LONG + "!"),
        lambda: fx.append(made["new"], user(tool_result("nobody", "asked"))),
        lambda: fx.label(made["new"], made["ask"], "here"),
        lambda: fx.set_todos(made["new"], ["one", Todo("two", "done")]),
        lambda: fx.set_diffs(made["new"], [FileDiff("a.py", before=b"1", after=b"2")]),
        lambda: keep("fork", fx.fork(made["new"])),
        lambda: fx.set_leaf(made["new"], made["ask"]),
        lambda: fx.append(made["new"], assistant("Another way."), cost=0.25),
        lambda: fx.truncate(made["fork"], after=made["ask"]),
        lambda: fx.set_title(made["new"], "Renamed"),
        lambda: fx.set_metadata(made["new"], {"b": 2}),
        lambda: fx.set_permission(made["new"], [{"allow": "*"}]),
        lambda: fx.set_share(made["new"], "https://example.org/s", secret="hush"),
        lambda: fx.set_revert(made["new"], {"message_id": "m"}),
        lambda: fx.set_directory(made["new"], "/tmp/elsewhere"),
        lambda: fx.archive(made["new"]),
        lambda: fx.unarchive(made["new"]),
        lambda: fx.add_prompt("again", session=made["new"]),
        lambda: fx.note_used(made["new"], "tty1", "/tmp"),
        lambda: fx.append(s, user("In what was there.")),
        lambda: fx.delete(s),
    ]


BAD: list[tuple[str, type[SessionDBError], Callable[[Unit, SessionHandle], object]]] = [
    ("append", NotFoundError, lambda fx, s: fx.append("ses_nowhere", user("x"))),
    ("append", ConflictError, lambda fx, s: fx.append(s, user("x"), expect_leaf=77)),
    ("settle", NotFoundError, lambda fx, s: fx.settle(s, "prt_nowhere", output="x")),
    ("label", NotFoundError, lambda fx, s: fx.label(s, 77, "x")),
    ("fork", NotFoundError, lambda fx, s: fx.fork(s, at="msg_nowhere")),
]


def everything(contract: Contract) -> dict[str, list[Any]]:
    # Sums of usage follow from the rest, and an engine may keep none.
    tables = [name for name in metadata.tables if not name.startswith("usage_")]
    return {name: contract.rows(f"SELECT * FROM {name}") for name in tables}


async def test_a_unit_of_every_verb_is_written_completely(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        steps = story(fx, session)
        for step in steps:
            step()
        assert contract.rows("SELECT count(*) FROM session") == [(1,)]
    assert len(fx.effects) == len(steps)
    assert contract.rows("SELECT revision FROM session WHERE time_deleted IS NULL") == [
        (1,),
        (1,),
    ]
    contract.check()


@pytest.mark.parametrize("bad", range(len(BAD)))
async def test_a_failure_at_any_position_writes_nothing_and_is_named(
    contract: Contract, session: SessionHandle, bad: int
) -> None:
    await contract.store.append(session, user("Hello"))
    verb, kind, queue = BAD[bad]
    length = len(story(contract.store.unit(), session))
    before = everything(contract)
    for position in range(length):
        with pytest.raises(kind) as failed:
            async with contract.store.effects() as fx:
                steps = story(fx, session)
                for step in steps[:position]:
                    step()
                queue(fx, session)
                for step in steps[position:-1]:
                    step()
        assert (failed.value.effect, failed.value.position) == (verb, position)
        assert f"{verb} (effect {position})" in str(failed.value)
    assert everything(contract) == before
    contract.check()


async def test_a_unit_left_by_an_exception_writes_nothing_and_hides_nothing(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with contract.store.effects() as fx:
            fx.append(session, user("half"))
            1 / 0  # noqa: B018
    assert await contract.store.messages(session) == []
    await contract.store.commit(fx)
    assert [m.text for m in await contract.store.messages(session)] == ["half"]


async def test_effects_see_what_the_unit_did_before_them(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        first = fx.append(session, user("one"))
        fx.append(session, user("two"), expect_leaf=first)
        fx.append(session, user("three"), after=first)
    found = await contract.store.messages(session, branches=True)
    assert [(m.seq, m.parent_seq, m.text) for m in found] == [
        (1, None, "one"),
        (2, 1, "two"),
        (3, 1, "three"),
    ]
    (row,) = contract.rows(
        "SELECT revision, last_seq, leaf_seq, message_count FROM session"
    )
    assert row == (2, 3, 3, 3)


async def test_a_unit_may_write_and_note_a_use_in_any_order(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        fx.append(session, user("one"))
        fx.note_used(session, "tty1", "/tmp")
        fx.append(session, user("two"))
    assert [m.seq for m in await contract.store.messages(session)] == [1, 2]
    contract.check()


async def test_a_unit_is_committed_once_and_then_closed(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        fx.append(session, user("once"))
    await contract.store.commit(fx)
    assert len(await contract.store.messages(session)) == 1
    with pytest.raises(ValueError, match="committed"):
        fx.append(session, user("late"))


async def test_an_empty_unit_writes_nothing(
    contract: Contract, session: SessionHandle
) -> None:
    before = everything(contract)
    async with contract.store.effects():
        pass
    assert everything(contract) == before


@pytest.mark.parametrize("facade", [Store, AsyncStore])
def test_every_verb_of_a_unit_is_a_verb_of_the_store(facade: type) -> None:
    verbs = {name for name in vars(Unit) if not name.startswith("_")}
    assert {
        name for name in verbs if not callable(getattr(facade, name, None))
    } == set()


async def test_expect_revision_means_before_the_unit(
    contract: Contract, session: SessionHandle
) -> None:
    """A fork writes the session's row in between; the unit is one revision all the same."""
    async with contract.store.effects() as fx:
        fx.append(session, user("one"), expect_revision=1)
        fx.fork(session)
        fx.append(session, user("two"), expect_revision=1)
    assert (await contract.store.session(session)).revision == 2


@dataclass(frozen=True)
class Applied:
    """An effect of a test's own."""

    verb = "test"
    apply: Callable[[Transaction], object]


async def test_a_savepoint_undoes_its_block_and_nothing_else(
    contract: Contract, session: SessionHandle
) -> None:
    def name_twice(tx: Transaction) -> None:
        put_label(tx, session.id, 1, "before")
        with pytest.raises(LookupError), tx.savepoint():
            put_label(tx, session.id, 1, "inside")
            raise LookupError
        with tx.savepoint():
            put_label(tx, session.id, 1, "after")

    await contract.store.append(session, user("x"))
    async with contract.store.effects() as fx:
        fx.add(Applied(name_twice))
    labels = contract.backend.rows(contract.place, "SELECT label FROM label")
    assert sorted(labels) == [("after",), ("before",)]


async def test_statements_run_after_one_that_was_guarded_failed(
    contract: Contract, session: SessionHandle
) -> None:
    def label_nothing(tx: Transaction) -> None:
        with pytest.raises(tx.engine.Error), tx.guarded():
            put_label(tx, session.id, 7, "nowhere")
        put_label(tx, session.id, 1, "here")

    await contract.store.append(session, user("x"))
    async with contract.store.effects() as fx:
        fx.add(Applied(label_nothing))
    labels = contract.backend.rows(contract.place, "SELECT label FROM label")
    assert labels == [("here",)]
