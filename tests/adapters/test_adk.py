"""`SessionDBSessionService`: runners continue on it as on ADK's own services."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.agents import BaseAgent
from google.adk.cli.service_registry import (
    get_service_registry,
    load_services_module,
)
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import Connection, other

from sessiondb import (
    ALL,
    AsyncStore,
    MessageDraft,
    SessionHandle,
    Store,
    StoreClosedError,
    user,
)
from sessiondb.adapters.adk import SessionDBSessionService
from sessiondb.adapters.adk.heads import AdkSession
from sessiondb.adapters.adk.keys import AdkKey, scopes_of_app
from sessiondb.maintenance import check

KEYS: dict[str, Any] = {"app_name": "kitchen", "user_id": "ada"}
FAST: dict[str, Any] = {"durability": "normal"}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[SessionDBSessionService]:
    path = tmp_path / "adk.db"
    async with SessionDBSessionService(path, **FAST) as opened:
        yield opened
    with Store.open(path) as store:
        assert check(store) == []


def said(words: str, author: str = "user", **fields: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=words)])
    return Event(author=author, content=content, invocation_id="i1", **fields)


def changed(author: str = "cook", **delta: Any) -> Event:
    named = {key.replace("__", ":"): value for key, value in delta.items()}
    return Event(author=author, actions=EventActions(state_delta=named))


async def texts(service: SessionDBSessionService, session_id: str = "s") -> list[str]:
    session = await service.get_session(**KEYS, session_id=session_id)
    assert session is not None
    return [part.text for it in session.events for part in it.content.parts]


def handle_of(session: Session) -> SessionHandle:
    assert isinstance(session, AdkSession)
    assert session.place is not None
    return SessionHandle(session.place.session_id)


def turn_with_tool() -> list[Event]:
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=100, cached_content_token_count=60, candidates_token_count=20,
        thoughts_token_count=5, total_token_count=125,
    )  # fmt: skip
    answered: dict[str, Any] = {
        "usage_metadata": usage,
        "model_version": "gemini-2.5-flash",
        "finish_reason": types.FinishReason.STOP,
        "invocation_id": "i1",
        "author": "cook",
    }
    picture = types.Part.from_bytes(data=b"\x89PNG" * 400, mime_type="image/png")
    look = types.FunctionCall(id="call-1", name="look", args={"at": [1, 2**70]})
    seen = types.FunctionResponse(
        id="call-1", name="look", response={"result": "two eggs"}
    )
    return [
        Event(
            author="user",
            invocation_id="i1",
            content=types.Content(
                role="user", parts=[types.Part(text="What is there?"), picture]
            ),
        ),
        Event(
            content=types.Content(
                role="model",
                parts=[
                    types.Part(text="I look.", thought=True, thought_signature=b"\xff"),
                    types.Part(function_call=look),
                ],
            ),
            **answered,
        ),
        Event(
            author="cook",
            invocation_id="i1",
            content=types.Content(
                role="user", parts=[types.Part(function_response=seen)]
            ),
        ),
        Event(
            content=types.Content(role="model", parts=[types.Part(text="Two eggs.")]),
            branch="cook.helper",
            **answered,
        ),
    ]


async def test_the_conversation_is_a_session_that_people_read(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    for event in turn_with_tool():
        await service.append_event(session, event)
    store = service.store
    (record,) = (await store.sessions(project=ALL, scope="kitchen/ada")).items
    assert (record.source, record.source_id) == ("google-adk", "kitchen/ada/s")
    assert (record.agent, record.directory, record.title) == (
        "kitchen", None, "What is there?",
    )  # fmt: skip
    messages = await store.messages(record)
    assert [(it.role, it.agent, it.text) for it in messages] == [
        ("user", None, "What is there?"),
        ("assistant", "cook", ""),
        ("tool", "cook", ""),
        ("assistant", "cook", "Two eggs."),
    ]
    assert [part.type for it in messages for part in it.parts] == [
        "text", "file", "reasoning", "tool", "tool-result", "text",
    ]  # fmt: skip
    assert messages[0].parts[1].data["content"] == b"\x89PNG" * 400
    call = messages[1].parts[1]
    assert (call.tool, call.input, call.text, call.status) == (
        "look", {"at": [1, 2**70]}, "two eggs", "completed",
    )  # fmt: skip
    answer = messages[3]
    assert (answer.model_id, answer.finish) == ("gemini-2.5-flash", "stop")
    assert messages[1].finish == "tool-calls"
    assert (answer.tokens_input, answer.tokens_cache_read) == (40, 60)
    assert (answer.tokens_output, answer.tokens_reasoning) == (20, 5)
    (row,) = await store.usage(by="model")
    assert (row.key, row.tokens.output) == ({"model": "gemini-2.5-flash"}, 40)
    assert await store.unfinished() == []
    assert (await store.search("eggs")).items
    fork = await store.fork(record)
    assert len(await store.messages(fork)) == 4
    listed = await service.list_sessions(app_name="kitchen")
    assert [it.id for it in listed.sessions] == ["s"]


async def test_events_come_back_as_they_were(service: SessionDBSessionService) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    long = "A long text. " * 400
    compaction = EventCompaction(
        start_timestamp=1.0,
        end_timestamp=2.0,
        compacted_content=types.Content(role="model", parts=[types.Part(text="Eggs.")]),
    )
    events = [
        *turn_with_tool(),
        said(long),
        said("a NUL \0", author="cook"),
        Event(author="cook", error_code="429", error_message="Too many requests"),
        Event(author="cook", actions=EventActions(compaction=compaction)),
        Event(author="user", content=types.Content(role="user", parts=[])),
        Event(author="user", output={"dict": [1, None]}, node_path="wf/A@1"),
        Event(id="ü" * 300, author="x" * 300, custom_metadata={"n": 2**70, "x": "\ud800"}),
        Event(
            author="cook",
            content=types.Content(
                parts=[
                    types.Part(
                        file_data=types.FileData(file_uri="gs://a/b", mime_type="a/b")
                    ),
                    types.Part(text=""),
                    types.Part(function_call=types.FunctionCall(name="f")),
                    types.Part(function_call=types.FunctionCall(id="c", args={})),
                    types.Part(function_call=types.FunctionCall(name="f", args={"x": "\ud800"})),
                    types.Part(inline_data=types.Blob(mime_type="a/b", data=b"")),
                    types.Part(
                        executable_code=types.ExecutableCode(
                            code="1 + 1", language=types.Language.PYTHON
                        )
                    ),
                    types.Part(
                        code_execution_result=types.CodeExecutionResult(
                            outcome=types.Outcome.OUTCOME_OK, output="2"
                        )
                    ),
                ]
            ),
            long_running_tool_ids={"a", "b"},
            turn_complete=True,
            interrupted=True,
            output_transcription=types.Transcription(text="Words", finished=True),
        ),
        Event(
            author="cook",
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=1, cached_content_token_count=5
            ),
        ),
        Event(author="cook", timestamp=100.5),
        Event(author="cook", timestamp=1e12),
    ]  # fmt: skip
    for event in events:
        await service.append_event(session, copy.deepcopy(event))
    reread = await service.get_session(**KEYS, session_id="s")
    assert reread is not None
    for stored, event in zip(reread.events, events, strict=True):
        assert stored == event
    assert reread == session
    roles = [it.role for it in await service.store.messages(handle_of(session))]
    assert roles[-9:] == [
        "assistant", "event", "event", "event", "event", "assistant", "assistant",
        "event", "event",
    ]  # fmt: skip


_WORDS = st.text(max_size=4) | st.sampled_from(["\0", "x" * 1100, "ü💡"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | _WORDS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
_IDS = st.none() | st.sampled_from(["", "c1", "c2", "x" * 300])
_PARTS = st.one_of(
    st.builds(
        types.Part,
        text=_WORDS,
        thought=st.none() | st.booleans(),
        thought_signature=st.none() | st.binary(max_size=3),
    ),
    st.builds(
        lambda **call: types.Part(function_call=types.FunctionCall(**call)),
        id=_IDS,
        name=st.none() | _WORDS,
        args=st.none() | st.dictionaries(_WORDS, _JSON, max_size=2),
    ),
    st.builds(
        lambda **result: types.Part(function_response=types.FunctionResponse(**result)),
        id=_IDS,
        name=st.none() | _WORDS,
        response=st.none()
        | st.dictionaries(st.sampled_from(["result", "error", "x"]), _JSON, max_size=2),
    ),
    st.builds(
        lambda **blob: types.Part(inline_data=types.Blob(**blob)),
        data=st.binary(max_size=5) | st.just(b"\0" * 2000),
        mime_type=st.none() | _WORDS,
    ),
    st.just(types.Part()),
)
_EVENTS = st.builds(
    Event,
    author=st.sampled_from(["user", "cook", ""]),
    content=st.none()
    | st.builds(
        types.Content,
        role=st.sampled_from([None, "user", "model", "other"]),
        parts=st.none() | st.lists(_PARTS, max_size=3),
    ),
    custom_metadata=st.none() | st.dictionaries(_WORDS, _JSON, max_size=2),
    model_version=st.none() | _WORDS,
    error_code=st.none() | _WORDS,
    finish_reason=st.none() | st.sampled_from(list(types.FinishReason)),
    usage_metadata=st.none()
    | st.builds(
        types.GenerateContentResponseUsageMetadata,
        prompt_token_count=st.none() | st.integers(-5, 10**13),
        candidates_token_count=st.none() | st.integers(0, 9),
    ),
    timestamp=st.floats(-1e18, 1e18),
    actions=st.builds(
        EventActions, state_delta=st.dictionaries(_WORDS, _JSON, max_size=2)
    ),
)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(_EVENTS, max_size=5))
def test_any_events_come_back_as_from_memory(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    async def run() -> None:
        path = tmp_path_factory.mktemp("events") / "a.db"
        memory = InMemorySessionService()
        async with SessionDBSessionService(path, **FAST) as service:
            for one in (service, memory):
                session = await one.create_session(**KEYS, session_id="s")
                for event in events:
                    await one.append_event(session, event.model_copy(deep=True))
            stored = await service.get_session(**KEYS, session_id="s")
            expected = await memory.get_session(**KEYS, session_id="s")
            assert stored is not None
            assert expected is not None
            assert stored.events == expected.events
            assert stored.state == expected.state
        with Store.open(path) as store:
            assert check(store) == []

    asyncio.run(run())


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "append", "get", "list", "delete", "state"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["1", "2"]),
        st.sampled_from(["s", "t"]),
        st.dictionaries(
            st.sampled_from(["k", "user:k", "app:k", "temp:k"]),
            st.integers(0, 3) | st.none() | st.just({"x": 1}),
            max_size=2,
        ),
        st.integers(0, 4),
    ),
    max_size=25,
)


def shown(session: Session | None) -> Any:
    return session and session.model_dump(exclude={"last_update_time"})


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_any_calls_return_what_they_return_in_memory(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    async def run() -> None:
        path = tmp_path_factory.mktemp("calls") / "a.db"
        memory = InMemorySessionService()
        async with SessionDBSessionService(path, **FAST) as service:
            for number, (step, app, person, name, delta, count) in enumerate(steps):
                keys: dict[str, Any] = {"app_name": app, "user_id": person}
                results = []
                for one in (service, memory):
                    result: Any = None
                    if step == "create":
                        try:
                            result = await one.create_session(
                                **keys, session_id=name, state=copy.deepcopy(delta)
                            )
                        except AlreadyExistsError as error:
                            result = str(error)
                        else:
                            result = shown(result)
                    elif step == "append":
                        session = await one.get_session(**keys, session_id=name)
                        if session is not None:
                            event = Event(
                                id=f"e{number}", author="cook", timestamp=number + 0.25,
                                actions=EventActions(state_delta=copy.deepcopy(delta)),
                            )  # fmt: skip
                            await one.append_event(session, event)
                            result = session.model_dump()
                    elif step == "get":
                        config = GetSessionConfig(
                            num_recent_events=count or None,
                            after_timestamp=len(steps) / 2 if count % 2 else None,
                        )
                        session = await one.get_session(
                            **keys, session_id=name, config=config
                        )
                        result = shown(session)
                    elif step == "list":
                        for person_id in (person, None):
                            listed = await one.list_sessions(
                                app_name=app, user_id=person_id
                            )
                            result = [result, sorted(
                                [shown(it) for it in listed.sessions],
                                key=lambda it: (it["user_id"], it["id"]),
                            )]  # fmt: skip
                    elif step == "delete":
                        await one.delete_session(**keys, session_id=name)
                    else:
                        result = await one.get_user_state(**keys)
                    results.append(result)
                assert results[0] == results[1]
        with Store.open(path) as store:
            assert check(store) == []

    asyncio.run(run())


HOSTILE = ["a", "b", "", "/", "a/b", "%2F", "=", "1", "01", "ü💡", "a\n", "\x7f", "@", "x" * 81, "x" * 300, "x" * 301]  # fmt: skip


async def test_no_key_is_taken_for_another_one(
    service: SessionDBSessionService,
) -> None:
    keys = [
        AdkKey(app, person, name)
        for app in HOSTILE
        for person in ("a", "", "/", "x" * 300)
        for name in ("a", "/a", "a/a")
    ]
    keys += [AdkKey("a", "a", name) for name in HOSTILE if name.strip()]
    unique = sorted({it._replace(id=it.id.strip()) for it in keys})
    assert len({it.source_id for it in unique}) == len(unique)
    assert max(len(it.source_id) for it in unique) <= 256
    for key in unique:
        state = {"key": list(key), "user:key": key.user, "app:key": key.app}
        await service.create_session(
            app_name=key.app, user_id=key.user, session_id=key.id, state=state
        )
    for key in unique[::7]:
        session = await service.get_session(
            app_name=key.app, user_id=key.user, session_id=f"{key.id} "
        )
        assert session is not None
        assert AdkKey(session.app_name, session.user_id, session.id) == key
        assert session.state["key"] == list(key)
    for app in HOSTILE:
        of_app = [it for it in unique if it.app == app]
        listed = await service.list_sessions(app_name=app)
        assert sorted([(it.user_id, it.id) for it in listed.sessions]) == sorted(
            [(it.user, it.id) for it in of_app]
        )
        assert all(it.state["user:key"] == it.user_id for it in listed.sessions)
        assert all(it.state["app:key"] == app for it in listed.sessions)
        listed = await service.list_sessions(app_name=app, user_id="")
        assert len(listed.sessions) == len([it for it in of_app if not it.user])
    assert await service.get_session(**KEYS, session_id="\ud800") is None
    assert await service.get_session(**KEYS, session_id="") is None
    low, high = scopes_of_app("a")
    assert low <= AdkKey("a", "\U0010ffff", "x").scope < high


async def test_equal_ids_of_another_program_are_another_session(
    service: SessionDBSessionService,
) -> None:
    async with service.store.effects() as fx:
        fx.open_session("kitchen/ada/s", source="langgraph", scope="kitchen/ada")
        fx.open_session("kitchen/ada/t", source="google-adk", scope="kitchen/ada")
    assert await service.get_session(**KEYS, session_id="s") is None
    assert await service.get_session(**KEYS, session_id="t") is None
    await service.create_session(**KEYS, session_id="s")
    listed = await service.list_sessions(app_name="kitchen")
    assert [it.id for it in listed.sessions] == ["s"]


async def test_two_objects_of_a_session_that_append_in_turns(
    service: SessionDBSessionService,
) -> None:
    one = await service.create_session(**KEYS, session_id="s")
    two = await service.get_session(**KEYS, session_id="s")
    assert two is not None
    # Of one time: that decides nothing.
    await service.append_event(one, said("one", timestamp=1.7e9))
    with pytest.raises(StaleSessionError, match="modified in storage"):
        await service.append_event(two, said("lost", timestamp=1.7e9))
    two = await service.get_session(**KEYS, session_id="s")
    assert two is not None
    await service.append_event(two, said("two", timestamp=1.7e9))
    with pytest.raises(StaleSessionError):
        await service.append_event(copy.deepcopy(one), said("lost"))
    assert await texts(service) == ["one", "two"]


async def test_a_session_is_stale_only_if_its_events_changed(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    await service.append_event(session, said("one"))
    record = handle_of(session)
    await service.store.set_title(record, "A title")
    await service.store.archive(record)
    session.last_update_time -= 10
    other_session = await service.create_session(**KEYS, session_id="t")
    await service.append_event(other_session, changed(user__k=1, app__k=1))
    await service.append_event(session, said("two"))
    # An object that was made of JSON knows the events alone.
    plain = Session.model_validate_json(session.model_dump_json())
    await service.append_event(plain, said("three"))
    await asyncio.gather(
        *[service.append_event(plain, said(f"p{number}")) for number in range(3)]
    )
    old = Session.model_validate_json(session.model_dump_json())
    with pytest.raises(StaleSessionError):
        await service.append_event(old, said("lost"))
    stored = await texts(service)
    assert stored[:3] == ["one", "two", "three"]
    assert sorted(stored[3:]) == ["p0", "p1", "p2"]
    assert [it.content.parts[0].text for it in plain.events] == stored
    await service.store.pop(record)
    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("lost"))


async def test_tasks_that_share_a_session_lose_nothing(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    events = [said(f"{number}", author="cook") for number in range(25)]
    await asyncio.gather(*[service.append_event(session, it) for it in events])
    reread = await service.get_session(**KEYS, session_id="s")
    assert reread is not None
    assert sorted([it.id for it in reread.events]) == sorted([it.id for it in events])
    assert reread == session


async def test_a_session_that_was_deleted_and_made_again(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s", state={"k": 1})
    await service.append_event(session, said("one"))
    await service.delete_session(**KEYS, session_id=" s ")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, said("two"))
    again = await service.create_session(**KEYS, session_id="s")
    assert (again.events, again.state) == ([], {})
    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("two"))
    with pytest.raises(AlreadyExistsError, match="s already exists"):
        await service.create_session(**KEYS, session_id="s\n", state={"app:k": 2})
    assert (await service.create_session(**KEYS)).state == {}
    assert await texts(service) == []
    await service.delete_session(**KEYS, session_id="never")
    unknown = Session(app_name="kitchen", user_id="ada", id="never")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(unknown, said("two"))


async def test_an_event_that_is_delivered_again_is_stored_once(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    stale = copy.deepcopy(session)
    event = said("one")
    await service.append_event(session, event)
    await service.append_event(session, event)
    await service.append_event(session, copy.deepcopy(event))
    # The caller was cancelled while it was stored: the session is now as it would be.
    await service.append_event(stale, copy.deepcopy(event))
    assert stale == session
    # Other events may have the id of an earlier one.
    await service.append_event(session, Event(id="same", author="a"))
    await service.append_event(session, Event(id="same", author="b"))
    await service.append_event(session, said("two", id=event.id))
    reread = await service.get_session(**KEYS, session_id="s")
    assert reread == session
    assert [it.author for it in session.events] == ["user", "a", "b", "user"]


async def test_an_append_whose_caller_is_cancelled_is_stored_or_not(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    for number in range(12):
        event = said(f"{number}")
        task = asyncio.create_task(service.append_event(session, event))
        await asyncio.sleep(number * 0.0002)
        task.cancel()
        await asyncio.wait([task])
        # Tried again, it is stored once in any case.
        await service.append_event(session, event)
        assert len(session.events) == number + 1
    assert await texts(service) == [f"{number}" for number in range(12)]


async def test_state_has_three_scopes_and_is_stored_as_it_was(
    service: SessionDBSessionService,
) -> None:
    state = {"k": 2**70, "f": 0.1 + 0.2, "none": None, "temp:x": 1, "user:u": {"a": 1}}
    session = await service.create_session(**KEYS, session_id="s", state=state)
    assert "temp:x" not in session.state
    event = changed(temp__y=1, nan=float("inf"), user__u={"b": 2}, app__a=[2**70])
    await service.append_event(session, event)
    assert session.state["temp:y"] == 1
    assert event.actions.state_delta.keys() == {"nan", "user:u", "app:a"}
    await service.append_event(session, changed(call=len, when={"n": 1}))
    reread = await service.get_session(**KEYS, session_id="s")
    assert reread is not None
    assert reread.state == {
        "k": 2**70, "f": 0.1 + 0.2, "none": None, "user:u": {"b": 2}, "nan": float("inf"),
        "app:a": [2**70], "call": "<built-in function len>", "when": {"n": 1},
    }  # fmt: skip
    assert await service.get_user_state(**KEYS) == {"u": {"b": 2}}
    assert await service.get_user_state(app_name="kitchen", user_id="eve") == {}
    await service.append_event(session, Event(author="a", partial=True))
    assert len(session.events) == 2


async def test_recent_events_and_those_since_a_time(
    service: SessionDBSessionService,
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    start = 1.7e9
    for number in range(10):
        words = f"{number} " + "x" * (1200 if number % 3 == 0 else 1)
        await service.append_event(
            session, said(words, timestamp=start + number / 10_000)
        )

    async def numbers(**config: Any) -> list[int]:
        found = await service.get_session(
            **KEYS, session_id="s", config=GetSessionConfig(**config)
        )
        assert found is not None
        assert found.last_update_time == start + 9 / 10_000
        return [int(it.content.parts[0].text.split()[0]) for it in found.events]

    assert await numbers() == list(range(10))
    assert await numbers(num_recent_events=0) == []
    assert await numbers(num_recent_events=3) == [7, 8, 9]
    assert await numbers(num_recent_events=99) == list(range(10))
    assert await numbers(after_timestamp=start + 6 / 10_000) == [6, 7, 8, 9]
    assert await numbers(after_timestamp=start + 1) == []
    both = {"after_timestamp": start + 6 / 10_000, "num_recent_events": 2}
    assert await numbers(**both) == [8, 9]


async def test_rewinding_is_a_branch_of_the_session(
    service: SessionDBSessionService,
) -> None:
    runner = Runner(
        app_name="kitchen", agent=BaseAgent(name="cook"), session_service=service
    )
    session = await service.create_session(**KEYS, session_id="s")
    for number in range(3):
        event = said(f"{number}", actions=EventActions(state_delta={"n": number}))
        event.invocation_id = f"i{number}"
        await service.append_event(session, event)
    await runner.rewind_async(
        user_id="ada", session_id="s", rewind_before_invocation_id="i1"
    )
    rewound = await service.get_session(**KEYS, session_id="s")
    assert rewound is not None
    assert [it.invocation_id for it in rewound.events[:3]] == ["i0", "i1", "i2"]
    assert (len(rewound.events), rewound.state["n"]) == (4, 0)
    await service.append_event(rewound, said("again"))
    path = await service.store.messages(handle_of(session))
    assert [it.text for it in path] == ["0", "", "again"]
    reread = await service.get_session(**KEYS, session_id="s")
    assert reread == rewound
    await runner.rewind_async(
        user_id="ada", session_id="s", rewind_before_invocation_id="i0"
    )
    path = await service.store.messages(handle_of(session))
    assert [it.text for it in path] == [""]


async def test_what_people_remove_is_gone_for_agents(
    service: SessionDBSessionService, tmp_path: Path
) -> None:
    session = await service.create_session(**KEYS, session_id="s")
    events = [said("My password is hunter2"), said("Well"), said("Bye")]
    for event in events:
        await service.append_event(session, event)
    record = handle_of(session)
    await service.store.replace(record, events[0].id, user("[redacted]"))
    await service.store.append(record, MessageDraft("user"))
    assert await texts(service) == ["Well", "Bye"]
    await service.store.truncate(record, after=events[1].id)
    assert await texts(service) == ["Well"]
    listed = (await service.list_sessions(app_name="kitchen")).sessions
    assert listed[0].last_update_time == events[1].timestamp
    await service.store.truncate(record, after=None)
    assert await texts(service) == []
    listed = (await service.list_sessions(app_name="kitchen")).sessions
    assert listed[0].last_update_time == pytest.approx(session.last_update_time, abs=9)


def converse_in_processes(pipe: Connection, path: Path) -> None:
    """Let four processes make one session, and append to it what they saw of it."""
    children = []
    for name in "abcd":
        # Forked before anything is open: the import of ADK takes a second.
        child = os.fork()
        if child == 0:
            made = asyncio.run(converse(path, name))
            os._exit(int(made))
        children.append(child)
    pipe.send([os.waitstatus_to_exitcode(os.waitpid(it, 0)[1]) for it in children])


async def converse(path: Path, name: str) -> bool:
    made = True
    async with SessionDBSessionService(path, **FAST) as service:
        try:
            await service.create_session(**KEYS, session_id="s", state={"app:seen": 0})
        except AlreadyExistsError:
            made = False
        for number in range(6):
            while True:
                session = await service.get_session(**KEYS, session_id="s")
                assert session is not None
                event = said(f"{name}{number}")
                event.actions.state_delta = {
                    "seen": session.state.get("seen", 0) + 1,
                    f"user:{name}": number,
                }
                try:
                    await service.append_event(session, event)
                except StaleSessionError:
                    continue
                break
    return made


@pytest.mark.slow
async def test_processes_that_share_a_session_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "adk.db"
    with other(converse_in_processes, path) as processes:
        made = await asyncio.to_thread(processes.hear)
    assert sorted(made) == [0, 0, 0, 1]
    async with SessionDBSessionService(path) as service:
        session = await service.get_session(**KEYS, session_id="s")
        assert session is not None
        words = [it.content.parts[0].text for it in session.events]
        assert sorted(words) == sorted([f"{n}{i}" for n in "abcd" for i in range(6)])
        # Every event follows the one whose state its writer had seen.
        users = {f"user:{name}": 5 for name in "abcd"}
        assert session.state == {"seen": 24, "app:seen": 0, **users}
    with Store.open(path) as store:
        assert check(store) == []


async def test_a_store_that_is_given_stays_open(tmp_path: Path) -> None:
    async with AsyncStore.open(tmp_path / "a.db") as store:
        async with SessionDBSessionService(store) as service:
            await service.create_session(**KEYS, session_id="s")
            await service.flush()
        assert len((await store.sessions(empty=True)).items) == 1
    with Store.open(tmp_path / "a.db") as blocking:
        async with SessionDBSessionService(blocking) as service:
            assert await texts(service) == []
        assert check(blocking) == []
    service = SessionDBSessionService(tmp_path / "a.db")
    await service.close()
    with pytest.raises(StoreClosedError):
        await service.get_session(**KEYS, session_id="s")


def test_a_service_is_made_without_a_loop_and_used_in_several(tmp_path: Path) -> None:
    service = SessionDBSessionService(f"sqlite:///{tmp_path / 'a.db'}", **FAST)
    assert not (tmp_path / "a.db").exists()
    session = asyncio.run(service.create_session(**KEYS, session_id="s"))
    asyncio.run(service.append_event(session, said("one")))
    assert asyncio.run(texts(service)) == ["one"]
    asyncio.run(service.close())


SERVICES = """
from google.adk.cli.service_registry import get_service_registry
from sessiondb.adapters.adk import SessionDBSessionService
factory = SessionDBSessionService.from_uri
get_service_registry().register_session_service("sessiondb", factory)
"""


async def test_adk_web_finds_the_service_by_its_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services.py").write_text(SERVICES)
    monkeypatch.syspath_prepend(tmp_path)
    load_services_module(str(tmp_path))
    monkeypatch.delitem(sys.modules, "services")
    service = get_service_registry().create_session_service(
        f"sessiondb:///{tmp_path}/adk.db", agents_dir="x"
    )
    assert isinstance(service, SessionDBSessionService)
    await service.create_session(**KEYS, session_id="s")
    await service.close()
    with Store.open(tmp_path / "adk.db", create=False) as store:
        (session,) = store.sessions(empty=True).items
        assert session.source_id == "kitchen/ada/s"


def test_without_the_framework_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['google.adk'] = None\n"
        "from sessiondb import MissingExtraError\n"
        "import sessiondb.adapters.adk as adk\n"
        "try: adk.SessionDBSessionService\n"
        "except MissingExtraError as error: print(error.hint)\n"
        "try: adk.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "pip install 'sessiondb[adk]'",
        "module 'sessiondb.adapters.adk' has no attribute 'nothing'",
    ]


async def test_a_list_costs_the_same_beside_other_sessions(
    service: SessionDBSessionService,
) -> None:
    """Each statement searches an index, and no table is read as a whole."""
    from sqlalchemy.dialects import sqlite

    from sessiondb.adapters.adk import statements

    await service.create_session(**KEYS, session_id="s")
    async with service.store.connection() as connection:
        for name in (
            "HEAD", "HEADS_OF_USER", "HEADS_OF_APP", "STATES_OF_USERS", "EVENTS",
            "LAST_EVENTS", "EVENTS_SINCE",
        ):  # fmt: skip
            text = str(
                getattr(statements, name).compile(
                    dialect=sqlite.dialect(), compile_kwargs={"literal_binds": False}
                )
            )
            rows = await connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {text}", tuple("1" * text.count("?"))
            )
            steps = [row[-1] for row in rows]
            assert not [step for step in steps if step.startswith("SCAN")], (
                name,
                steps,
            )


def test_messages_are_json_for_programs_that_read_the_file(tmp_path: Path) -> None:
    async def run() -> None:
        async with SessionDBSessionService(tmp_path / "a.db", **FAST) as service:
            session = await service.create_session(**KEYS, session_id="s")
            await service.append_event(session, said("one"))

    asyncio.run(run())
    command = [sys.executable, "-m", "sessiondb", "--db", "a.db", "show", "--json", "@"]
    command[-1] = "kitchen/ada/s"
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    (message,) = json.loads(done.stdout)["messages"]
    assert message["data"]["adk"]["invocationId"] == "i1"
    assert "one" not in json.dumps(message["data"])
