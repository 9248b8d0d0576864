"""Results that are records of their own: the text of the first is stored with its call."""

from __future__ import annotations

from typing import Any

import pytest
from facades import Contract

from sessiondb import (
    InvalidInputError,
    MessageDraft,
    PartDraft,
    SessionHandle,
    assistant,
    tool,
    tool_result,
    user,
)


def answer(call_id: str, output: str | None, **more: Any) -> MessageDraft:
    return MessageDraft(
        "tool", (PartDraft("tool-result", output, call_id=call_id, **more),)
    )


STORED = "SELECT type, status, outcome, text FROM part WHERE session_id = ? ORDER BY seq, idx"


async def test_the_first_result_fills_the_call(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        fx.append(session, assistant(tool("sh", {"cmd": "ls"}, call_id="c1")))
        fx.append(session, MessageDraft("tool", (tool_result("c1", "marmalade"),)))
    assert contract.rows(STORED, session.id) == [
        ("tool", "completed", None, "marmalade"),
        ("tool-result", None, None, None),
    ]
    call, result = await contract.store.messages(session)
    assert (call.parts[0].text, result.parts[0].text) == ("marmalade", "marmalade")
    assert call.parts[0].time_ended is not None
    hits = await contract.store.search("marmalade", all_hits=True)
    assert [hit.seq for hit in hits] == [call.seq]
    contract.check()


@pytest.mark.parametrize("is_settled", [True, False])
async def test_a_call_is_found_by_its_symbols_whatever_its_result_adds(
    contract: Contract, session: SessionHandle, *, is_settled: bool
) -> None:
    # The words beside a call are the same before and after: the result has a symbol, too.
    pending = tool("sh", {"cmd": "echo ✗ readLine"}, call_id="c1", status="pending")
    await contract.store.append(session, assistant(pending))
    if is_settled:
        await contract.store.settle(session, "c1", output="✗ readLine")
    else:
        result = MessageDraft("tool", (tool_result("c1", "✗ readLine"),))
        await contract.store.append(session, result)
    ((words,),) = contract.rows("SELECT words FROM part WHERE type = 'tool'")
    assert words
    for wanted in ("✗", "line", "readLine"):
        assert len((await contract.store.search(wanted)).items) == 1
    contract.check()


async def test_a_large_result_is_one_blob(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, assistant(tool("sh", call_id="c1")))
    await contract.store.append(session, answer("c1", "x" * 50_000))
    assert contract.rows(
        "SELECT text_blob IS NOT NULL, text FROM part ORDER BY seq"
    ) == [
        (1, None),
        (0, None),
    ]
    call, result = await contract.store.messages(session)
    assert call.parts[0].text == result.parts[0].text == "x" * 50_000


async def test_a_result_with_nul_is_exact_in_its_call_and_its_message(
    contract: Contract, session: SessionHandle
) -> None:
    for number, value in enumerate(["a\0b", "\0" * 5_000]):
        name = f"c{number}"
        await contract.store.append(
            session, assistant(tool("sh", call_id=name, kept=1))
        )
        await contract.store.append(session, answer(name, value, data={"exit": 1}))
        call, result = await contract.store.messages(session, last=2)
        assert (call.parts[0].text, result.parts[0].text) == (value, value)
        assert (call.parts[0].data, result.parts[0].data) == ({"kept": 1}, {"exit": 1})
    contract.check()


async def test_a_failed_result_fails_the_call(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        calls = [tool("sh", call_id=name) for name in ("c1", "c2", "c3")]
        fx.append(session, assistant(*calls))
        fx.append(session, answer("c1", "no such file", status="error"))
        fx.append(session, answer("c2", None, outcome="denied"))
        fx.append(session, answer("c3", None))
    (message, *_) = await contract.store.messages(session)
    assert [(p.status, p.outcome, p.text) for p in message.parts] == [
        ("error", "failed", "no such file"),
        ("error", "denied", None),
        ("completed", None, None),
    ]
    assert await contract.store.unfinished() == []


async def test_a_second_result_keeps_its_own_text_and_is_shown(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, assistant(tool("sh", call_id="c1")))
    for output in ("first", "second"):
        await contract.store.append(session, answer("c1", output))
    assert [row[3] for row in contract.rows(STORED, session.id)] == [
        "first",
        None,
        "second",
    ]
    call, one, two = await contract.store.messages(session)
    assert call.parts[0].text == "second"
    assert two.parts[0].text == "second"
    assert one.parts[0].text is not None


async def test_each_branch_shows_its_own_result(
    contract: Contract, session: SessionHandle
) -> None:
    call = await contract.store.append(session, assistant(tool("sh", call_id="c1")))
    here = await contract.store.append(session, answer("c1", "on the first branch"))
    there = await contract.store.append(
        session, answer("c1", "on the second"), after=call
    )
    assert [row[3] for row in contract.rows(STORED, session.id)] == [
        "on the first branch",
        None,
        "on the second",
    ]
    assert (await contract.store.messages(session))[0].parts[0].text == "on the second"
    await contract.store.set_leaf(session, here)
    assert (await contract.store.messages(session))[0].parts[
        0
    ].text == "on the first branch"
    await contract.store.set_leaf(session, there)


async def test_a_result_without_a_call_on_its_path_keeps_its_text(
    contract: Contract, session: SessionHandle
) -> None:
    ask = await contract.store.append(session, user("Go"))
    await contract.store.append(session, assistant(tool("sh", call_id="c1")))
    await contract.store.append(session, answer("c1", "elsewhere"), after=ask)
    await contract.store.append(session, answer("unheard-of", "nobody asked"))
    await contract.store.append(
        session, MessageDraft("tool", (PartDraft("tool-result", "bare"),))
    )
    stored = contract.rows(STORED, session.id)
    assert [(kind, status, said) for kind, status, _, said in stored] == [
        ("text", None, "Go"),
        ("tool", "pending", None),
        ("tool-result", None, "elsewhere"),
        ("tool-result", None, "nobody asked"),
        ("tool-result", None, "bare"),
    ]


async def test_a_call_that_was_settled_in_place_is_not_settled_again(
    contract: Contract, session: SessionHandle
) -> None:
    m = await contract.store.append(session, assistant(tool("sh", call_id="c1")))
    await contract.store.settle(session, m.parts[0], output="settled")
    await contract.store.append(session, answer("c1", "recorded"))
    assert [row[3] for row in contract.rows(STORED, session.id)] == [
        "settled",
        "recorded",
    ]


async def test_an_id_that_is_used_again_means_the_last_call(
    contract: Contract, session: SessionHandle
) -> None:
    for number in range(2):
        await contract.store.append(
            session, assistant(tool("sh", {"n": number}, call_id="c1"))
        )
        await contract.store.append(session, answer("c1", f"result {number}"))
    assert [row[3] for row in contract.rows(STORED, session.id)] == [
        "result 0",
        None,
        "result 1",
        None,
    ]


async def test_a_result_in_a_fork_answers_the_copy(
    contract: Contract, session: SessionHandle
) -> None:
    """In the copy the call was interrupted, so the result is separate; the original waits."""
    await contract.store.append(session, assistant(tool("sh", call_id="c1")))
    fork = await contract.store.fork(session)
    await contract.store.append(fork, answer("c1", "late"))
    assert contract.rows(STORED, session.id) == [("tool", "pending", None, None)]
    assert contract.rows(STORED, fork.id) == [
        ("tool", "error", "interrupted", None),
        ("tool-result", None, None, "late"),
    ]


def test_a_call_ends_with_output_or_with_an_error() -> None:
    with pytest.raises(InvalidInputError, match="not both"):
        tool("bash", output="ok", error="no")
    assert tool("bash", output="").status == "completed"
    assert tool("bash", error="").status == "error"


async def test_a_result_has_the_text_of_the_call_on_its_own_branch(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    root = await store.append(session, user("Look"))
    first = await store.append(session, assistant(tool("sh", call_id="c")), after=root)
    second = await store.append(session, assistant(tool("sh", call_id="c")), after=root)
    ones = [await store.append(session, answer("c", "one"), after=first)]
    await store.append(session, answer("c", "two"), after=second)
    # The call before it by number is on the other branch, and has ended by then.
    ones.append(await store.append(session, answer("c", "one"), after=first))
    for choice in ({"branches": True}, {"ids": ones}):
        read = {m.id: m.parts[0].text for m in await store.messages(session, **choice)}
        assert [read[result.id] for result in ones] == ["one", "one"]
    contract.check()
