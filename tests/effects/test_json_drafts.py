"""JSON objects where drafts are taken: those of the command line, and no other ones."""

from __future__ import annotations

from typing import Any

import pytest
from facades import Contract
from test_append_of_providers import MESSAGE, RESPONSE, Model

from sessiondb import (
    ConflictError,
    InvalidInputError,
    SessionHandle,
    Store,
    Tokens,
    assistant,
    context_source,
    event,
    file,
    reasoning,
    text,
    tool,
    user,
)
from sessiondb.model.json import message_json

PROVIDER_HINT = "append_openai and append_anthropic"


async def test_an_object_is_written_as_a_draft_is(
    contract: Contract, session: SessionHandle
) -> None:
    call = {"type": "tool", "tool": "bash", "call_id": "c1", "input": {"a": 1}}
    async with contract.store.effects() as fx:
        fx.append(
            session, {"role": "human", "parts": ["Why?", {"type": "text", "text": "b"}]}
        )
        answer = fx.append(
            session, {"role": "assistant", "agent": "build"}, open=True, cost=1
        )
        fx.add_part(session, answer, call)
        fx.append(session, user("a", {"type": "text", "text": "b", "synthetic": True}))
    asked, found, added = await contract.store.messages(session)
    assert (asked.role, asked.text, asked.purpose) == ("user", "Why?\nb", "prompt")
    assert (found.agent, found.cost) == ("build", 1)
    assert (found.parts[0].tool, found.parts[0].input) == ("bash", {"a": 1})
    assert found.parts[0].status == "pending"
    assert [part.synthetic for part in added.parts] == [False, True]
    contract.check()


def test_a_message_of_the_command_line_is_the_same_message_again(store: Store) -> None:
    first, second = store.create_session(), store.create_session()
    with store.effects() as fx:
        fx.append(first, user("Hi", file("https://example.org", mime="text/plain")))
        fx.append(
            first,
            assistant(
                reasoning("Hm", signature="x"),
                text("Yes"),
                tool("bash", {"a": 1}, call_id="c", error="no", title="Run"),
                own={"a": [1]},
            ),
            model="m", provider="p", cost=0.5, tokens=Tokens(input=3), finish="stop",
            error={"message": "x"}, agent="build", time=1_770_000_000_000,
        )  # fmt: skip
        fx.append(first, event("context", context_source("file", "a.md", text="x")))
    shown = [message_json(message) for message in store.messages(first)]
    for message in shown:
        store.append(second, message)
        # The ids are those of the objects: nothing is written twice.
        store.append(second, message)
    copied = [message_json(message) for message in store.messages(second)]
    # What a fork has, too, is counted once.
    assert [m | {"inherited": False} for m in copied] == shown


def test_an_object_with_another_content_is_a_conflict(store: Store) -> None:
    session = store.create_session()
    store.append(session, {"role": "user", "id": "m1", "parts": ["a"]})
    with pytest.raises(ConflictError):
        store.append(session, {"role": "user", "id": "m1", "parts": ["b"]})


MISTAKES: dict[str, tuple[Any, str, str | None]] = {
    "a provider's message": (
        {"role": "user", "content": "a"},
        "no field 'content'",
        PROVIDER_HINT,
    ),
    "an item": (
        {"type": "message", "role": "user", "content": "a"},
        "no field",
        PROVIDER_HINT,
    ),
    "a call": ({"type": "function_call", "call_id": "c"}, "no field", PROVIDER_HINT),
    "a completion": ({"choices": []}, "no field 'choices'", PROVIDER_HINT),
    "a response": (Model(**RESPONSE), "a message is made by user", PROVIDER_HINT),
    "an answer": (Model(**MESSAGE), "a message is made by user", PROVIDER_HINT),
    "no role": ({"parts": ["a"]}, "a message needs a role", PROVIDER_HINT),
    "a block": (
        {"role": "user", "parts": [{"type": "tool_result", "content": "a"}]},
        "a part has no field 'content'",
        PROVIDER_HINT,
    ),
    "a misspelt field": (
        {"role": "user", "modle_id": "m"},
        "no field 'modle_id'",
        None,
    ),
    "a keyword of append": ({"role": "user", "model": "m"}, "no field 'model'", None),
    "parts": ({"role": "user", "parts": "a"}, "parts must be a list", None),
    "a part": ({"role": "user", "parts": [3]}, "a part is a string or made by", None),
    "no type": (
        {"role": "user", "parts": [{"text": "a"}]},
        "a part needs a type",
        PROVIDER_HINT,
    ),
    "a key": ({"role": "user", 3: 4}, "no field 3", None),
    "a value": ({"role": "user", "cost": "a"}, "cost", None),
    "data": ({"role": "user", "data": 3}, "data must be a mapping", None),
}


@pytest.mark.parametrize("name", MISTAKES)
async def test_any_other_object_is_refused(
    name: str, contract: Contract, session: SessionHandle
) -> None:
    value, message, hint = MISTAKES[name]
    with pytest.raises(InvalidInputError, match=message) as raised:
        await contract.store.append(session, value)
    if hint is not None:
        assert hint in str(raised.value.hint)
    assert await contract.store.messages(session) == []
