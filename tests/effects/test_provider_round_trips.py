"""A provider is sent what a program appended: equal after JSON, whatever it was."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from provider_values import SYSTEM, anthropic_messages, chat_messages, items

from sessiondb import Context, SessionHandle, Store

pytestmark = pytest.mark.slow
#: One store for all examples of a property: to open one takes longer than an example.
PROPERTY = settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CUTS = st.sets(st.integers(0, 30))
Values = list[dict[str, Any]]


def append_in_pieces(
    append: Any, session: SessionHandle, values: Values, cuts: Any
) -> None:
    """Append a list in several calls, so that results come after their calls do."""
    places = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    for first, last in pairwise(places):
        append(session, values[first:last])


def same_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@PROPERTY
@given(items(), CUTS)
def test_items_of_responses_come_back_equal(
    store: Store, listed: Values, cuts: Any
) -> None:
    session = store.create_session()
    before = deepcopy(listed)
    append_in_pieces(store.append_openai, session, listed, cuts)
    assert listed == before, "what a caller passed is not touched"
    context = store.context(session)
    assert context.to_openai() == same_json(context.to_openai()) == listed
    assert context.problems == ()


@PROPERTY
@given(chat_messages(), CUTS)
def test_messages_of_chat_completions_come_back_equal(
    store: Store, listed: Values, cuts: Any
) -> None:
    session = store.create_session()
    append_in_pieces(store.append_openai, session, listed, cuts)
    written = store.context(session).to_openai_chat()
    assert written == same_json(written) == listed


@PROPERTY
@given(anthropic_messages(), SYSTEM, CUTS)
def test_messages_of_anthropic_come_back_equal(
    store: Store, listed: Values, system: Any, cuts: Any
) -> None:
    session = store.create_session()
    store.append_anthropic(session, [], system="replaced")
    store.append_anthropic(session, [], system=system)
    append_in_pieces(store.append_anthropic, session, listed, cuts)
    request = store.context(session).to_anthropic()
    assert request == same_json(request)
    assert request["messages"] == listed
    # A text is one block of text, as far as the API is concerned.
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    assert request["system"] == blocks


# -- to another API ----------------------------------------------------------------


def assert_anthropic_takes(messages: Values) -> None:
    """Assert what the Messages API requires of roles, calls and results."""
    waiting: set[str] = set()
    roles = [message["role"] for message in messages]
    assert all(a != b for a, b in pairwise(roles)), roles
    for message in messages:
        content = message["content"]
        blocks = [] if isinstance(content, str) else content
        results = [
            block["tool_use_id"] for block in blocks if block["type"] == "tool_result"
        ]
        assert {*results} == waiting, "the results of the calls before it, no other"
        assert len(results) == len({*results})
        kinds = [block["type"] == "tool_result" for block in blocks]
        assert kinds == sorted(kinds, reverse=True), "results come first"
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert not waiting


def assert_chat_takes(messages: Values) -> None:
    """Assert that the results of an answer's calls follow it at once."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    assert not waiting


def assert_responses_takes(listed: Values) -> None:
    """Assert that each call has one output, behind it."""
    called: set[str] = set()
    for item in listed:
        kind = item.get("type", "message")
        if kind.endswith("_call_output"):
            assert item["call_id"] in called
            called.remove(item["call_id"])
        elif "call_id" in item:
            called.add(item["call_id"])
    assert not called


def assert_all_take(context: Context) -> None:
    assert_responses_takes(context.to_openai())
    assert_chat_takes(context.to_openai_chat())
    assert_anthropic_takes(
        [m for m in context.to_anthropic()["messages"] if m["role"] != "system"]
    )


@PROPERTY
@given(items(), st.integers(0, 12))
def test_what_openai_said_can_be_sent_to_all(
    store: Store, listed: Values, count: int
) -> None:
    session = store.create_session()
    # Cut anywhere: a killed program leaves calls without results.
    store.append_openai(session, listed[: count or None])
    assert_all_take(store.context(session))
    assert_all_take(store.context(session, repair="strip"))


@PROPERTY
@given(chat_messages(), st.integers(0, 12))
def test_what_a_chat_server_said_can_be_sent_to_all(
    store: Store, listed: Values, count: int
) -> None:
    session = store.create_session()
    store.append_openai(session, listed[: count or None])
    assert_all_take(store.context(session))


@PROPERTY
@given(anthropic_messages(), st.integers(0, 6))
def test_what_anthropic_said_can_be_sent_to_all(
    store: Store, listed: Values, count: int
) -> None:
    session = store.create_session()
    store.append_anthropic(session, listed[: count or None])
    assert_all_take(store.context(session))
