"""What programs exchange with providers: lists of items and of messages, as strategies.

Every call is answered once, behind it: a context is given with a result for each call,
and no API takes anything else. Texts are not empty, for no API takes one that is.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

Value = dict[str, Any]

TEXTS = st.text(min_size=1, max_size=12)
WORDS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    return st.dictionaries(WORDS, values, max_size=3)


LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=6)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | objects(inner), max_leaves=3
)
CONTENTS = st.binary(max_size=2000).map(lambda data: base64.b64encode(data).decode())
CACHED = st.just({"type": "ephemeral"})
ID = st.integers(0, 10**6).map(lambda number: f"id_{number}")


ARGUMENTS = st.one_of(
    objects(JSON).map(json.dumps),
    objects(JSON).map(lambda value: json.dumps(value, separators=(",", ":"))),
    st.just("{}"),
    st.text(max_size=10),
)


def either(
    required: Value, **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[Value]:
    """Return objects with the *required* keys, and any of the others."""
    return st.fixed_dictionaries(
        {
            key: value if isinstance(value, st.SearchStrategy) else st.just(value)
            for key, value in required.items()
        },
        optional=optional,
    )


def data_url(mime: str) -> st.SearchStrategy[str]:
    return CONTENTS.map(lambda content: f"data:{mime};base64,{content}")


# -- Responses -----------------------------------------------------------------------

URLS = st.sampled_from(["https://example.org/a.png", "data:,a%20b"]) | data_url(
    "image/png"
)
INPUT_TEXT = either({"type": "input_text", "text": TEXTS})
IMAGE = either({"type": "input_image", "detail": "low", "image_url": URLS})
FILE = st.one_of(
    either(
        {"type": "input_file", "file_data": data_url("application/pdf")},
        filename=TEXTS,
    ),
    either({"type": "input_file", "file_url": "https://example.org/a.pdf"}),
    either({"type": "input_file", "file_id": ID}),
)
INPUT = st.lists(st.one_of(INPUT_TEXT, IMAGE, FILE), min_size=1, max_size=3)
PROMPT = either(
    {
        "role": st.sampled_from(["user", "developer", "system"]),
        "content": TEXTS | INPUT,
    },
    type=st.just("message"),
)
OUTPUT_TEXT = either(
    {"type": "output_text", "text": TEXTS, "annotations": st.just([])},
    logprobs=st.just([]),
)
REFUSAL = either({"type": "refusal", "refusal": TEXTS})
SAID = either(
    {
        "type": "message",
        "role": "assistant",
        "id": ID,
        "status": "completed",
        "content": st.lists(OUTPUT_TEXT | REFUSAL, min_size=1, max_size=2),
    },
    phase=st.just("commentary"),
)
THOUGHT = either(
    {
        "type": "reasoning",
        "id": ID,
        "summary": st.lists(
            either({"type": "summary_text", "text": TEXTS}), max_size=2
        ),
    },
    encrypted_content=TEXTS,
    content=st.lists(either({"type": "reasoning_text", "text": TEXTS}), max_size=2),
)
SEARCH = either(
    {"type": "web_search_call", "id": ID, "status": "completed"},
    action=either({"type": "search", "query": TEXTS}),
)
REMOTE = either(
    {
        "type": "mcp_call",
        "id": ID,
        "name": WORDS,
        "server_label": WORDS,
        "arguments": ARGUMENTS,
        "status": st.sampled_from(["completed", "failed"]),
    },
    output=TEXTS,
    error=st.none() | TEXTS,
)
UNKNOWN = st.one_of(
    either({"type": st.sampled_from(["item_reference", "never_seen"]), "id": ID}),
    either({"type": "compaction", "encrypted_content": TEXTS}, id=ID),
    either({"type": "mcp_approval_response", "approve": st.booleans(), "x": st.none()}),
    either({"type": "additional_tools", "role": "developer", "tools": st.just([])}),
)
OUTPUT = (
    TEXTS | st.just("") | st.lists(INPUT_TEXT | IMAGE | FILE, min_size=1, max_size=3)
)


@st.composite
def calls(draw: st.DrawFn, number: int) -> tuple[Value, Value]:
    """Return a call and its result, of which only the id is the same."""
    call_id = f"call_{number}"
    if draw(st.booleans()):
        call = either(
            {
                "type": "function_call",
                "call_id": call_id,
                "name": WORDS,
                "arguments": ARGUMENTS,
            },
            id=ID,
            status=st.just("completed"),
            caller=either({"type": "direct"}),
        )
        result = either(
            {"type": "function_call_output", "call_id": call_id, "output": OUTPUT},
            status=st.just("completed"),
        )
        return draw(call), draw(result)

    name, key, value, output = draw(
        st.sampled_from(
            [
                ("custom_tool_call", "input", TEXTS, TEXTS),
                ("shell_call", "action", objects(JSON), st.just([{"stdout": "a"}])),
                (
                    "computer_call",
                    "action",
                    objects(TEXTS),
                    either({"type": "computer_screenshot", "image_url": URLS}),
                ),
                ("apply_patch_call", "operation", objects(TEXTS), st.none() | TEXTS),
            ]
        )
    )
    named = {"name": WORDS} if name == "custom_tool_call" else {}
    call = either({"type": name, "call_id": call_id, key: value, **named})
    result = either({"type": f"{name}_output", "call_id": call_id, "output": output})
    return draw(call), draw(result)


@st.composite
def items(draw: st.DrawFn) -> list[Value]:
    """Return the input of a request, with calls of one answer side by side."""
    listed: list[Value] = []
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        listed += draw(
            st.lists(
                st.one_of(PROMPT, SAID, THOUGHT, SEARCH, REMOTE, UNKNOWN), max_size=2
            )
        )
        pairs = []
        for _ in range(draw(st.integers(0, 3))):
            pairs.append(draw(calls(number)))
            number += 1
        listed += [call for call, _ in pairs]
        listed += draw(st.permutations([result for _, result in pairs]))
    return listed


# -- Chat Completions ------------------------------------------------------------------

CHAT_TEXT = either({"type": "text", "text": TEXTS})
CHAT_BLOCK = st.one_of(
    CHAT_TEXT,
    either(
        {"type": "image_url", "image_url": either({"url": URLS}, detail=st.just("low"))}
    ),
    either(
        {
            "type": "file",
            "file": either({"file_data": data_url("text/plain"), "filename": TEXTS}),
        }
    ),
    either({"type": "input_audio", "input_audio": objects(TEXTS)}),
)
CHAT_PROMPT = either(
    {
        "role": st.sampled_from(["user", "system", "developer"]),
        "content": TEXTS | st.lists(CHAT_BLOCK, min_size=1, max_size=3),
    },
    name=TEXTS,
)


@st.composite
def chat_answers(draw: st.DrawFn, number: int) -> list[Value]:
    """Return an answer with up to two calls, and their results."""
    message = draw(
        either(
            {"role": "assistant"},
            content=st.none() | TEXTS | st.lists(CHAT_TEXT, min_size=1, max_size=2),
            reasoning_content=TEXTS,
            refusal=st.none() | TEXTS,
        )
    )
    called, results = [], []
    for index in range(draw(st.integers(0, 2))):
        call_id = f"call_{number}_{index}"
        function = either({"name": WORDS, "arguments": ARGUMENTS})
        custom = either({"name": WORDS, "input": TEXTS})
        called.append(
            draw(
                either({"id": call_id, "type": "function", "function": function})
                | either({"id": call_id, "type": "custom", "custom": custom})
            )
        )
        content = TEXTS | st.lists(CHAT_TEXT, min_size=1, max_size=2)
        results.append(
            draw(either({"role": "tool", "tool_call_id": call_id, "content": content}))
        )
    if called:
        message["tool_calls"] = called
    elif not any(message.get(key) for key in ("content", "refusal")):
        message["content"] = draw(TEXTS)
    return [message, *draw(st.permutations(results))]


@st.composite
def chat_messages(draw: st.DrawFn) -> list[Value]:
    listed: list[Value] = []
    for number in range(draw(st.integers(1, 4))):
        listed += draw(st.lists(CHAT_PROMPT, max_size=2))
        listed += draw(chat_answers(number))
    return listed


# -- Anthropic -------------------------------------------------------------------------

BLOCK_TEXT = either({"type": "text", "text": TEXTS}, cache_control=CACHED)
BASE64 = either({"type": "base64", "media_type": "image/png", "data": CONTENTS})
PICTURE = either(
    {
        "type": "image",
        "source": BASE64 | either({"type": "url", "url": "https://a.org/b"}),
    },
    cache_control=CACHED,
)
DOCUMENT = either(
    {
        "type": "document",
        "source": st.one_of(
            either(
                {"type": "base64", "media_type": "application/pdf", "data": CONTENTS}
            ),
            either({"type": "text", "media_type": "text/plain", "data": TEXTS}),
        ),
    },
    title=TEXTS,
    context=TEXTS,
)
FOUND = either({"type": "search_result", "source": TEXTS, "content": st.just([])})
GIVEN = st.lists(
    st.one_of(BLOCK_TEXT, PICTURE, DOCUMENT, FOUND), min_size=1, max_size=3
)
THINKING = st.one_of(
    either({"type": "thinking", "thinking": st.text(max_size=9), "signature": TEXTS}),
    either({"type": "redacted_thinking", "data": TEXTS}),
)
SERVED = either(
    {"type": "server_tool_use", "id": ID, "name": "web_search", "input": objects(TEXTS)}
)
SERVED_RESULT = either(
    {"type": "web_search_tool_result", "tool_use_id": ID, "content": st.just([])}
)
SYSTEM = TEXTS | st.lists(BLOCK_TEXT, min_size=1, max_size=2)


@st.composite
def anthropic_answers(draw: st.DrawFn, number: int) -> tuple[Value, list[Value]]:
    """Return an answer, and the blocks of the results of its calls."""
    blocks = draw(
        st.lists(st.one_of(THINKING, BLOCK_TEXT, SERVED, SERVED_RESULT), max_size=3)
    )
    results = []
    for index in range(draw(st.integers(0, 2))):
        call_id = f"toolu_{number}_{index}"
        call = {
            "type": "tool_use",
            "id": call_id,
            "name": WORDS,
            "input": objects(JSON),
        }
        blocks.append(draw(either(call, cache_control=CACHED)))
        result = {"type": "tool_result", "tool_use_id": call_id}
        content = TEXTS | st.lists(BLOCK_TEXT | PICTURE, min_size=1, max_size=3)
        results.append(draw(either(result, content=content, is_error=st.booleans())))
    if not blocks:
        return {"role": "assistant", "content": draw(TEXTS)}, []
    return {"role": "assistant", "content": blocks}, draw(st.permutations(results))


@st.composite
def anthropic_messages(draw: st.DrawFn) -> list[Value]:
    """Return messages whose roles alternate, with the results of each answer first."""
    listed: list[Value] = [{"role": "user", "content": draw(TEXTS | GIVEN)}]
    for number in range(draw(st.integers(0, 4))):
        answer, results = draw(anthropic_answers(number))
        if not results:
            prompt = draw(TEXTS | GIVEN)
        else:
            prompt = [*results, *(draw(GIVEN) if draw(st.booleans()) else [])]
        listed += [answer, {"role": "user", "content": prompt}]
    return listed
