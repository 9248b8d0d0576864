"""`append_openai` and `append_anthropic`: what is stored of an exchange with a provider."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from backends import Backend
from facades import Contract

from sessiondb import (
    ConflictError,
    InvalidInputError,
    PartDraft,
    SessionHandle,
    Store,
    Tokens,
    assistant,
    event,
    file,
    reasoning,
    system,
    tool,
    user,
)

RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_770_000_000,
    "model": "gpt-5.2",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "output": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "A test fails."}],
            "encrypted_content": "gAAA",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "bash",
            "arguments": '{"command": "pytest"}',
        },
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    },
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "3 passed"}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_770_000_000,
    "model": "qwen3",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I look.",
                "reasoning_content": "A test fails.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "bash", "arguments": "{}"},
                    }
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
    },
}
MESSAGE: dict[str, Any] = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [
        {"type": "thinking", "thinking": "A test fails.", "signature": "EvA"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 40,
        "output_tokens": 20,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 10,
    },
}


async def test_a_response_is_one_answer_with_its_usage(
    contract: Contract, session: SessionHandle
) -> None:
    prompt, answer = await contract.store.append_openai(
        session,
        [{"role": "user", "content": "Why?"}, RESPONSE],
        agent="build",
        cost=0.25,
    )
    assert (prompt.seq, answer.seq) == (1, 2)
    asked, found = await contract.store.messages(session)
    assert (asked.agent, asked.cost, asked.purpose) == ("build", None, "prompt")
    assert [part.type for part in found.parts] == ["reasoning", "text", "tool"]
    assert (found.response_id, found.model_id) == ("resp_1", "gpt-5.2")
    assert (found.finish, found.cost, found.agent) == ("tool-calls", 0.25, "build")
    assert found.tokens == Tokens(30, 15, 5, 60, 10)
    assert found.parts[2].input == {"command": "pytest"}
    assert (await contract.store.session(session)).model_id == "gpt-5.2"


async def test_the_answers_of_the_other_apis_are_stored_alike(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append_openai(session, COMPLETION)
    await contract.store.append_anthropic(session, MESSAGE)
    chat, claude = await contract.store.messages(session)
    for found in (chat, claude):
        assert [part.type for part in found.parts] == ["reasoning", "text", "tool"]
        assert found.text == "I look."
        assert found.finish == "tool-calls"
    assert (chat.response_id, chat.model_id) == ("chatcmpl-1", "qwen3")
    assert chat.tokens == Tokens(input=40, output=20, cache_read=60)
    assert (claude.response_id, claude.model_id) == ("msg_01", "claude-sonnet-4-5")
    assert claude.tokens == Tokens(40, 20, None, 60, 10)


@pytest.mark.parametrize(
    ("end", "finish"),
    [
        ({"status": "completed"}, "stop"),
        ({"status": "failed", "error": {"code": "x", "message": "no"}}, "error"),
        ({"status": "cancelled"}, "cancelled"),
        (
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            "length",
        ),
        (
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "content_filter"},
            },
            "other",
        ),
    ],
)
def test_a_response_says_how_it_ended(
    store: Store, end: dict[str, Any], finish: str
) -> None:
    session = store.create_session()
    store.append_openai(session, RESPONSE | {"output": RESPONSE["output"][:2]} | end)
    (found,) = store.messages(session)
    assert found.finish == finish
    assert found.error == end.get("error")


@pytest.mark.parametrize(
    ("reason", "finish", "data"),
    [
        ("end_turn", "stop", {}),
        ("max_tokens", "length", {}),
        ("pause_turn", "other", {"stop_reason": "pause_turn"}),
        ("refusal", "other", {"stop_reason": "refusal"}),
        ("never_seen", "other", {"stop_reason": "never_seen"}),
    ],
)
def test_a_message_of_anthropic_says_how_it_ended(
    store: Store, reason: str, finish: str, data: dict[str, Any]
) -> None:
    session = store.create_session()
    store.append_anthropic(session, MESSAGE | {"stop_reason": reason})
    (found,) = store.messages(session)
    assert (found.finish, found.data) == (finish, data)


async def test_a_result_of_a_later_call_settles_the_call(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append_openai(session, RESPONSE)
    (open_answer,) = await contract.store.messages(session)
    assert open_answer.parts[2].status == "pending"
    await contract.store.append_openai(session, [OUTPUT])
    answer, result = await contract.store.messages(session)
    assert (answer.parts[2].status, answer.parts[2].text) == ("completed", "3 passed")
    assert (result.role, result.purpose) == ("tool", "result")
    context = await contract.store.context(session)
    assert context.to_openai() == [*RESPONSE["output"], OUTPUT]
    contract.check()


def test_a_result_of_another_process_settles_the_call(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    store.append_anthropic(session, MESSAGE)
    program = (
        "import sys; from sessiondb import Store\n"
        "block = {'type': 'tool_result', 'tool_use_id': 'toolu_1',"
        " 'content': 'no', 'is_error': True}\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    store.append_anthropic(sys.argv[2], {'role': 'user', 'content': [block]})\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(backend.place_of(store)), session.id],
        check=True,
    )
    answer, _ = store.messages(session)
    call = answer.parts[2]
    assert (call.status, call.outcome, call.text) == ("error", "failed", "no")


def test_an_id_that_a_server_uses_again_is_that_of_the_last_call(store: Store) -> None:
    session = store.create_session()
    listed = []
    for number in range(3):
        call = {
            "id": "0",
            "type": "function",
            "function": {"name": "a", "arguments": "{}"},
        }
        listed.append({"role": "assistant", "content": None, "tool_calls": [call]})
        listed.append({"role": "tool", "tool_call_id": "0", "content": str(number)})
    for message in listed:
        store.append_openai(session, message)
    assert store.context(session).to_openai_chat() == listed
    calls = [
        part for m in store.messages(session) for part in m.parts if part.type == "tool"
    ]
    assert [call.text for call in calls] == ["0", "1", "2"]


async def test_a_call_without_a_result_is_given_one(
    contract: Contract, session: SessionHandle
) -> None:
    assert await contract.store.append_openai(session, []) == ()
    await contract.store.append_openai(session, RESPONSE)
    context = await contract.store.context(session)
    *_, output = context.to_openai()
    assert output["type"] == "function_call_output"
    assert output["call_id"] == "call_1"
    block = context.to_anthropic()["messages"][-1]["content"][0]
    assert (block["type"], block["is_error"]) == ("tool_result", True)


# -- objects -----------------------------------------------------------------------


class Model:
    """An object of an SDK: it gives a dictionary of what the provider sent."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def model_dump(
        self, *, mode: str, by_alias: bool, exclude_unset: bool, warnings: bool
    ) -> dict[str, Any]:
        assert (mode, by_alias, exclude_unset, warnings) == ("json", True, True, False)
        return self._values


