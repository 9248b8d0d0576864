"""Single messages: pop, remove and replace, and nothing of them is left."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from backends import Backend
from facades import AwaitedStore, Contract
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run, start

from sessiondb import (
    AsyncStore,
    Message,
    MessageDraft,
    PartDraft,
    SessionHandle,
    Store,
    Tokens,
    assistant,
    codec,
    event,
    part,
    reasoning,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.effects import Unit
from sessiondb.errors import InvalidInputError, LeaseHeldError, NotFoundError
from sessiondb.maintenance import check, vacuum
from sessiondb.model import FileDiff

LARGE = "L" * 3000


async def words(store: AwaitedStore, session: SessionHandle) -> list[str]:
    return [m.text or "" for m in await store.messages(session)]


async def conversation(store: AwaitedStore) -> tuple[SessionHandle, list[str]]:
    """Two turns: a question with an answer and a note, and another question."""
    async with store.effects() as fx:
        session = fx.create_session()
        messages = [
            fx.append(session, user("first question")),
            fx.append(
                session, assistant("answer"), cost=1.0, tokens={"input": 5}, model="m1"
            ),
            fx.append(session, assistant("note"), cost=0.5, model="m2"),
            fx.append(session, user("second question")),
        ]
    return session, [message.id for message in messages]


# -- pop -----------------------------------------------------------------------


async def test_pop_returns_the_newest_message_as_a_read_does(
    contract: Contract,
) -> None:
    store = contract.store
    session, ids = await conversation(store)
    for name in reversed(ids):
        last = await store.message(session, name)
        popped = await store.pop(session)
        assert popped == last
        assert name not in [m.id for m in await store.messages(session, branches=True)]
        contract.check()
    revision = (await store.session(session)).revision
    assert await store.pop(session) is None
    after = await store.session(session)
    assert (after.revision, after.cost, after.tokens) == (revision, None, Tokens())


async def test_pop_in_a_unit_has_its_message_after_the_commit(
    contract: Contract,
) -> None:
    store = contract.store
    session, ids = await conversation(store)
    async with store.effects() as fx:
        first = fx.pop(session)
        fx.append(session, user("of this unit", id="m"))
        second, third = fx.pop(session), fx.pop(session)
        assert (first.message, second.message) == (None, None)
    found = [item.message.id for item in (first, second, third) if item.message]
    assert found == [ids[3], "m", ids[2]]
    contract.check()


async def test_pop_on_an_opened_session_takes_from_the_one_that_is_found(
    contract: Contract,
) -> None:
    store = contract.store
    async with store.effects() as fx:
        fx.append(fx.open_session("thread"), user("x"))
    async with store.effects() as fx:
        opened = fx.open_session("thread")
        popped = fx.pop(opened)
        replaced = fx.append(opened, user("y"))
        again = fx.replace(opened, replaced, user("z"))
    assert popped.message is not None
    assert popped.message.text == "x"
    assert again.session_id == opened.id
    assert await words(store, opened) == ["z"]


async def test_pop_takes_the_leaf_although_a_branch_continues_from_it(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    for word in "abcd":
        await store.append(session, user(word))
    await store.set_leaf(session, 2)
    popped = await store.pop(session)
    assert popped.text == "b"
    assert await words(store, session) == ["a"]
    parents = {
        m.seq: m.parent_seq for m in await store.messages(session, branches=True)
    }
    assert parents == {1: None, 3: 1, 4: 3}
    contract.check()


async def test_a_unit_that_failed_popped_nothing(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    unit = store.unit()
    popped = unit.pop(session)
    unit.append("nowhere", user("x"))
    with pytest.raises(NotFoundError):
        await store.commit(unit)
    assert popped.message is None
    assert len(await store.messages(session)) == len(ids)


async def test_a_unit_of_unknown_outcome_pops_once(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    unit = store.unit()
    popped = unit.pop(session)
    unit.remove(session, [ids[0]])
    unit.replace(session, ids[1], assistant("again"))
    for _ in range(2):
        await store.commit(unit)
        unit.committed = False  # as if the outcome was unknown
    assert popped.message is not None
    assert popped.message.id == ids[3]
    assert await words(store, session) == ["again", "note"]
    contract.check()


# -- remove --------------------------------------------------------------------


async def test_what_followed_a_removed_message_follows_what_came_before(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    for word in "abc":
        await store.append(session, user(word))
    await store.append(session, user("d"), after=1)
    await store.append(session, user("e"), after=2)
    await store.remove(session, [2])
    found = await store.messages(session, branches=True)
    assert {m.text: m.parent_seq for m in found} == {"a": None, "c": 1, "d": 1, "e": 1}
    assert await words(store, session) == ["a", "e"]
    await store.remove(session, [found[0], 3, found[2].id])
    found = await store.messages(session, branches=True)
    assert {m.text: m.parent_seq for m in found} == {"e": None}
    await store.append(session, user("f"))
    assert [(m.seq, m.text) for m in await store.messages(session)] == [
        (5, "e"),
        (6, "f"),
    ]
    contract.check()


async def test_the_leaf_moves_to_the_nearest_message_that_is_left(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    for word in "abcd":
        await store.append(session, user(word))
    await store.remove(session, [4, 3])
    assert (await store.session(session)).leaf_seq == 2
    await store.remove(session, [1, 2])
    after = await store.session(session)
    assert (after.leaf_seq, after.message_count, after.prompt_count) == (None, 0, 0)
    contract.check()


async def test_counters_model_and_title_are_those_of_what_is_left(
    contract: Contract,
) -> None:
    store = contract.store
    session, ids = await conversation(store)
    await store.remove(session, [ids[2]])
    after = await store.session(session)
    assert (after.cost, after.model_id, after.message_count) == (1.0, "m1", 3)
    assert after.title == "first question"
    await store.remove(session, [ids[0]])
    assert (await store.session(session)).title == "second question"
    assert not await store.search("first")
    await store.remove(session, [ids[1], ids[3]])
    after = await store.session(session)
    assert (after.cost, after.tokens, after.model_id, after.title) == (
        None,
        Tokens(),
        None,
        "",
    )
    await store.append(session, user("third question"))
    assert (await store.session(session)).title == "third question"
    contract.check()


async def test_a_title_that_was_stated_stays(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    await store.set_title(session, "first question", by="user")
    await store.remove(session, ids)
    assert (await store.session(session)).title == "first question"


async def test_what_followed_a_removed_prompt_belongs_to_the_turn_before(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    async with store.effects() as fx:
        first = fx.append(session, user("one"))
        second = fx.append(session, user("two"))
        for word in "abc":
            fx.append(session, assistant(word))
        fx.append(session, assistant("branch"), after=second)
        third = fx.append(session, user("three"))
        fx.append(session, assistant("d"))
    await store.remove(session, [second])
    turns = {m.text: m.turn_id for m in await store.messages(session, branches=True)}
    assert turns == {
        **dict.fromkeys(["one", "a", "b", "c", "branch"], first.id),
        **dict.fromkeys(["three", "d"], third.id),
    }
    await store.remove(session, [first])
    added = await store.append(session, assistant("e"), after=3)
    turns = {m.text: m.turn_id for m in await store.messages(session, branches=True)}
    assert {turns[word] for word in ("a", "b", "c", "branch", "e")} == {None}
    assert added.seq == 9
    contract.check()


async def test_labels_and_diffs_go_with_their_message(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    await store.label(session, ids[1], "here")
    await store.label(session, ids[2], "there")
    await store.set_diffs(
        session, [FileDiff("a.py", seq=2, after=b"x" * 2000), FileDiff("b.py", seq=3)]
    )
    await store.remove(session, [ids[1]])
    assert [label.label for label in await store.labels(session)] == ["there"]
    assert [diff.path for diff in await store.diffs(session)] == ["b.py"]
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()


async def test_forks_keep_their_copies_and_count_them(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    fork = await store.fork(session)
    await store.remove(session, ids[:2])
    assert await words(store, fork) == [
        "first question",
        "answer",
        "note",
        "second question",
    ]
    assert (await store.session(fork)).cost == 1.0
    assert (await store.session(session)).cost == 0.5
    assert [hit.session.id for hit in await store.search("answer")] == [fork.id]
    contract.check()
    await store.remove(fork, [ids[2]])
    assert (await store.session(fork)).cost_inherited is None
    contract.check()


async def test_subagents_of_a_removed_message_stay(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    helper = await store.create_session(
        parent=session, parent_message=ids[1], call_id="c"
    )
    await store.append(helper, user("help"))
    await store.remove(session, [ids[1]])
    (found,) = await store.subagents(session)
    assert (found.id, found.parent_seq, found.call_id) == (helper.id, 2, "c")
    contract.check()


async def test_nothing_to_remove_writes_nothing_and_a_message_is_removed_once(
    contract: Contract,
) -> None:
    store = contract.store
    session, ids = await conversation(store)
    before = (await store.session(session)).revision
    await store.remove(session, [])
    assert (await store.session(session)).revision == before
    await store.remove(session, [ids[1], 2, ids[1]])
    assert (await store.session(session)).revision == before + 1
    for gone in (ids[1], 2, "nowhere", 99):
        with pytest.raises(NotFoundError):
            await store.remove(session, [ids[0], gone])
    assert len(await store.messages(session)) == 3


async def test_an_open_message_is_removed_like_any_other(contract: Contract) -> None:
    store = contract.store
    session = await store.create_session()
    await store.append(
        session, assistant("so far", tool("t", {}, call_id="c")), open=True
    )
    assert (await store.pop(session)).text == "so far"
    assert await store.unfinished() == []
    contract.check()


async def test_a_stream_whose_message_is_removed_fails_and_leaves_nothing(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    with pytest.raises(NotFoundError):
        async with store.stream(session) as out:
            out.text().add("some words")
            await out.flush()
            await store.pop(session)
            out.text().add("more")
            await out.flush()
    assert await store.messages(session) == []
    contract.check()


LEASED: dict[str, Callable[[Unit, str], Any]] = {
    "pop": lambda fx, s: fx.pop(s),
    "remove": lambda fx, s: fx.remove(s, [1]),
    "replace": lambda fx, s: fx.replace(s, 1, user("x")),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", LEASED)
def test_a_lease_of_another_process_protects_the_messages(
    store: Store, backend: Backend, verb: str
) -> None:
    session = store.create_session()
    store.append(session, user("x"))
    code = """
    import sys
    from sessiondb import Store
    with Store.open(sys.argv[1]) as store, store.lease(sys.argv[2]):
        print("held", flush=True)
        sys.stdin.readline()
    """
    child = start(code, backend.place_of(store), session)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(LeaseHeldError), store.effects() as fx:
        LEASED[verb](fx, session.id)
    child.communicate("done\n", timeout=60)
    assert len(store.messages(session)) == 1


# -- calls and results -----------------------------------------------------------


async def called(store: AwaitedStore, output: str) -> SessionHandle:
    """A prompt, a call, its result as a record of its own, and an answer."""
    async with store.effects() as fx:
        session: SessionHandle = fx.create_session()
        fx.append(session, user("ask"))
        fx.append(session, assistant(tool("bash", {"run": "it"}, call_id="c")))
        fx.append(session, MessageDraft("tool", (tool_result("c", output),)))
        fx.append(session, assistant("done"))
    return session


async def shown(
    store: AwaitedStore, session: SessionHandle
) -> list[tuple[str, str | None, str | None]]:
    found = await store.messages(session, branches=True)
    parts = [item for m in found for item in m.parts if item.call_id]
    return [(item.type, item.status, item.text) for item in parts]


OUTPUTS = ["secret words", "secret " + LARGE, "secret\0words", "secret\0" + LARGE, ""]


@pytest.mark.parametrize("output", OUTPUTS, ids=range(len(OUTPUTS)))
async def test_a_call_waits_again_when_its_result_is_removed(
    contract: Contract, output: str
) -> None:
    store = contract.store
    session = await called(store, output)
    assert await shown(store, session) == [
        ("tool", "completed", output),
        ("tool-result", None, output),
    ]
    await store.remove(session, [3])
    assert await shown(store, session) == [("tool", "pending", None)]
    assert not await store.search("secret")
    assert [item.session.id for item in await store.unfinished()] == [session.id]
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()
    await store.append(session, MessageDraft("tool", (tool_result("c", "other"),)))
    assert await shown(store, session) == [
        ("tool", "completed", "other"),
        ("tool-result", None, "other"),
    ]
    assert await store.unfinished() == []
    contract.check()


async def test_a_call_that_ran_runs_again(contract: Contract) -> None:
    store = contract.store
    session = await store.create_session()
    await store.append(session, assistant(tool("bash", {}, call_id="c")))
    await store.start(session, "c")
    await store.append(session, MessageDraft("tool", (tool_result("c", "x"),)))
    await store.pop(session)
    assert await shown(store, session) == [("tool", "running", None)]
    contract.check()


@pytest.mark.parametrize("output", OUTPUTS, ids=range(len(OUTPUTS)))
async def test_a_result_keeps_its_text_when_its_call_is_removed(
    contract: Contract, output: str
) -> None:
    store = contract.store
    session = await called(store, output)
    await store.remove(session, [2])
    assert await shown(store, session) == [("tool-result", None, output)]
    if output.startswith("secret "):
        assert [hit.seq for hit in await store.search("secret")] == [3]
    contract.check()


async def test_call_and_result_go_together(contract: Contract) -> None:
    store = contract.store
    session = await called(store, "secret " + LARGE)
    await store.remove(session, [2, 3])
    assert await words(store, session) == ["ask", "done"]
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()


async def test_another_result_of_the_call_takes_the_place_of_the_removed_one(
    contract: Contract,
) -> None:
    store = contract.store
    session = await called(store, "first")
    await store.append(
        session, MessageDraft("tool", (tool_result("c", "second"),)), after=2
    )
    await store.append(
        session, MessageDraft("tool", (tool_result("c", "first"),)), after=2
    )
    await store.remove(session, [3])
    assert [text for *_, text in await shown(store, session)] == [
        "first",
        "second",
        "first",
    ]
    contract.check()
    await store.remove(session, [6])
    assert await shown(store, session) == [
        ("tool", "completed", "second"),
        ("tool-result", None, "second"),
    ]
    contract.check()


async def test_of_two_calls_with_one_id_each_has_its_own_result(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    for output in ("one", "two"):
        await store.append(session, assistant(tool("bash", {}, call_id="c")))
        await store.append(session, MessageDraft("tool", (tool_result("c", output),)))
    await store.remove(session, [2])
    assert await shown(store, session) == [
        ("tool", "pending", None),
        ("tool", "completed", "two"),
        ("tool-result", None, "two"),
    ]
    contract.check()
    await store.remove(session, [3])
    # The result of the second call is now the one of the first.
    assert [kind for kind, *_ in await shown(store, session)] == ["tool", "tool-result"]
    contract.check()


async def test_results_of_calls_with_one_id_keep_their_texts_whatever_goes(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    for output in ("one", "two"):
        await store.append(session, assistant(tool("bash", {}, call_id="c")))
        await store.append(session, MessageDraft("tool", (tool_result("c", output),)))
    await store.remove(session, [2, 3])
    assert await shown(store, session) == [
        ("tool", "completed", "two"),
        ("tool-result", None, "two"),
    ]
    contract.check()
    await store.append(session, assistant(tool("bash", {}, call_id="c")))
    await store.append(session, MessageDraft("tool", (tool_result("c", "three"),)))
    await store.remove(session, [5, 6])
    assert await shown(store, session) == [
        ("tool", "completed", "two"),
        ("tool-result", None, "two"),
    ]
    contract.check()


async def test_a_truncation_lets_calls_wait_whose_results_it_removes(
    contract: Contract,
) -> None:
    store = contract.store
    session = await called(store, "secret")
    await store.truncate(session, after=2)
    assert await shown(store, session) == [("tool", "pending", None)]
    assert not await store.search("secret")
    contract.check()


# -- replace ---------------------------------------------------------------------


async def test_a_message_is_replaced_in_its_place(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    await store.label(session, ids[1], "here")
    before = await store.message(session, ids[1])
    draft = assistant(reasoning("hm"), text("better"), note=1)
    handle = await store.replace(session, ids[1], draft, finish="length")
    after = await store.message(session, ids[1])
    assert (handle.id, handle.seq) == (ids[1], 2)
    assert [item.id for item in handle.parts] == [item.id for item in after.parts]
    assert [item.text for item in after.parts] == ["hm", "better"]
    same = ("id", "seq", "parent_seq", "turn_id", "time_created", "time_completed",
            "cost", "tokens", "model_id")  # fmt: skip
    assert [getattr(after, name) for name in same] == [
        getattr(before, name) for name in same
    ]
    assert (after.finish, after.data) == ("length", {"note": 1})
    assert [label.seq for label in await store.labels(session)] == [2]
    assert [hit.seq for hit in await store.search("better")] == [2]
    assert not await store.search("answer")
    contract.check()


async def test_the_new_usage_and_model_are_counted(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    fork = await store.fork(session)
    await store.replace(
        session, ids[2], assistant("x"), cost=3.0, tokens={"output": 2}, model="m9"
    )
    after = await store.session(session)
    assert (after.cost, after.model_id) == (4.0, "m9")
    assert after.tokens is not None
    assert (after.tokens.input, after.tokens.output) == (5, 2)
    contract.check()
    await store.replace(fork, ids[2], assistant("y"), cost=8.0, response_id="r1")
    contract.check()
    await store.replace(session, ids[2], user("not an answer"))
    assert (await store.session(session)).model_id == "m1"
    contract.check()


async def test_a_message_that_becomes_a_copy_is_one_with_all_its_parts(
    contract: Contract,
) -> None:
    store = contract.store
    sessions = [await store.create_session(directory="/tmp") for _ in range(2)]
    for session in sessions:
        message = await store.append(
            session, assistant("an answer"), response_id="r", time=1_700_000_000_000
        )
        await store.replace(session, message, assistant("an answer"), cost=1.0)
    assert [hit.session.id for hit in await store.search("answer")] == [sessions[0].id]
    contract.check()


async def test_prompts_are_counted_by_what_they_are_now(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    assert (await store.session(session)).prompt_count == 2
    await store.replace(session, ids[0], event("note", "no prompt"))
    after = await store.session(session)
    assert (after.prompt_count, after.title) == (1, "second question")
    contract.check()
    await store.replace(session, ids[1], user("a prompt"))
    assert (await store.session(session)).prompt_count == 2
    contract.check()


async def test_the_title_of_a_replaced_prompt_is_that_of_its_new_text(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    await store.append(session, user("secret " + LARGE))
    assert "secret" in (await store.session(session)).title
    await store.replace(session, 1, user("[redacted]"))
    assert (await store.session(session)).title == "[redacted]"
    assert not await store.search("secret")
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()


async def test_an_open_message_stays_open(contract: Contract) -> None:
    store = contract.store
    session = await store.create_session()
    opened = await store.append(session, assistant("a"), open=True)
    await store.replace(session, opened, assistant("b", tool("t", {}, call_id="c")))
    await store.add_part(session, opened, "c")
    await store.settle(session, "c", output="x")
    await store.finish(session, opened, cost=1.0)
    (message,) = await store.messages(session)
    assert [item.text for item in message.parts] == ["b", "x", "c"]
    contract.check()


async def test_a_replaced_call_keeps_the_result_that_is_a_record(
    contract: Contract,
) -> None:
    store = contract.store
    session = await called(store, "output")
    await store.replace(
        session, 2, assistant(tool("bash", {"run": "[redacted]"}, call_id="c"))
    )
    assert await shown(store, session) == [
        ("tool", "completed", "output"),
        ("tool-result", None, "output"),
    ]
    contract.check()
    await store.replace(session, 2, assistant("no call"))
    assert await shown(store, session) == [("tool-result", None, "output")]
    contract.check()
    await store.replace(session, 2, assistant(tool("bash", {}, call_id="c")))
    assert ("tool", "completed", "output") in await shown(store, session)
    assert await store.unfinished() == []
    contract.check()


async def test_a_replaced_result_is_that_of_its_call(contract: Contract) -> None:
    store = contract.store
    session = await called(store, "secret")
    await store.replace(
        session, 3, MessageDraft("tool", (tool_result("c", "[redacted]"),))
    )
    assert await shown(store, session) == [
        ("tool", "completed", "[redacted]"),
        ("tool-result", None, "[redacted]"),
    ]
    assert not await store.search("secret")
    contract.check()


async def test_a_message_may_be_replaced_by_nothing(contract: Contract) -> None:
    store = contract.store
    session, ids = await conversation(store)
    await store.replace(session, ids[0], user())
    message = await store.message(session, ids[0])
    assert (message.parts, message.role) == ((), "user")
    contract.check()


BAD_DRAFTS: dict[str, Callable[[Unit], object]] = {
    "no draft": lambda fx: fx.replace("s", "m", "text"),  # type: ignore[arg-type]
    "another id": lambda fx: fx.replace("s", "m", user("x", id="other")),
    "a time": lambda fx: fx.replace("s", "m", user("x"), time=1_700_000_000_000),
    "two parts of one id": lambda fx: fx.replace(
        "s", "m", user(text("x", id="p"), text("y", id="p"))
    ),
    "a reserved key": lambda fx: fx.replace(
        "s", "m", MessageDraft("user", (PartDraft("text", data={codec.EXACT: "x"}),))
    ),
    "an unknown field": lambda fx: fx.replace("s", "m", user("x"), colour="red"),  # type: ignore[call-arg]
    "a message that is none": lambda fx: fx.remove("s", [1.5]),  # type: ignore[list-item]
    "one message": lambda fx: fx.remove("s", "m"),
    "no list": lambda fx: fx.remove("s", 1),  # type: ignore[arg-type]
    "a session that is none": lambda fx: fx.pop(1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD_DRAFTS)
def test_what_is_wrong_is_refused_when_queued(store: Store, name: str) -> None:
    unit = store._core.unit()
    with pytest.raises(InvalidInputError):
        BAD_DRAFTS[name](unit)
    assert unit.effects == []


async def test_a_draft_with_another_id_is_refused_for_a_seq_too(
    contract: Contract,
) -> None:
    session, ids = await conversation(contract.store)
    await contract.store.replace(session, 1, user("x", id=ids[0]))
    with pytest.raises(InvalidInputError, match="keeps its id"):
        await contract.store.replace(session, 1, user("y", id=ids[1]))
    with pytest.raises(NotFoundError):
        await contract.store.replace(session, "nowhere", user("x"))


# -- nothing is left -------------------------------------------------------------


def bytes_of(store: Store) -> bytes:
    """Return the file, whose log is in it; read by a process that has no locks on it."""
    store._core.writer.idle()
    return subprocess.run(
        ["cat", str(store.path)], capture_output=True, check=True
    ).stdout


ERASING: dict[str, Callable[[Store, SessionHandle, Message], object]] = {
    "pop": lambda store, s, m: [store.set_leaf(s, m), store.pop(s)],
    "remove": lambda store, s, m: store.remove(s, [m]),
    "replace": lambda store, s, m: store.replace(s, m, assistant("[redacted]")),
}


@pytest.mark.slow
@pytest.mark.needs("is_file", "reads the bytes of the file")
@pytest.mark.parametrize("verb", ERASING)
def test_after_a_vacuum_the_file_has_nothing_of_it(store: Store, verb: str) -> None:
    session = store.create_session()
    large = " ".join(f"needle{number}" for number in range(400))
    with store.effects() as fx:
        fx.append(session, user("kept words"))
        secret = fx.append(
            session,
            assistant(
                "needle in a text",
                text(large),
                tool(
                    "bash", {"run": "needle", "large": large}, output=f"needle {large}"
                ),
                part("odd", key="needle", large=large),
                needle="needle",
            ),
        )
        fx.append(session, user("kept as well"))
    store._core.writer.idle()
    assert b"needle" in bytes_of(store)
    ERASING[verb](store, session, store.message(session, secret))
    assert not store.search("needle")
    assert not store.search("needle7")
    vacuum(store)
    assert b"needle" not in bytes_of(store)
    assert "kept words" in [m.text for m in store.messages(session)] or verb == "pop"
    assert check(store) == []


# -- several at once ---------------------------------------------------------------


POPPING = """
import sys
from sessiondb import Store
with Store.open(sys.argv[1], durability="normal") as store:
    while (message := store.pop("s")) is not None:
        print(message.text)
