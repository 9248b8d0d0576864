"""Conditions of a unit: it is written if a session is as it was read, else not at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from backends import Backend
from facades import AwaitedStore, Contract
from processes import start

from sessiondb import LEAF, SessionHandle, Store, assistant, user
from sessiondb.effects import Unit
from sessiondb.errors import ConflictError, InvalidInputError
from sessiondb.maintenance import check

Write = Callable[[Unit, SessionHandle], Any]
#: Verbs that have no condition of their own.
WRITES: dict[str, Write] = {
    "a title": lambda fx, s: fx.set_title(s, "new"),
    "metadata": lambda fx, s: fx.set_metadata(s, {"a": 1}),
    "a fold": lambda fx, s: fx.update_metadata(s, lambda _: {"a": 1}),
    "the leaf": lambda fx, s: fx.set_leaf(s, None),
    "a truncation": lambda fx, s: fx.truncate(s, after=None),
    "a label": lambda fx, s: fx.label(s, 1, "here"),
    "a deletion": lambda fx, s: fx.delete(s),
    "a message": lambda fx, s: fx.append(s, assistant("answer")),
}


async def begun(store: AwaitedStore) -> SessionHandle:
    session: SessionHandle = await store.create_session()
    await store.append(session, user("asked"))
    return session


def revision_of(contract: Contract, session: SessionHandle) -> int:
    sql = "SELECT revision FROM session WHERE id = ?"
    ((revision,),) = contract.rows(sql, session.id)
    return int(revision)


@pytest.mark.parametrize("name", WRITES)
async def test_a_verb_is_done_if_the_revision_is_the_one_that_was_read(
    contract: Contract, name: str
) -> None:
    store = contract.store
    session = await begun(store)
    read = revision_of(contract, session)
    async with store.effects() as fx:
        fx.expect(session, revision=read)
        WRITES[name](fx, session)
    assert revision_of(contract, session) > read
    contract.check()


@pytest.mark.parametrize("name", WRITES)
async def test_a_verb_is_not_done_if_another_one_was_faster(
    contract: Contract, name: str
) -> None:
    store = contract.store
    session, other = await begun(store), await store.create_session()
    read = revision_of(contract, session)
    await store.append(session, user("faster"))
    before = contract.rows("SELECT * FROM session ORDER BY id")
    message = f"session {session.id} is at revision {read + 1}, expected {read}"
    with pytest.raises(ConflictError, match=re.escape(message)) as refused:
        async with store.effects() as fx:
            fx.set_title(other, "also of this unit")
            fx.expect(session, revision=read)
            WRITES[name](fx, session)
    assert (refused.value.effect, refused.value.position) == ("expect", 1)
    assert contract.rows("SELECT * FROM session ORDER BY id") == before


async def test_the_leaf_is_expected_by_handle_id_seq_or_none(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    async with store.effects() as fx:
        fx.expect(session, leaf=None)
        first = fx.append(session, user("one"))
    for leaf in (first, first.id, first.seq, await store.message(session, 1)):
        async with store.effects() as fx:
            fx.expect(session, leaf=leaf)
            fx.set_title(session, "right")
    await store.append(session, user("two", id="m2"))
    for wrong in (first, first.id, 1, None, "nowhere", 99):
        with pytest.raises(ConflictError, match=r"the leaf of session .* is 2, exp"):
            async with store.effects() as fx:
                fx.expect(session, leaf=wrong)
                fx.set_title(session, "wrong")
        with pytest.raises(ConflictError, match=r"the leaf of session .* is 2, exp"):
            await store.append(session, user("three"), expect_leaf=wrong)
    assert (await store.session(session)).title == "right"


async def test_a_session_is_made_by_this_unit_or_not_at_all(
    contract: Contract,
) -> None:
    store = contract.store
    async with store.effects() as fx:
        opened = fx.open_session("thread")
        fx.expect(opened, absent=True)
        fx.append(opened, user("first"))
    async with store.effects() as fx:
        fx.expect("mine", absent=True)
        fx.create_session(id="mine")
    for name in ("thread", "mine"):
        with pytest.raises(ConflictError, match="exists, at revision 1; expected none"):
            async with store.effects() as fx:
                if name == "thread":
                    fx.expect(fx.open_session("thread"), absent=True)
                else:
                    fx.expect("mine", absent=True)
                fx.create_session(id="other")
    assert len(await store.sessions(empty=True)) == 2
    await store.delete("mine")
    async with store.effects() as fx:
        fx.expect("mine", absent=True)
        fx.create_session(id="mine")
    contract.check()


async def test_an_opened_session_is_expected_as_it_was_before_the_unit(
    contract: Contract,
) -> None:
    store = contract.store
    with pytest.raises(ConflictError, match="does not exist, expected revision 1"):
        async with store.effects() as fx:
            fx.expect(fx.open_session("thread"), revision=1)
    async with store.effects() as fx:
        opened = fx.open_session("thread")
        fx.expect(opened, leaf=None)
        fx.append(opened, user("first"))
    async with store.effects() as fx:
        again = fx.open_session("thread")
        fx.expect(again, revision=1)
        fx.append(again, user("second"))
    assert [m.text for m in await store.messages(opened)] == ["first", "second"]


async def test_a_session_that_is_not_there_does_not_meet_a_condition(
    contract: Contract,
) -> None:
    for state in ({"revision": 3}, {"leaf": None}, {"leaf": "m1"}):
        with pytest.raises(ConflictError, match="does not exist, expected"):
            async with contract.store.effects() as fx:
                fx.expect("nowhere", **state)


async def test_several_conditions_on_several_sessions_hold_together(
    contract: Contract,
) -> None:
    store = contract.store
    one, two = await begun(store), await begun(store)
    async with store.effects() as fx:
        fx.expect(one, revision=2, leaf=1)
        fx.expect(one, leaf=1)
        fx.set_title(one, "changed")
        fx.expect(two, revision=2)
        fx.set_title(two, "changed")
    with pytest.raises(ConflictError):
        async with store.effects() as fx:
            fx.expect(one, revision=3)
            fx.expect(two, revision=2)


BAD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a state of none": {"absent": True, "revision": 1},
    "a leaf of none": {"absent": True, "leaf": None},
    "whatever the leaf is": {"leaf": LEAF},
    "a negative revision": {"revision": -1},
    "a revision that is no number": {"revision": "1"},
    "a truth": {"revision": True},
    "a leaf that is no message": {"leaf": 1.5},
    "a number for absent": {"absent": 1},
}


@pytest.mark.parametrize("name", BAD)
async def test_a_condition_of_the_wrong_kind_is_refused_when_queued(
    contract: Contract, name: str
) -> None:
    unit = contract.store.unit()
    with pytest.raises(InvalidInputError):
        unit.expect("s", **BAD[name])
    assert unit.effects == []


AFTER: dict[str, Callable[[Unit], Any]] = {
    "an append": lambda fx: fx.append("s", user("x")),
    "a new session": lambda fx: fx.create_session(id="s"),
    "a new fork": lambda fx: fx.fork("other", id="s"),
    "a fold": lambda fx: fx.update_metadata("s", lambda _: None),
    "a title": lambda fx: fx.set_title("s", "x"),
}


@pytest.mark.parametrize("name", AFTER)
def test_a_condition_after_another_verb_on_the_session_is_refused_when_queued(
    store: Store, name: str
) -> None:
    unit = store._core.unit()
    AFTER[name](unit)
    with pytest.raises(InvalidInputError, match="expect comes after"):
        unit.expect("s", absent=True)
    unit.expect("another", absent=True)


def test_a_condition_on_what_the_unit_deletes_is_refused_when_queued(
    store: Store,
) -> None:
    unit = store._core.unit()
    unit.delete("s")
    with pytest.raises(ConflictError, match="deletes"):
        unit.expect("s", revision=1)


async def test_a_unit_of_unknown_outcome_is_recognised_by_its_message(
    contract: Contract,
) -> None:
    store = contract.store
    session = await begun(store)
    unit = store.unit()
    unit.expect(session, revision=2)
    unit.append(session, assistant("once"))
    await store.commit(unit)
    unit.committed = False  # as if the outcome was unknown
    await store.commit(unit)
    assert len(await store.messages(session)) == 2

    without_message = store.unit()
    without_message.expect(session, revision=revision_of(contract, session))
    without_message.set_title(session, "once")
    await store.commit(without_message)
    without_message.committed = False
    with pytest.raises(ConflictError, match="revision"):
        await store.commit(without_message)


WINNING = """
import sys
from sessiondb import ConflictError, Store, user
place, session, revision = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Store.open(place, durability="normal") as store:
    sys.stdin.readline()
    try:
        with store.effects() as fx:
            fx.expect(session, revision=revision)
            fx.set_metadata(session, {"winner": sys.argv[4]})
    except ConflictError:
        print("lost")
    else:
        print("won", sys.argv[4])
"""


@pytest.mark.slow
def test_of_several_processes_with_one_revision_exactly_one_wins(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        session = store.create_session()
    for round_ in range(3):
        with Store.open(place, durability="normal") as store:
            read = store.session(session).revision
        names = [f"{round_}-{number}" for number in range(4)]
        children = [start(WINNING, place, session, read, name) for name in names]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        said = [child.communicate(timeout=60)[0].split() for child in children]
        winners = [words[1] for words in said if words[0] == "won"]
        assert len(winners) == 1, said
        with Store.open(place, durability="normal") as store:
            assert store.session(session).metadata == {"winner": winners[0]}
            assert store.session(session).revision == read + 1
            assert check(store) == []