def test_objects_of_an_sdk_are_what_they_dump(store: Store) -> None:
    session = store.create_session()
    block = Model(type="text", text="Hello", parsed_output=None)
    store.append_anthropic(
        session,
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [block]}],
    )
    store.append_openai(session, Model(**RESPONSE))
    store.append_openai(session, (Model(**OUTPUT),))
    context = store.context(session)
    assert context.to_anthropic()["messages"][1]["content"][0] == {
        "type": "text", "text": "Hello",
    }  # fmt: skip
    assert context.to_openai()[-4:] == [*RESPONSE["output"], OUTPUT]


def test_what_a_parsed_answer_has_besides_is_not_sent_again(store: Store) -> None:
    session = store.create_session()
    call = RESPONSE["output"][2] | {"parsed_arguments": {"command": "pytest"}}
    text = {"type": "output_text", "text": "{}", "annotations": [], "parsed": {}}
    message = RESPONSE["output"][1] | {"content": [text]}
    tool_use = {
        "type": "tool_use",
        "id": "t",
        "name": "a",
        "input": {"parsed": 1, "text": 2},
    }
    store.append_openai(session, Model(**RESPONSE | {"output": [message, call]}))
    store.append_anthropic(session, Model(**MESSAGE | {"content": [tool_use]}))
    context = store.context(session)
    sent, called, *_ = context.to_openai()
    assert sent["content"] == [{"type": "output_text", "text": "{}", "annotations": []}]
    assert called == RESPONSE["output"][2]
    blocks = [b for m in context.to_anthropic()["messages"] for b in m["content"]]
    assert tool_use in blocks


def test_a_completion_is_sent_again_as_a_request_has_it(store: Store) -> None:
    session = store.create_session()
    (choice,) = COMPLETION["choices"]
    message = choice["message"]
    calls = [call | {"index": 0} for call in message["tool_calls"]]
    returned = {"refusal": None, "annotations": [], "audio": {"id": "a", "data": "x"}}
    completed = choice | {"message": message | {"tool_calls": calls} | returned}
    store.append_openai(session, Model(**COMPLETION | {"choices": [completed]}))
    (sent,) = store.context(session, repair="none").to_openai_chat()
    assert sent == message | {"audio": {"id": "a"}}