"""


@pytest.mark.slow
def test_two_processes_pop_each_message_once(backend: Backend) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store, store.effects() as fx:
        fx.create_session(id="s")
        for number in range(200):
            fx.append("s", user(f"{number}"))
    children = [start(POPPING, place) for _ in range(2)]
    said = [child.communicate(timeout=60) for child in children]
    assert [errors for _, errors in said] == ["", ""]
    popped = sorted(int(line) for output, _ in said for line in output.split())
    assert popped == list(range(200))
    with Store.open(place, durability="normal") as store:
        assert check(store) == []


async def test_tasks_pop_each_message_once(backend: Backend) -> None:
    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        session = await store.create_session()
        for number in range(20):
            await store.append(session, user(f"{number}"))
        found = await asyncio.gather(*(store.pop(session) for _ in range(25)))
        texts = [message.text for message in found if message is not None]
        assert texts == [f"{number}" for number in reversed(range(20))]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "call", "result", "answer", "remove", "replace", "pop",
                         "branch", "fork"]),
        st.integers(0, 30),
    ),
    max_size=30,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(operations=OPERATIONS)
def test_whatever_is_removed_and_replaced_the_database_is_consistent(
    backend: Backend,
    operations: list[tuple[str, int]],
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        sessions = [store.create_session(directory="/tmp")]
        for name, number in operations:
            session = sessions[number % len(sessions)]
            stored = store.messages(session, branches=True)
            chosen = stored[number % len(stored)].id if stored else None
            call = tool("t", {"n": number}, call_id=f"c{number % 3}")
            result = tool_result(f"c{number % 3}", f"output {number % 2}")
            drafts = {
                "ask": user(f"question {number}"),
                "call": assistant(call),
                "result": MessageDraft("tool", (result,)),
                "answer": assistant(f"answer {number}"),
            }
            if name in drafts:
                cost = 1.0 if name == "answer" else None
                store.append(session, drafts[name], cost=cost)
            elif name == "fork":
                sessions.append(store.fork(session))
            elif name == "pop":
                store.pop(session)
            elif chosen is None:
                continue
            elif name == "remove":
                going = [*stored[number % len(stored) :: 3], chosen]
                store.remove(session, going)
            elif name == "branch":
                store.set_leaf(session, chosen)
            else:
                kind = list(drafts)[number % len(drafts)]
                store.replace(session, chosen, drafts[kind])
        for session in sessions:
            for message in store.messages(session, branches=True):
                for item in message.parts:
                    assert item.type != "tool-result" or item.text is not None
        assert check(store) == []


def test_another_process_sees_the_removal_at_once(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    store.append(session, user("one"))
    store.append(session, user("two"))
    code = """
    import sys
    from sessiondb import Store
    with Store.open(sys.argv[1]) as store:
        store.remove(sys.argv[2], [1])
    """
    done = run(code, backend.place_of(store), session)
    assert done.returncode == 0, done.stderr
    assert [(m.seq, m.parent_seq) for m in store.messages(session)] == [(2, None)]
    store.append(session, user("three"))
    assert [m.text for m in store.messages(session)] == ["two", "three"]
    assert check(store) == []


async def test_a_neighbour_that_fails_does_not_let_a_message_be_popped_twice(
    backend: Backend,
) -> None:
    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        session = await store.create_session()
        for number in range(20):
            await store.append(session, user(f"{number}"))
        # All in one commit, which is applied again without the one that fails.
        found = await asyncio.gather(
            *(store.pop(session) for _ in range(10)),
            store.append("nowhere", user("x")),
            *(store.pop(session) for _ in range(12)),
            return_exceptions=True,
        )
        texts = [message.text for message in found if isinstance(message, Message)]
        assert texts == [f"{number}" for number in reversed(range(20))]
        assert [item for item in found if isinstance(item, Exception)] == [found[10]]
