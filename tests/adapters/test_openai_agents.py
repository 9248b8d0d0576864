"""`SessionDBSession`: runners of the Agents SDK store on it as on `SQLiteSession`."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")

from agents import (
    Agent,
    OpenAIResponsesCompactionSession,
    Runner,
    SessionSettings,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.memory import Session
from agents.run_context import RunContextWrapper
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openai.types.responses.response_usage import (
    InputTokensDetails,
    OutputTokensDetails,
)
from peers import Connection, other

from sessiondb import (
    ALL,
    AsyncStore,
    ConflictError,
    CorruptionError,
    InvalidInputError,
    ReadOnlyError,
    Store,
    assistant,
    tool,
    user,
)
from sessiondb.adapters.openai_agents import SessionDBSession
from sessiondb.maintenance import check

set_tracing_disabled(True)
#: The writes of each of several processes.
WRITES = 12
Item = Any


def prompt(words: str) -> Item:
    return {"content": words, "role": "user"}


def answer(words: str, number: int = 1) -> Item:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }  # fmt: skip


def call(number: int, arguments: str = '{"command":"pytest"}') -> Item:
    return {
        "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
        "name": "bash", "arguments": arguments, "status": "completed",
    }  # fmt: skip


def output(number: int, words: Any) -> Item:
    return {
        "type": "function_call_output", "call_id": f"call_{number}", "output": words
    }  # fmt: skip


def turn(number: int) -> list[Item]:
    return [
        prompt(f"question {number}"),
        {"type": "reasoning", "id": f"rs_{number}", "summary": []},
        call(number),
        output(number, f"result {number}"),
        answer(f"answer {number}", number),
    ]


#: Items of every sort that the SDK stores, and such as it should not.
EVERY_SORT: list[Item] = [
    *turn(1),
    {"role": "developer", "content": "Be short."},
    {"role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            {"type": "input_file", "file_id": "file_1"},
        ],
    },
    {
        "type": "reasoning", "id": "rs_2", "encrypted_content": "sealed" * 400,
        "summary": [{"type": "summary_text", "text": "First"}, {"type": "summary_text", "text": "then"}],
    },
    call(2, '{"command": "ls", "n": 1}'),
    call(3, ""),
    call(4, "not json"),
    call(5, '{"big":"' + "x" * 3000 + '"}'),
    output(5, "y" * 3000),
    output(4, [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "https://a/b.png"}]),
    output(3, ""),
    output(2, "two lines\nand \0 half \ud800"),
    output(2, "a second result"),
    output(99, "of no call"),
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "mcp_approval_request", "id": "m1", "name": "n", "arguments": "{}", "server_label": "s"},
    {"type": "compaction", "id": "c1", "encrypted_content": "sealed"},
    {"type": "item_reference", "id": "msg_9"},
    {"__enc__": 1, "v": 1, "kid": "k", "payload": "z" * 2000},
    answer("", 3),
    {"role": "user", "content": "half \udc00 and \0"},
    {"role": "user", "content": "", "extra": {"deep": [1, 2.5, None, True, {"a": []}]}},
    {"role": "user", "content": "counted", "id": 2**80},
    {"role": "nobody", "content": "?"},
    {"content": "without role"},
    {},
]  # fmt: skip


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[SessionDBSession]:
    async with AsyncStore(tmp_path / "agents.db", durability="normal") as store:
        yield SessionDBSession("terminal-1", store)
        shared = Store.sharing(store)
        assert await asyncio.to_thread(check, shared) == []


async def stored(session: SessionDBSession) -> Any:
    (only,) = (await session.store.sessions(project=ALL)).items
    return only


def as_json(items: Any) -> Any:
    return json.loads(json.dumps(items))


# -- items -------------------------------------------------------------------------


async def test_items_of_every_sort_come_back_equal(session: SessionDBSession) -> None:
    assert isinstance(session, Session)
    assert await session.get_items() == []
    await session.add_items(EVERY_SORT)
    assert await session.get_items() == as_json(EVERY_SORT)
    for item in EVERY_SORT:
        await session.add_items([item])
    twice = as_json(EVERY_SORT * 2)
    assert await session.get_items() == twice
    for limit in range(1, len(twice) + 3):
        assert await session.get_items(limit) == twice[-limit:]

    # A message of another program has the store read the session, to the same result.
    await session.store.append(await stored(session), user("by hand"))
    assert await session.get_items() == [*twice, {
        "type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "by hand"}],
    }]  # fmt: skip
    await session.pop_item()
    for item in reversed(twice):
        assert await session.pop_item() == item
    assert await session.pop_item() is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["type", "text", "content", "output", "x", "id"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
TEXTS = st.text(max_size=8) | st.sampled_from(["", "\0", "\ud800", "x" * 1100])
ARGUMENTS = TEXTS | JSON.map(lambda value: json.dumps(value, separators=(",", ":")))
IDS = st.sampled_from(["c1", "c2"])
BLOCKS = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["input_text", "output_text", "refusal", "odd"]), "text": TEXTS | JSON}),
    max_size=3,
)  # fmt: skip
ITEMS = st.one_of(
    st.builds(lambda role, content: {"role": role, "content": content},
              st.sampled_from(["user", "assistant", "system", "developer", "odd"]), TEXTS | BLOCKS | JSON),
    st.builds(lambda i, a: {"type": "function_call", "call_id": i, "name": "f", "arguments": a}, IDS, ARGUMENTS),
    st.builds(lambda i, o: {"type": "function_call_output", "call_id": i, "output": o}, IDS, TEXTS | BLOCKS | JSON),
    st.builds(lambda s: {"type": "reasoning", "summary": s}, BLOCKS | JSON),
    st.dictionaries(st.sampled_from(["type", "role", "content", "call_id", "name", "x"]), JSON, max_size=4),
)  # fmt: skip
NUMBERS = itertools.count()
STEPS = st.lists(
    st.one_of(
        st.lists(ITEMS, max_size=4).map(lambda items: ("add", items)),
        st.just(("pop", None)),
        st.sampled_from([None, 0, -1, 1, 2, 5]).map(lambda limit: ("get", limit)),
        st.just(("clear", None)),
    ),
    max_size=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    steps=[
        ("add", [
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": ""},
            {"type": "function_call_output", "call_id": "c2", "output": ""},
            # A refusal without its text, which is not an empty one.
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "refusal", "text": ""}]},
        ]),
    ]
)  # fmt: skip
@given(steps=STEPS)
def test_any_calls_return_what_sqlite_session_returns(
    tmp_path: Path, steps: list[tuple[str, Any]]
) -> None:
    async def perform() -> None:
        theirs = SQLiteSession("s")
        # A new session of one file: to make a file takes longer than all steps.
        ours = SessionDBSession(
            f"s{next(NUMBERS)}", tmp_path / "a.db", durability="normal"
        )
        for verb, value in steps:
            results = []
            for one in (theirs, ours):
                if verb == "add":
                    results.append(await one.add_items(value))
                elif verb == "pop":
                    results.append(await one.pop_item())
                elif verb == "get":
                    results.append(await one.get_items(value))
                else:
                    results.append(await one.clear_session())
            assert results[0] == results[1], verb
        assert await theirs.get_items() == await ours.get_items()
        theirs.close()
        ours.close()

    asyncio.run(perform())


async def test_a_result_before_whose_call_the_last_items_begin_has_its_text(
    session: SessionDBSession,
) -> None:
    calls = [call(number) for number in range(30)]
    await session.add_items(calls)
    outputs = [output(number, f"result {number}") for number in range(30)]
    await session.add_items(outputs)
    assert await session.get_items(3) == outputs[-3:]
    assert await session.get_items(31) == [calls[-1], *outputs]


async def test_limits_are_those_of_sqlite_session(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    session = SessionDBSession("s", database, session_settings={"limit": 2})
    assert session.session_settings == SessionSettings(limit=2)
    items = [prompt(str(number)) for number in range(5)]
    await session.add_items(items)
    assert await session.get_items() == items[-2:]
    assert await session.get_items(4) == items[-4:]
    assert await session.get_items(0) == []
    assert await session.get_items(-1) == items
    assert await session.get_items(100) == items
    session.session_settings = None
    assert await session.get_items() == items
    session.close()


async def test_what_is_not_json_is_refused_and_nothing_is_written(
    session: SessionDBSession,
) -> None:
    bad: Item = {"role": "user", "content": object()}
    with pytest.raises(TypeError):
        await session.add_items([prompt("first"), bad])
    assert await session.get_items() == []
    assert (await session.store.sessions(project=ALL, empty=True)).items == ()
    with pytest.raises(InvalidInputError, match="session_id is a string"):
        SessionDBSession(5, session.store)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="the store is open already"):
        SessionDBSession("s", session.store, durability="normal")


# -- sessions ------------------------------------------------------------------------

HOSTILE = ["", "1", "terminal-1", "nal-1", "@", "a/b", "~", "~a", "~#" + "0" * 64, "t" * 300,
           "t" * 301, "tür 💡", "\ud800", "a\nb", "ses_7YCEWKH5BZS3GPTMDAH1B724F6", "%", " "]  # fmt: skip


async def test_ids_of_any_form_are_sessions_of_their_own(tmp_path: Path) -> None:
    async with AsyncStore(tmp_path / "a.db", durability="normal") as store:
        for source in ("another", "langgraph"):
            mine = await store.open_session("1", source=source)
            await store.append(mine, user(source))
        for number, name in enumerate(HOSTILE):
            await SessionDBSession(name, store).add_items([prompt(str(number))])
        for number, name in enumerate(HOSTILE):
            again = SessionDBSession(name, store)
            assert await again.get_items() == [prompt(str(number))], name
        await SessionDBSession("1", store).clear_session()
        assert [m.text for m in await store.messages(mine)] == ["langgraph"]
        assert await SessionDBSession("1", store).get_items() == []
        assert await SessionDBSession("", store).get_items() == [prompt("0")]
        assert await asyncio.to_thread(check, Store.sharing(store)) == []


async def test_a_cleared_session_is_not_found_and_begins_again_at_once(
    session: SessionDBSession,
) -> None:
    store = session.store
    await session.clear_session()
    await session.add_items([prompt("my password is hunter2"), *turn(1)])
    fork = await store.fork(await stored(session), title="kept")
    another = SessionDBSession("terminal-1", store)
    await another.clear_session()
    assert await session.get_items() == await another.get_items() == []
    assert await session.pop_item() is None
    (kept,) = (await store.sessions(project=ALL)).items
    assert kept.id == fork.id
    await store.delete(fork)
    assert (await store.search("hunter2", project=ALL)).items == ()

    # The first object has the id of the session that is gone.
    await session.add_items([prompt("again")])
    await another.add_items([prompt("and again")])
    assert await session.get_items() == [prompt("again"), prompt("and again")]
    assert (await stored(session)).title == "again"


async def test_sessions_are_listed_by_scope(tmp_path: Path) -> None:
    async with AsyncStore(tmp_path / "a.db", durability="normal") as store:
        for name in ("ada", "bob"):
            session = SessionDBSession(f"of {name}", store, session_scope=name)
            await session.add_items([prompt("hello")])
        (found,) = (await store.sessions(scope="ada")).items
        assert (found.source, found.source_id, found.directory) == (
            "openai-agents", "of ada", None,
        )  # fmt: skip


# -- what people see -----------------------------------------------------------------


@function_tool
def bash(command: str) -> str:
    """Run a command."""
    return f"3 passed of {command}"


def counted(number: int) -> Usage:
    return Usage(
        requests=1, input_tokens=100, output_tokens=20, total_tokens=120,
        input_tokens_details=InputTokensDetails(cached_tokens=60, cache_write_tokens=number),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=5),
    )  # fmt: skip


async def test_a_run_is_a_session_like_any_other(session: SessionDBSession) -> None:
    store = session.store
    for number in range(2):
        model = ScriptedModel(
            [
                [function_call("bash", {"command": "pytest"}, call_id=f"c{number}")],
                [assistant_message(f"It is fine {number}")],
            ],
            default_usage=counted(number),
        )
        agent = Agent("tester", model=model, tools=[bash])
        # The object of another request: what it knows, it has from the file.
        of_request = SessionDBSession("terminal-1", store, model="large-1")
        result = await Runner.run(agent, f"Does it run? {number}", session=of_request)
        assert result.final_output == f"It is fine {number}"
        sent = model.calls[0].input
        assert len(sent) == 1 + 4 * number

    record = await stored(session)
    assert record.title == "Does it run? 0"
    messages = await store.messages(record)
    assert [(m.role, m.text) for m in messages[:4]] == [
        ("user", "Does it run? 0"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "It is fine 0"),
    ]
    (part,) = messages[1].parts
    assert (part.tool, part.input, part.text) == (
        "bash", {"command": "pytest"}, "3 passed of pytest",
    )  # fmt: skip
    tokens = messages[1].tokens
    assert tokens is not None
    assert (tokens.input, tokens.output, tokens.reasoning) == (40, 15, 5)
    assert await store.unfinished() == []
    assert [hit.session.id for hit in (await store.search("passed")).items]
    (usage,) = await store.usage(by="model")
    assert (usage.key["model"], usage.tokens.input, usage.tokens.cache_read) == (
        "large-1", 158, 240,
    )  # fmt: skip

    context = (await store.context(record)).to_openai()
    assert context == await session.get_items()
    fork = await store.fork(record, at=messages[3])
    assert len(await store.messages(fork)) == 4


async def test_tokens_are_those_of_the_requests_since_the_last_items(
    session: SessionDBSession,
) -> None:
    run: RunContextWrapper[Any] = RunContextWrapper(None)
    await session.add_items([prompt("hello")], wrapper=run)
    run.usage.add(counted(0))
    run.usage.add(counted(0))
    await session.add_items([call(1), output(1, "x")], wrapper=run)
    await session.add_items([output(1, "y")], wrapper=run)
    run.usage.add(counted(0))
    await session.add_items([answer("bye")], wrapper=run)

    # A run that another object began has counted requests that are stored already.
    resumed = SessionDBSession("terminal-1", session.store)
    await resumed.add_items([answer("late", 2)], wrapper=run)
    run.usage.add(counted(0))
    await resumed.add_items([answer("later", 3)], wrapper=run)
    messages = await session.store.messages(await stored(session))
    assert [m.tokens_output for m in messages] == [None, 30, None, None, 15, None, 15]
    assert await session.pop_item(wrapper=run) == answer("later", 3)
    assert len(await session.get_items(2, wrapper=run)) == 2
    await session.clear_session(wrapper=run)


async def test_what_others_write_into_the_session_is_what_the_agent_gets(
    session: SessionDBSession,
) -> None:
    store = session.store
    await session.add_items([prompt("My password is hunter2"), *turn(1)])
    record = await stored(session)
    first, *others = await store.messages(record)
    await store.replace(record, first, user("My password is [redacted]"))
    items = await session.get_items()
    assert "hunter2" not in str(items)
    assert items[1:] == turn(1)
    assert items[0]["content"] == [  # type: ignore[index]
        {"type": "input_text", "text": "My password is [redacted]"}
    ]

    # Back to an early message: the rest is a branch, and the session continues there.
    await store.set_leaf(record, others[0])
    await session.add_items([prompt("otherwise")])
    assert await session.get_items() == [items[0], turn(1)[0], prompt("otherwise")]
    assert await session.get_items(1) == [prompt("otherwise")]
    await store.append_openai(record, {"output": [call(8), answer("two in one")]})
    await store.append(
        record, assistant(tool("read", {"a": 1}, call_id="r", output="b"))
    )
    assert await session.get_items(4) == [
        call(8), answer("two in one"),
        {"type": "function_call", "call_id": "r", "name": "read", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "r", "output": "b"},
    ]  # fmt: skip
    assert await session.pop_item() == {
        "type": "function_call_output", "call_id": "r", "output": "b",
    }  # fmt: skip
    await store.set_leaf(record, None)
    assert await session.get_items() == await session.get_items(3) == []
    await session.add_items([prompt("anew")])
    assert await session.get_items() == await session.get_items(3) == [prompt("anew")]


async def test_a_popped_result_lets_its_call_wait_again(
    session: SessionDBSession,
) -> None:
    await session.add_items([prompt("hello"), call(1), output(1, "hunter2")])
    assert await session.pop_item() == output(1, "hunter2")
    assert (await session.store.search("hunter2", project=ALL)).items == ()
    assert await session.get_items() == [prompt("hello"), call(1)]
    await session.add_items([output(1, "another")])
    assert await session.get_items(1) == [output(1, "another")]
    for item in (output(1, "another"), call(1), prompt("hello"), None):
        assert await session.pop_item() == item


@pytest.mark.parametrize(
    ("removed", "cascades"), [("blob", "OFF"), ("message WHERE seq = 3", "ON")]
)
async def test_what_a_shell_removed_from_the_file_is_reported(
    tmp_path: Path, removed: str, cascades: str
) -> None:
    session = SessionDBSession("s", tmp_path / "a.db")
    await session.add_items([prompt("x" * 2000), *turn(1)])
    session.close()
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as db:
        db.execute(f"PRAGMA foreign_keys = {cascades}")
        db.execute(f"DELETE FROM {removed}")
    session = SessionDBSession("s", tmp_path / "a.db")
    for limit in (None, 6):
        with pytest.raises(CorruptionError):
            await session.get_items(limit)
    session.close()


# -- several at once -------------------------------------------------------------------


async def add_words(path: Path, number: int) -> None:
    session = SessionDBSession("shared", path, durability="normal")
    for step in range(WRITES):
        words = f"{number}-{step}"
        await session.add_items([prompt(words), answer(words)])
    session.close()


async def pop_all(path: Path, _: int) -> list[Any]:
    session = SessionDBSession("shared", path, durability="normal")
    popped = []
    while (item := await session.pop_item()) is not None:
        popped.append(item)
    session.close()
    return popped


def work_in_four_processes(pipe: Connection, path: Path) -> None:
    """Have four processes do each work at once; importing the SDK takes 2 seconds."""
    for work in (add_words, pop_all):
        pipe.recv()
        pids = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                result = asyncio.run(work(path, number))
                path.with_suffix(f".{number}").write_text(json.dumps(result))
                os._exit(0)
            pids.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0, 0]
        results = [path.with_suffix(f".{number}").read_text() for number in range(4)]
        pipe.send([json.loads(result) for result in results])


@pytest.mark.slow
def test_four_processes_lose_nothing_and_pop_each_item_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with other(work_in_four_processes, path) as processes:
        processes.say()
        processes.hear()
        session = SessionDBSession("shared", path, durability="normal")
        items: list[Any] = asyncio.run(session.get_items())
        texts = [item["content"] for item in items[::2]]
        assert [item["content"][0]["text"] for item in items[1::2]] == texts
        for number in range(4):
            own = [words for words in texts if words.startswith(f"{number}-")]
            assert own == [f"{number}-{step}" for step in range(WRITES)]

        processes.say()
        popped = [item for some in processes.hear() for item in some]
    assert sorted(map(str, popped)) == sorted(map(str, items))
    assert asyncio.run(session.get_items()) == []
    session.close()
    with Store.open(path) as store:
        assert check(store) == []


async def test_tasks_that_add_at_once_lose_nothing(session: SessionDBSession) -> None:
    names = [f"s{number % 3}" for number in range(30)]
    objects = [SessionDBSession(name, session.store) for name in names]
    await asyncio.gather(
        *[one.add_items([prompt(str(number))]) for number, one in enumerate(objects)]
    )
    for name in set(names):
        items: list[Any] = await SessionDBSession(name, session.store).get_items()
        assert {int(item["content"]) % 3 for item in items} == {int(name[1])}
        assert len(items) == 10


@pytest.mark.parametrize("verb", ["add", "pop", "clear"])
async def test_a_cancelled_write_has_happened_when_its_caller_is_told(
    tmp_path: Path, verb: str
) -> None:
    path = tmp_path / "a.db"
    session = SessionDBSession("s", path, durability="normal")
    await session.add_items([prompt("first")])
    writing: dict[str, Coroutine[Any, Any, Any]] = {
        "add": session.add_items([prompt("second")]),
        "pop": session.pop_item(),
        "clear": session.clear_session(),
    }
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(writing.pop(verb))
        for _ in range(3):
            await asyncio.sleep(0.02)
            task.cancel()
        assert not task.done()
        db.execute("ROLLBACK")
    db.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    for unused in writing.values():
        unused.close()
    remaining = {"add": [prompt("first"), prompt("second")], "pop": [], "clear": []}
    assert await SessionDBSession("s", session.store).get_items() == remaining[verb]
    session.close()


def test_an_object_is_used_in_several_loops_one_after_the_other(tmp_path: Path) -> None:
    session = SessionDBSession("s", tmp_path / "a.db", durability="normal")
    assert not (tmp_path / "a.db").exists()
    for number in range(3):
        asyncio.run(session.add_items([prompt(str(number))]))
    assert len(asyncio.run(session.get_items())) == 3
    session.close()


def test_a_store_that_is_called_and_a_url_will_do(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db", durability="normal") as store:
        session = SessionDBSession("s", store)
        asyncio.run(session.add_items([prompt("hello")]))
        (record,) = store.sessions(project=ALL).items
        assert [m.text for m in store.messages(record)] == ["hello"]
        session.close()
        assert store.session(record).message_count == 1
    again = SessionDBSession("s", f"sqlite:///{tmp_path}/a.db?mode=ro")
    assert asyncio.run(again.get_items()) == [prompt("hello")]
    with pytest.raises(ReadOnlyError):
        asyncio.run(again.add_items([prompt("more")]))
    again.close()


async def test_a_closed_session_refuses_everything_and_leaves_a_given_store_open(
    session: SessionDBSession, tmp_path: Path
) -> None:
    await session.add_items([prompt("hello")])
    session.close()
    own = SessionDBSession("s", tmp_path / "own.db")
    await own.add_items([prompt("hello")])
    own.close()
    SessionDBSession("s", tmp_path / "never.db").close()
    assert not (tmp_path / "never.db").exists()
    for closed in (session, own):
        closed.close()
        for use in (
            closed.get_items(), closed.get_items(0), closed.add_items([]), closed.pop_item(),
            closed.add_items([prompt("x")]), closed.clear_session(),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="SessionDBSession is closed"):
                await use
    again = SessionDBSession("terminal-1", session.store)
    assert await again.get_items() == [prompt("hello")]


# -- wrappers of the SDK ---------------------------------------------------------------


def compacting(session: SessionDBSession, summary: Item) -> Any:
    client = MagicMock()
    response = SimpleNamespace(output=[summary], usage=None)
    client.responses.compact = AsyncMock(return_value=response)
    return OpenAIResponsesCompactionSession(
        "terminal-1", session, client=client, compaction_mode="input",
        should_trigger_compaction=lambda _: True,
    )  # fmt: skip


SUMMARY: Item = {"type": "compaction", "id": "cmp", "encrypted_content": "sealed"}


async def test_a_compaction_continues_the_session_and_keeps_what_was_said(
    session: SessionDBSession,
) -> None:
    agent = Agent("tester", model=ScriptedModel([[assistant_message("fine")]]))
    await session.add_items([prompt("long ago"), answer("yes")])
    compacted = compacting(session, SUMMARY)
    await Runner.run(agent, "And now?", session=compacted)
    assert await session.get_items() == [SUMMARY]
    record = await stored(session)
    everything = await session.store.messages(record, branches=True)
    assert [m.text for m in everything][:4] == ["long ago", "yes", "And now?", "fine"]
    assert (await session.store.search("long ago", project=ALL)).items
    await session.add_items([prompt("on")])
    assert await session.get_items() == [SUMMARY, prompt("on")]
    assert await session.get_items(1) == [prompt("on")]

    # One that is asked for replaces everything, as with any session of the SDK.
    await compacted.run_compaction({"force": True})
    assert await session.get_items() == [SUMMARY]
    assert (await session.store.search("long ago", project=ALL)).items == ()


async def test_the_end_of_a_session_is_replaced_only_if_it_is_still_its_end(
    session: SessionDBSession,
) -> None:
    get_snapshot = session._get_compaction_snapshot
    assert await get_snapshot(3) is None
    await session.add_items([prompt(str(number)) for number in range(5)])
    for limit, complete in ((3, False), (5, True), (6, True)):
        snapshot = await get_snapshot(limit)
        assert snapshot is not None
        assert (len(snapshot.items), snapshot.complete) == (min(limit, 5), complete)
    snapshot = await get_snapshot(3)
    assert snapshot is not None
    assert await snapshot.replace_suffix(3, [SUMMARY]) is False
    await session.add_items([prompt("new")])
    assert await snapshot.replace_suffix(1, [SUMMARY]) is False
    assert len(await session.get_items()) == 6

    snapshot = await get_snapshot(3)
    assert snapshot is not None
    assert await snapshot.replace_suffix(1, [SUMMARY]) is True
    assert await session.get_items() == [
        *[prompt(str(number)) for number in range(4)], SUMMARY,
    ]  # fmt: skip
    await session.clear_session()
    assert await snapshot.replace_suffix(0, [SUMMARY]) is False

    class Changed(SessionDBSession):
        async def get_items(self, *_: Any, **__: Any) -> list[Any]:
            return []

    assert await Changed("s", session.store)._get_compaction_snapshot(3) is None


async def test_an_encrypted_session_says_nothing_to_readers_of_the_file(
    session: SessionDBSession,
) -> None:
    pytest.importorskip("cryptography")
    from agents.extensions.memory import EncryptedSession

    def encrypted(key: str = "key") -> Any:
        return EncryptedSession("terminal-1", session, encryption_key=key)

    await encrypted().add_items([prompt("hunter2"), *turn(1)])
    assert await encrypted().get_items() == [prompt("hunter2"), *turn(1)]
    assert await encrypted().get_items(2) == turn(1)[-2:]
    assert await encrypted("another").get_items() == []
    assert (await session.store.search("hunter2", project=ALL)).items == ()
    messages = await session.store.messages(await stored(session))
    assert not any("hunter2" in str(message) for message in messages)
    assert (await stored(session)).title == ""
    assert await encrypted().pop_item() == turn(1)[-1]
    await encrypted().clear_session()
    assert await encrypted().get_items() == []


async def test_a_failed_condition_of_the_store_is_not_hidden(
    session: SessionDBSession,
) -> None:
    await session.add_items([prompt("hello")])
    record = await stored(session)
    async with session.store.lease(record):
        # Of this process: a lease excludes others.
        await session.add_items([prompt("more")])
    with pytest.raises(ConflictError):
        async with session.store.effects() as fx:
            fx.expect(record, revision=record.revision)
            fx.set_title(record, "late")


def test_without_the_framework_the_class_names_the_extra() -> None:
    program = """
import sys
sys.modules["agents"] = None
try:
    from sessiondb.adapters.openai_agents import SessionDBSession
except ImportError as error:
    print(error, error.hint)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == (
        "SessionDBSession needs the OpenAI Agents SDK "
        "pip install 'sessiondb[openai-agents]'\n"
    )
