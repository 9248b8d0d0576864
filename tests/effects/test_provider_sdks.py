"""The SDKs of OpenAI and Anthropic: their own types accept what is written for them.

They are not a dependency, and `scripts/verify-providers` runs these tests with them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from backends import Backend
from hypothesis import HealthCheck, given, settings
from loopback_model import Script, served
from provider_values import anthropic_messages, chat_messages, items
from test_append_of_providers import COMPLETION, MESSAGE, RESPONSE

from sessiondb import (
    Context,
    Store,
    assistant,
    event,
    file,
    reasoning,
    system,
    tool,
    user,
)

REASON = "scripts/verify-providers installs the SDKs"
openai = pytest.importorskip("openai", reason=REASON)
anthropic = pytest.importorskip("anthropic", reason=REASON)
pydantic = pytest.importorskip("pydantic", reason=REASON)
pytestmark = pytest.mark.slow
PROPERTY = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def validator(name: str) -> Any:
    """Return what validates a value against a type of an SDK."""
    from anthropic.types import MessageParam
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam

    types = {
        "items": ResponseInputItemParam,
        "chat": ChatCompletionMessageParam,
        "messages": MessageParam,
    }
    return pydantic.TypeAdapter(list[types[name]])


@pytest.fixture(scope="module")
def validators() -> dict[str, Any]:
    return {name: validator(name) for name in ("items", "chat", "messages")}


def assert_valid(validators: dict[str, Any], context: Context, *names: str) -> None:
    """Assert that the types of the SDKs accept what a context gives, for these APIs."""
    given = {
        "items": context.to_openai(),
        "chat": context.to_openai_chat(),
        "messages": context.to_anthropic()["messages"],
    }
    for name in names:
        valid = validators[name].validate_python(given[name])
        # An iterable inside is validated once it is read.
        json.dumps(validators[name].dump_python(valid), default=list)


def test_messages_of_any_origin_are_of_the_types_of_the_sdks(
    store: Store, validators: dict[str, Any]
) -> None:
    session = store.create_session()
    picture = file(content=b"\x89PNG", mime="image/png", filename="a.png")
    page = file(content=b"%PDF", mime="application/pdf", filename="a.pdf")
    text = file(content=b"text", mime="text/plain", filename="a.txt")
    address = file("https://example.org/a.png", mime="image/png")
    with store.effects() as fx:
        fx.append(session, system("Be brief"))
        fx.append(session, event("compaction", "They talked."))
        fx.append(session, user("See", picture, page, text, address, file("/tmp/a")))
        fx.append(
            session,
            assistant(
                reasoning("Hm", signature="EvA"), "Two calls.",
                tool("mcp.look", {"a": 1}, call_id="c.1", output="one"),
                tool("bash", call_id="c2", error="no"), tool("open", call_id="c3"),
            ),
        )  # fmt: skip
        fx.append_openai(session, RESPONSE)
        fx.append_anthropic(session, MESSAGE)
        fx.append_openai(session, COMPLETION)
    assert_valid(validators, store.context(session), "items", "chat", "messages")


# A property, for each of the two other APIs: its own gets back what was appended.


@PROPERTY
@given(items())
def test_what_openai_said_is_of_the_types_of_the_others(
    store: Store, validators: dict[str, Any], listed: list[Any]
) -> None:
    session = store.create_session()
    store.append_openai(session, listed)
    assert_valid(validators, store.context(session), "chat", "messages")


@PROPERTY
@given(chat_messages())
def test_what_a_chat_server_said_is_of_the_types_of_the_others(
    store: Store, validators: dict[str, Any], listed: list[Any]
) -> None:
    session = store.create_session()
    store.append_openai(session, [m for m in listed if "name" not in m])
    assert_valid(validators, store.context(session), "items", "messages")


@PROPERTY
@given(anthropic_messages())
def test_what_anthropic_said_is_of_the_types_of_the_others(
    store: Store, validators: dict[str, Any], listed: list[Any]
) -> None:
    session = store.create_session()
    store.append_anthropic(session, listed)
    assert_valid(validators, store.context(session), "items", "chat")


def test_objects_of_the_sdks_are_stored_as_the_provider_sent_them(store: Store) -> None:
    from anthropic.types import Message
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    sessions = [store.create_session() for _ in range(3)]
    store.append_openai(sessions[0], Response.construct(**RESPONSE))
    store.append_openai(sessions[1], ChatCompletion.construct(**COMPLETION))
    store.append_anthropic(sessions[2], Message.construct(**MESSAGE))
    contexts = [store.context(session, repair="none") for session in sessions]
    assert contexts[0].to_openai() == RESPONSE["output"]
    assert contexts[1].to_openai_chat() == [COMPLETION["choices"][0]["message"]]
    assert contexts[2].to_anthropic()["messages"][0]["content"] == MESSAGE["content"]
    for context in contexts:
        assert context.messages[0].finish == "tool-calls"
        assert context.messages[0].tokens is not None
    # The blocks of an answer in a list that a program keeps are objects, too.
    other = store.create_session()
    message = Message.construct(**MESSAGE)
    store.append_anthropic(other, [{"role": "assistant", "content": message.content}])
    assert store.context(other, repair="none").to_anthropic()["messages"] == [
        {"role": "assistant", "content": MESSAGE["content"]}
    ]


TOOLS = {
    "type": "function", "name": "bash", "description": "Run a command",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
}  # fmt: skip


def test_an_agent_on_the_sdk_of_openai_is_resumed(backend: Backend) -> None:
    script, place = Script(), backend.fresh()
    with served(script) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        with Store.open(place) as store:
            session = store.create_session()
            store.append_openai(session, "Run the tests")
            items = store.context(session).to_openai()
            response = client.responses.create(model="m", input=items, tools=[TOOLS])
            store.append_openai(session, response)
            (call,) = [x for x in response.output if x.type == "function_call"]
            output = {"type": "function_call_output", "call_id": call.call_id}
            store.append_openai(session, output | {"output": "3 passed"})

        # Another process continues.
        with Store.open(place) as store:
            items = store.context(session).to_openai()
            assert items[1]["encrypted_content"] == "sealed 1"
            response = client.responses.create(model="m", input=items, tools=[TOOLS])
            store.append_openai(session, response)
            items = store.context(session).to_openai_chat()
            completion = client.chat.completions.create(model="m", messages=items)
            store.append_openai(session, completion)
            texts = [m.text for m in store.messages(session) if m.role == "assistant"]
            assert texts[1:] == ["The tests say: 3 passed"] * 2
            usage = store.session(session)
            assert (usage.tokens_input, usage.tokens_output) == (180, 50)


def test_an_agent_on_the_sdk_of_anthropic_is_resumed(backend: Backend) -> None:
    script, place = Script(), backend.fresh()
    fields = {"model": "m", "max_tokens": 100}
    with served(script) as url:
        client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        with Store.open(place) as store:
            session = store.create_session()
            store.append_anthropic(session, "Run the tests", system="Be brief")
            request = store.context(session).to_anthropic()
            message = client.messages.create(**request, **fields)
            store.append_anthropic(session, message)
            (call,) = [block for block in message.content if block.type == "tool_use"]
            block = {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": "3 passed",
            }
            store.append_anthropic(session, {"role": "user", "content": [block]})

        with Store.open(place) as store:
            request = store.context(session).to_anthropic()
            assert request["messages"][1]["content"][0]["signature"] == "signed 1"
            store.append_anthropic(session, client.messages.create(**request, **fields))
            assert store.messages(session)[-1].text == "The tests say: 3 passed"
            assert script.requests[-1]["system"] == [
                {"type": "text", "text": "Be brief"}
            ]
            assert script.requests[-1]["messages"] == request["messages"]