# -- units and fields ----------------------------------------------------------------


async def test_a_list_is_one_unit(contract: Contract, session: SessionHandle) -> None:
    before = (await contract.store.session(session)).revision
    await contract.store.append_openai(session, [{"role": "user", "content": "a"}] * 3)
    assert (await contract.store.session(session)).revision == before + 1
    async with contract.store.effects() as fx:
        opened = fx.open_session("thread-1")
        handles = fx.append_anthropic(opened, "Hello", system="Be brief")
    assert [handle.session_id for handle in handles] == [opened.id]
    assert handles[0].seq == 2


async def test_a_refused_value_leaves_nothing_in_a_unit(
    contract: Contract, session: SessionHandle
) -> None:
    good, bad = {"role": "user", "content": "a"}, {"type": "x", "id": "x", "n": 1 << 70}
    async with contract.store.effects() as fx:
        with pytest.raises(InvalidInputError, match=r"items\[1\]"):
            fx.append_openai(session, [good, bad])
        fx.append_openai(session, good)
    assert len(await contract.store.messages(session)) == 1


async def test_fields_are_those_of_the_messages_that_have_them(
    contract: Contract, session: SessionHandle
) -> None:
    listed = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "assistant", "content": "c"},
    ]
    await contract.store.append_anthropic(
        session, listed, agent="x", provider="p", model="m", cost=0.5, finish="end_turn",
        tokens={"input_tokens": 3},
    )  # fmt: skip
    asked, first, last = await contract.store.messages(session)
    assert [m.agent for m in (asked, first, last)] == ["x", "x", "x"]
    assert (asked.model_id, first.model_id, last.provider_id) == (None, "m", "p")
    assert (first.cost, last.cost, last.finish) == (None, 0.5, "stop")
    assert last.tokens == Tokens(input=3)
    with pytest.raises(InvalidInputError, match="cost: of an answer"):
        await contract.store.append_openai(session, "Hello", cost=0.5)
    with pytest.raises(InvalidInputError, match="csot"):
        await contract.store.append_openai(session, listed, csot=0.5)


async def test_a_session_that_the_unit_deletes_is_refused_at_once(
    contract: Contract, session: SessionHandle
) -> None:
    unit = contract.store.unit()
    unit.delete(session)
    with pytest.raises(ConflictError):
        unit.append_openai(session, "Hello")


# -- mistakes ------------------------------------------------------------------------

ASKED = {"role": "user", "content": "a"}
OPENAI_MISTAKES: dict[str, tuple[Any, str]] = {
    "no list": (3, "items must be a list"),
    "no object": ([ASKED, 3], r"items\[1\] must be an object"),
    "bytes": (b"abc", "items must be a list"),
    "a class": ([SimpleNamespace], r"items\[0\] cannot be JSON"),
    "a set": (
        [{"role": "user", "content": {1}}],
        r"items\[0\]\.content cannot be JSON",
    ),
    "a key": ([{"type": "x", "a": {1: 2}}], r"items\[0\]\.a has the key 1"),
    "no type": ([ASKED, {}], r"items\[1\]\.type must be the type of an item, not None"),
    "a role": ([{"role": "usr", "content": "a"}], r"items\[0\]\.role is one of user, "),
    "no content": ([{"role": "user"}], r"items\[0\]\.content must be a text or a list"),
    "a block": (
        [{"role": "user", "content": [{"text": "a"}]}],
        r"items\[0\]\.content\[0\] must be an object with a type",
    ),
    "a call": (
        [ASKED, {"type": "function_call", "name": "a", "arguments": "{}"}],
        r"items\[1\]\.call_id must be a text, not None",
    ),
    "arguments": (
        [{"type": "function_call", "name": "a", "call_id": "c", "arguments": {}}],
        r"items\[0\]\.arguments must be a text, not \{\}",
    ),
    "a name": (
        [{"type": "function_call", "name": "", "call_id": "c", "arguments": "{}"}],
        r"items\[0\]\.name must be the name of a tool",
    ),
    "a result": (
        [{"type": "function_call_output", "output": "a"}],
        r"items\[0\]\.call_id must be a text",
    ),
    "an item of a response": (
        [RESPONSE | {"output": [{"type": "function_call"}]}],
        r"items\[0\]\.output\[0\]\.call_id",
    ),
    "an unfinished response": (
        [RESPONSE | {"status": "in_progress"}],
        r"items\[0\]\.status is in_progress",
    ),
    "no choice": ({"choices": []}, r"items\[0\]\.choices must be a list with a choice"),
    "a chat call": (
        [{"role": "assistant", "tool_calls": [{"id": "c"}]}],
        r"items\[0\]\.tool_calls\[0\] must be a call",
    ),
    "a chat result": (
        [{"role": "tool", "content": "a"}],
        r"items\[0\]\.tool_call_id must be a text",
    ),
}
ANTHROPIC_MISTAKES: dict[str, tuple[Any, str]] = {
    "no list": (3, "messages must be a list"),
    "a role": ([{"role": "tool", "content": "a"}], r"messages\[0\]\.role is one of"),
    "no content": ([{"role": "user"}], r"messages\[0\]\.content must be"),
    "a block": (
        [{"role": "user", "content": ["a"]}],
        r"messages\[0\]\.content\[0\] must be an object",
    ),
    "a call": (
        [ASKED, {"role": "assistant", "content": [{"type": "tool_use", "name": "a"}]}],
        r"messages\[1\]\.content\[0\]\.id must be a text",
    ),
    "an input": (
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t", "name": "a", "input": "{}"}
                ],
            }
        ],
        r"messages\[0\]\.content\[0\]\.input must be an object",
    ),
    "a result": (
        [{"role": "user", "content": [{"type": "tool_result", "content": "a"}]}],
        r"messages\[0\]\.content\[0\]\.tool_use_id must be a text",
    ),
    "a signature": (
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "a"}]}],
        r"messages\[0\]\.content\[0\]\.signature must be a text",
    ),
    "a picture": (
        [{"role": "user", "content": [{"type": "image"}]}],
        r"messages\[0\]\.content\[0\]\.source must be an object",
    ),
}


@pytest.mark.parametrize("name", OPENAI_MISTAKES)
async def test_a_mistake_in_items_is_named_by_its_place(
    name: str, contract: Contract, session: SessionHandle
) -> None:
    items, message = OPENAI_MISTAKES[name]
    with pytest.raises(InvalidInputError, match=message):
        await contract.store.append_openai(session, items)
    assert await contract.store.messages(session) == []


@pytest.mark.parametrize("name", ANTHROPIC_MISTAKES)
async def test_a_mistake_in_messages_is_named_by_its_place(
    name: str, contract: Contract, session: SessionHandle
) -> None:
    messages, message = ANTHROPIC_MISTAKES[name]
    with pytest.raises(InvalidInputError, match=message):
        await contract.store.append_anthropic(session, messages)
    assert await contract.store.messages(session) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [(3, "system must be"), ([{"type": "image"}], r"system\[0\]\.type must be text")],
)
def test_a_mistake_in_a_system_text_is_named(
    store: Store, text: Any, message: str
) -> None:
    session = store.create_session()
    with pytest.raises(InvalidInputError, match=message):
        store.append_anthropic(session, [ASKED], system=text)
    assert store.messages(session) == []


def test_a_value_that_is_nested_too_deep_is_refused(store: Store) -> None:
    deep: Any = "a"
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(InvalidInputError, match="nested deeper than 300"):
        store.append_openai(store.create_session(), [{"type": "x", "deep": deep}])


# -- what other programs stored --------------------------------------------------------


def test_an_empty_session_has_nothing_to_send(store: Store) -> None:
    context = store.context(store.create_session())
    assert (context.to_openai(), context.to_openai_chat()) == ([], [])
    assert context.to_anthropic() == {"messages": []}


def test_messages_of_any_origin_can_be_sent(store: Store) -> None:
    session = store.create_session()
    picture = file(content=b"\x89PNG", mime="image/png", filename="a.png")
    page = file(content=b"%PDF", mime="application/pdf", filename="a.pdf")
    local = file("file:///home/ada/notes.txt", mime="text/plain")
    with store.effects() as fx:
        fx.append(session, system("Be brief"))
        fx.append(session, user("See", picture, page, local))
        fx.append(
            session,
            assistant(
                reasoning("Hm"),
                "Two calls.",
                tool("mcp.look", {"a": 1}, call_id="c.1", output="one"),
                tool("bash", call_id="c2", error="no"),
            ),
        )
        fx.append(session, event("custom_message", "Be quick"))
        fx.append(session, event("cost", "not sent"))
    context = store.context(session)
    prompt, look, call, no_call, one, no, quick = context.to_openai()[1:]
    assert [block["type"] for block in prompt["content"]] == [
        "input_text", "input_image", "input_file", "input_text",
    ]  # fmt: skip
    assert prompt["content"][3]["text"] == "[file: file:///home/ada/notes.txt]"
    assert look == {"type": "message", "role": "assistant", "content": "Two calls."}
    assert (call["name"], call["arguments"]) == ("mcp.look", '{"a":1}')
    assert no_call["arguments"] == "{}"
    assert (one["output"], no["output"]) == ("one", "no")
    assert quick["content"] == [{"type": "input_text", "text": "Be quick"}]

    request = context.to_anthropic()
    assert request["system"] == [{"type": "text", "text": "Be brief"}]
    asked, answer, results = request["messages"]
    assert [block["type"] for block in asked["content"]] == [
        "text", "image", "document", "text",
    ]  # fmt: skip
    assert [block["type"] for block in answer["content"]] == [
        "text", "tool_use", "tool_use",
    ]  # fmt: skip
    assert answer["content"][1]["name"] == "mcp_look"
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "c_1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
        {"type": "text", "text": "Be quick"},
    ]
    chat = context.to_openai_chat()
    assert [message["role"] for message in chat] == [
        "system", "user", "assistant", "tool", "tool", "user",
    ]  # fmt: skip


def test_a_command_and_an_unsendable_file_are_texts_for_the_model(store: Store) -> None:
    session = store.create_session()
    command = tool("bash", {"command": "ls"}, output="a.py")
    mentioned = PartDraft("file", "print()", data={"filename": "a.py"})
    with store.effects() as fx:
        fx.append(session, event("custom_message", command))
        fx.append(session, user("See", mentioned))
        fx.append(session, assistant(file("file:///a.png", mime="image/png")))
    context = store.context(session)
    texts = ["bash: ls\na.py", "See", "[file: a.py]\nprint()"]
    drawn = "[file: file:///a.png]"
    *items, answer = context.to_openai()
    assert [b["text"] for item in items for b in item["content"]] == texts
    assert answer["content"] == drawn
    message, answer = context.to_anthropic()["messages"]
    assert [block["text"] for block in message["content"]] == texts
    assert answer["content"] == [{"type": "text", "text": drawn}]
    first, second, answer = context.to_openai_chat()
    assert answer == {"role": "assistant", "content": drawn}
    assert [first["content"], *(b["text"] for b in second["content"])] == texts


def test_a_summary_takes_the_place_of_what_was_cut(store: Store) -> None:
    session = store.create_session()
    with store.effects() as fx:
        fx.append_anthropic(session, "Long ago", system="Be brief")
        fx.append(session, event("compaction", "They talked."))
        fx.append(session, user("And now?"))
    context = store.context(session)
    assert context.system == ("Be brief",)
    assert context.to_anthropic() == {
        "system": [{"type": "text", "text": "Be brief"}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "They talked."},
                    {"type": "text", "text": "And now?"},
                ],
            }
        ],
    }
    assert [item["content"][0]["text"] for item in context.to_openai()] == [
        "Be brief", "They talked.", "And now?",
    ]  # fmt: skip
    assert [message["role"] for message in context.to_openai_chat()] == [
        "system", "user", "user",
    ]  # fmt: skip


def test_a_new_epoch_replaces_the_system_texts_that_were_sent(store: Store) -> None:
    session = store.create_session()
    store.append_openai(session, [{"role": "developer", "content": "Old"}, ASKED])
    store.append_anthropic(session, "b", system="New")
    store.append_openai(session, {"role": "system", "content": "Newer"})
    context = store.context(session)
    assert context.system == ("New", "Newer")
    assert [block["text"] for block in context.to_anthropic()["system"]] == [
        "New",
        "Newer",
    ]
    roles = [item["role"] for item in context.to_openai()]
    assert roles == ["user", "system", "user", "system"]


def test_data_of_a_program_is_never_sent(store: Store) -> None:
    session = store.create_session()
    store.append(session, user("Hi", secret="x"))
    store.append(session, assistant(tool("a", {}, output="b", secret="x"), secret="x"))
    store.append_openai(session, RESPONSE)
    store.append_anthropic(session, MESSAGE)
    context = store.context(session)
    for sent in (context.to_openai(), context.to_openai_chat(), context.to_anthropic()):
        assert "secret" not in repr(sent)
    assert "gAAA" not in repr(context.to_anthropic())
    assert "EvA" not in repr(context.to_openai())
