"""`SessionDBConversationStore`: conversations as in memory, and sessions for people."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from peers import Connection, other
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryImage,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RequestUsage
from sqlalchemy import Select
from sqlalchemy.dialects import sqlite
from verifying.adapters.pydantic_ai_suite import Primitives, Twins, run_sequence

from sessiondb import (
    AsyncStore,
    InvalidInputError,
    Session,
    Store,
    StoreClosedError,
    assistant,
    user,
)
from sessiondb.adapters.pydantic_ai import SessionDBConversationStore
from sessiondb.adapters.pydantic_ai import statements as sql
from sessiondb.maintenance import check

LARGE = "passed " * 400
#: The name that Pydantic AI gives to the model of the agents below.
MODEL = "function:answer:"


def asked(words: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(words)])


def answered(words: str) -> ModelResponse:
    return ModelResponse([TextPart(words)], model_name="large")


def texts_of(messages: list[ModelMessage]) -> list[str]:
    return [str(message.parts[0].content) for message in messages]  # type: ignore[union-attr]


@pytest.fixture
async def conversations(tmp_path: Path) -> AsyncIterator[SessionDBConversationStore]:
    path = tmp_path / "agent.db"
    async with SessionDBConversationStore(path, durability="normal") as opened:
        yield opened
        with Store.sharing(opened.store) as store:
            assert check(store) == []


async def saved(
    conversations: ConversationStore, name: str, *words: str, scope: str | None = None
) -> Conversation:
    """Save a new conversation of prompts and answers in turns."""
    messages: list[ModelMessage] = [
        answered(text) if number % 2 else asked(text)
        for number, text in enumerate(words)
    ]
    conversation = Conversation(conversation_id=name, messages=messages)
    await conversations.save(conversation, scope=scope)
    return conversation


async def session_of(conversations: SessionDBConversationStore, name: str) -> Session:
    opened = await conversations.store.open_session(name, source="pydantic-ai")
    assert not opened.created
    return await conversations.store.session(opened)


async def read_texts(conversations: SessionDBConversationStore, name: str) -> list[str]:
    """Return what people read of a conversation."""
    session = await session_of(conversations, name)
    return [message.text for message in await conversations.store.messages(session)]


# -- as in memory ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Twins, Primitives])
@pytest.mark.parametrize("seed", range(100, 104))
async def test_any_operations_have_the_results_that_they_have_in_memory(
    kind: type[Twins], seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    await run_sequence(kind, seed, path, 40)
    with Store.open(path) as store:
        assert check(store) == []


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the tool if the last message is a prompt, else say what it returned."""
    last = messages[-1].parts[-1]
    usage = RequestUsage(input_tokens=10, cache_read_tokens=4, output_tokens=3)
    if isinstance(last, UserPromptPart):
        call = ToolCallPart("bash", {"command": "pytest"}, f"call-{len(messages)}")
        parts: list[Any] = [ThinkingPart("Hm"), TextPart("I look."), call]
    else:
        assert isinstance(last, ToolReturnPart)
        parts = [TextPart(f"They say: {last.content}")]
    return ModelResponse(
        parts,
        usage=usage,
        model_name="scripted",
        finish_reason="stop",
        provider_name="me",
    )


def new_agent() -> Agent[None, str]:
    agent = Agent(FunctionModel(answer), system_prompt="Be brief")

    @agent.tool_plain
    def bash(command: str) -> str:
        """Run a command."""
        return f"{command}: {LARGE}"

    return agent


async def test_an_agent_continues_in_a_store_that_was_opened_again(
    tmp_path: Path,
) -> None:
    agent, memory = new_agent(), InMemoryConversationStore()
    for question in ("Do they pass?", "And now?", "Still?"):
        async with SessionDBConversationStore(tmp_path / "agent.db") as conversations:
            for store in (memory, conversations):
                loaded = await store.load("c") or Conversation(conversation_id="c")
                result = await agent.run(question, conversation=loaded)
                await store.save(result)
    async with SessionDBConversationStore(tmp_path / "agent.db") as conversations:
        expected, loaded = await memory.load("c"), await conversations.load("c")
        assert expected is not None
        assert loaded is not None
        assert [len(expected.messages), len(loaded.messages)] == [12, 12]
        assert expected.usage.requests == loaded.usage.requests == 6
        kinds = [
            [part.part_kind for part in message.parts] for message in loaded.messages
        ]
        assert kinds == [
            [part.part_kind for part in m.parts] for m in expected.messages
        ]


async def test_a_run_that_waits_for_an_approval_is_continued_later(
    conversations: SessionDBConversationStore,
) -> None:
    agent = Agent(FunctionModel(answer), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def bash(command: str) -> str:
        """Run a command."""
        return f"{command}: passed"

    result = await agent.run("Do they?", conversation=Conversation(conversation_id="c"))
    await conversations.save(result)
    session = await session_of(conversations, "c")
    (waiting,) = await conversations.store.unfinished()
    assert waiting.session.id == session.id

    paused = await conversations.load("c")
    assert paused is not None
    assert paused.deferred_tool_requests is not None
    results = paused.deferred_tool_requests.build_results(approve_all=True)
    result = await agent.run(conversation=paused, deferred_tool_results=results)
    await conversations.save(result)
    assert result.output == "They say: pytest: passed"
    assert await conversations.store.unfinished() == []


# -- what people read --------------------------------------------------------------------


async def test_a_conversation_is_a_session_like_any_other(
    conversations: SessionDBConversationStore,
) -> None:
    conversation = Conversation(conversation_id="kitchen")
    result = await new_agent().run("Do the tests pass?", conversation=conversation)
    await conversations.save(result, scope="alice")

    store = conversations.store
    (session,) = await store.sessions(scope="alice")
    assert (session.source, session.source_id) == ("pydantic-ai", "kitchen")
    assert (session.title, session.directory) == ("Do the tests pass?", None)
    prompt, call, result_message, last = await store.messages(session)
    roles = [message.role for message in (prompt, call, result_message, last)]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert [part.synthetic for part in prompt.parts] == [False, True]
    assert [part.type for part in call.parts] == ["reasoning", "text", "tool"]
    assert (call.parts[2].tool, call.parts[2].input) == ("bash", {"command": "pytest"})
    assert call.parts[2].text == f"pytest: {LARGE}"
    assert (call.model_id, call.provider_id, call.finish) == (MODEL, "me", "stop")
    tokens = (call.tokens_input, call.tokens_cache_read, call.tokens_output)
    assert tokens == (6, 4, 3)
    assert await store.unfinished() == []
    assert (await store.search("passed")).items
    (row,) = await store.usage(by="model")
    assert (row.key["model"], row.messages, row.tokens.input) == (MODEL, 2, 12)
    fork = await store.fork(session)
    assert len(await store.messages(fork)) == 4
    # The fork of a person is no conversation of the framework.
    assert len(await conversations.list_conversations()) == 1


async def test_a_file_and_a_long_text_are_stored_once(
    conversations: SessionDBConversationStore,
) -> None:
    picture = BinaryImage(bytes(range(256)) * 40, media_type="image/png")
    message = ModelRequest([UserPromptPart([LARGE, picture])])
    await conversations.save(Conversation(conversation_id="c", messages=[message]))
    session = await session_of(conversations, "c")
    (shown,) = await conversations.store.messages(session)
    assert shown.parts[0].text == LARGE
    assert shown.parts[1].data == {"mime": "image/png", "content": picture.data}
    assert len(shown.data["pydantic_ai"]) < 600
    loaded = await conversations.load("c")
    assert loaded is not None
    assert loaded.messages == [message]


async def test_the_path_that_people_read_is_that_of_the_agent(
    conversations: SessionDBConversationStore,
) -> None:
    conversation = await saved(conversations, "c", "one", "two", "three", "four")
    left = (await conversations.load_entries("c") or [])[-1].id
    branch = await conversations.branch(
        "c", at=2, expected_revision=conversation.revision
    )
    assert await read_texts(conversations, "c") == ["one", "two"]
    branch.messages.append(asked("other"))
    await conversations.save(branch)
    assert await read_texts(conversations, "c") == ["one", "two", "other"]
    back = await conversations.branch(
        "c", from_entry=left, expected_revision=branch.revision
    )
    assert texts_of(back.messages) == ["one", "two", "three", "four"]
    assert await read_texts(conversations, "c") == ["one", "two", "three", "four"]
    session = await session_of(conversations, "c")
    everything = await conversations.store.messages(session, branches=True)
    assert len(everything) == 5


async def test_a_fork_is_a_fork_of_the_session_and_outlives_it(
    conversations: SessionDBConversationStore,
) -> None:
    await saved(conversations, "c", "one", "two", "three", scope="alice")
    entries = await conversations.load_entries("c") or []
    forked = await conversations.fork("c", at=2, new_conversation_id="d")
    forked.messages.append(asked("other"))
    await conversations.save(forked)
    original, fork = [await session_of(conversations, name) for name in ("c", "d")]
    assert (fork.parent_id, fork.relation, fork.scope) == (original.id, "fork", "alice")
    assert await read_texts(conversations, "d") == ["one", "two", "other"]

    second = await conversations.fork("c", at=2, new_conversation_id="e")
    assert texts_of(second.messages) == ["one", "two"]
    assert (await session_of(conversations, "e")).parent_id == original.id
    await conversations.delete("e")

    await conversations.delete("c")
    assert await conversations.load("c") is None
    assert await read_texts(conversations, "d") == ["one", "two", "other"]
    assert await conversations.read_entry(entries[1].id) == entries[1]
    with pytest.raises(KeyError):
        await conversations.read_entry(entries[2].id)
    await saved(conversations, "c", "again")
    assert await read_texts(conversations, "c") == ["again"]


async def test_an_answer_is_counted_once_however_many_conversations_have_it(
    conversations: SessionDBConversationStore,
) -> None:
    conversation = Conversation(conversation_id="c")
    await conversations.save(
        await new_agent().run("Do they?", conversation=conversation)
    )
    for number in range(3):
        await conversations.fork("c", new_conversation_id=f"fork {number}")
    for name in ("c", "fork 1", "fork 0"):
        (row,) = await conversations.store.usage(by="model")
        assert (row.messages, row.tokens.input, row.tokens.output) == (2, 12, 6)
        await conversations.delete(name)
    (row,) = await conversations.store.usage(by="model")
    assert (row.messages, row.tokens.input, row.tokens.output) == (2, 12, 6)


async def test_what_columns_refuse_is_a_text_for_people_and_exact_for_the_agent(
    conversations: SessionDBConversationStore,
) -> None:
    call_id = "call " * 90
    usage = RequestUsage(input_tokens=1, cache_read_tokens=5, output_tokens=2)
    messages: list[ModelMessage] = [
        asked("half of one: \ud800"),
        ModelResponse(
            [ToolCallPart("bash", '{"broken', call_id)],
            usage=usage,
            provider_response_id="r" * 400,
        ),
        ModelRequest([ToolReturnPart("bash", "3 passed", call_id)]),
        ModelResponse([TextPart("well")], usage=RequestUsage(output_tokens=1 << 70)),
    ]
    await conversations.save(Conversation(conversation_id="c", messages=messages))
    assert (await loaded_from(conversations, "c")).messages == messages
    session = await session_of(conversations, "c")
    _, call, _, last = await conversations.store.messages(session)
    (part,) = call.parts
    assert (part.input, part.text, part.status) == ('{"broken', "3 passed", "completed")
    assert (call.tokens_input, call.tokens_cache_read) == (1, None)
    assert (last.text, last.tokens_output) == ("well", None)


@pytest.mark.slow
@pytest.mark.parametrize("carrier", ["a log", "a database"])
async def test_a_conversation_that_is_carried_to_another_database_continues_there(
    carrier: str, tmp_path: Path
) -> None:
    def typed(*arguments: str) -> None:
        command = [sys.executable, "-m", "sessiondb", "--db", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)

    async with SessionDBConversationStore(tmp_path / "a.db") as conversations:
        conversation = await saved(
            conversations, "c", "one", LARGE, "three", scope="me"
        )
        branch = await conversations.branch(
            "c", at=2, expected_revision=conversation.revision
        )
        branch.messages.append(asked("other"))
        await conversations.save(branch)
        forked = await conversations.fork("c", new_conversation_id="d")
        entries = await conversations.load_entries("c")
        records = await conversations.list_conversations(scope="me")
    if carrier == "a log":
        typed("a.db", "export", "c", "d", "--to", "jsonl", "--output", "log.jsonl")
        typed("b.db", "import", "log.jsonl")
    else:
        typed("b.db", "import", "a.db")
    async with SessionDBConversationStore(tmp_path / "b.db") as conversations:
        assert await conversations.load_entries("c") == entries
        assert await conversations.list_conversations(scope="me") == records
        forked.messages.append(answered("on"))
        await conversations.save(forked)
        assert await read_texts(conversations, "d") == ["one", LARGE, "other", "on"]
        back = await conversations.branch(
            "c", from_entry=records[-1].branches[0], expected_revision=branch.revision
        )
        assert texts_of(back.messages) == ["one", LARGE, "three"]
        with Store.sharing(conversations.store) as store:
            assert check(store) == []


# -- what people change ------------------------------------------------------------------


async def test_a_text_that_a_person_replaces_is_not_shown_to_the_agent_again(
    conversations: SessionDBConversationStore,
) -> None:
    conversation = await saved(conversations, "c", f"hunter2 {LARGE}", "fine", "go on")
    session = await session_of(conversations, "c")
    store = conversations.store
    first, second, _ = await store.messages(session)
    await store.replace(session, first, user("[redacted]"))
    await store.replace(session, second, assistant("Fine."))
    assert texts_of((await loaded_from(conversations, "c")).messages) == [
        "[redacted]", "Fine.", "go on",
    ]  # fmt: skip
    assert "hunter2" not in repr(await store.messages(session, branches=True))
    conversation.messages.append(answered("done"))
    await conversations.save(conversation)
    assert (await read_texts(conversations, "c"))[-1] == "done"


async def loaded_from(conversations: ConversationStore, name: str) -> Conversation:
    conversation = await conversations.load(name)
    assert conversation is not None
    return conversation


async def test_the_result_of_a_call_that_a_person_replaces_is_gone_for_the_agent(
    conversations: SessionDBConversationStore,
) -> None:
    agent = new_agent()
    result = await agent.run("Do they?", conversation=Conversation(conversation_id="c"))
    await conversations.save(result)
    session = await session_of(conversations, "c")
    store = conversations.store
    call = (await store.messages(session, roles="assistant"))[0]
    await store.replace(session, call, assistant("No call."))
    (message,) = await store.messages(session, roles="tool")
    await store.replace(session, message, user("No result."))
    messages = (await loaded_from(conversations, "c")).messages
    assert texts_of(messages)[1:3] == ["No call.", "No result."]


async def test_a_conversation_whose_end_was_removed_continues_before_it(
    conversations: SessionDBConversationStore,
) -> None:
    conversation = await saved(conversations, "c", "one", "two", "three", "four")
    left = await conversations.branch(
        "c", at=3, expected_revision=conversation.revision
    )
    left.messages.append(answered("other"))
    await conversations.save(left)
    session = await session_of(conversations, "c")
    store = conversations.store
    messages = await store.messages(session, branches=True)
    await store.remove(session, messages[2:])
    loaded = await loaded_from(conversations, "c")
    assert texts_of(loaded.messages) == ["one", "two"]
    record = await conversations.read_record("c")
    assert record is not None
    assert record.branches == []
    loaded.messages.append(asked("on"))
    await conversations.save(loaded)
    assert await read_texts(conversations, "c") == ["one", "two", "on"]
    await store.truncate(session, after=None)
    assert (await loaded_from(conversations, "c")).messages == []


async def test_what_another_program_appends_stays_beside_the_conversation(
    conversations: SessionDBConversationStore,
) -> None:
    conversation = await saved(conversations, "c", "one", "two")
    session = await session_of(conversations, "c")
    await conversations.store.append(session, user("by hand"))
    await conversations.store.set_metadata(
        session, {**session.metadata, "color": "red"}
    )
    assert texts_of((await loaded_from(conversations, "c")).messages) == ["one", "two"]
    conversation.messages.append(asked("three"))
    await conversations.save(conversation)
    assert await read_texts(conversations, "c") == ["one", "two", "three"]
    assert (await session_of(conversations, "c")).metadata["color"] == "red"


async def test_equal_names_of_another_program_are_another_session(
    conversations: SessionDBConversationStore,
) -> None:
    mine = await conversations.store.open_session("c", source="another")
    await conversations.store.append(mine, user("mine", id="entry"))
    assert await conversations.load("c") is None
    with pytest.raises(KeyError):
        await conversations.read_entry("entry")
    for name in ("c", "1", "/c", "c" * 300, "", "@", "ü💡", "\ud800"):
        await saved(conversations, name, f"of {name}")
    for name in ("c", "1", "/c", "c" * 300, "", "@", "ü💡", "\ud800"):
        assert texts_of((await loaded_from(conversations, name)).messages) == [
            f"of {name}"
        ]
    await conversations.delete("c")
    assert [m.text for m in await conversations.store.messages(mine)] == ["mine"]


@pytest.mark.parametrize(
    "statement", [sql.RECORD, sql.RECORDS_OF_SCOPE, sql.PATH, sql.HOLDER, sql.BLOBS]
)
async def test_no_read_but_a_list_of_all_walks_all_conversations(
    statement: Select[Any], conversations: SessionDBConversationStore, tmp_path: Path
) -> None:
    await saved(conversations, "c", "one")
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"))
    values = {**dict.fromkeys(compiled.params, "[]"), **compiled.params}
    values |= {"most": 1} if "most" in values else {}
    values |= {name: "[]" for name, value in values.items() if value is None}
    with closing(connect(tmp_path / "agent.db")) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {compiled}", values).fetchall()
    plan = [row[3] for row in rows]
    assert [step for step in plan if "SCAN" in step and "anon" not in step] in (
        [], ["SCAN path", "SCAN path"], ["SCAN anon_1 VIRTUAL TABLE INDEX 1:"],
    )  # fmt: skip
    walks = [step for step in plan if "source=?" in step and "source_id=?" not in step]
    assert walks == []


# -- several writers ---------------------------------------------------------------------


async def test_of_two_saves_at_once_one_is_a_conflict_that_writes_nothing(
    conversations: SessionDBConversationStore,
) -> None:
    await saved(conversations, "c", "one")
    loaded = [await loaded_from(conversations, "c") for _ in range(6)]
    for number, conversation in enumerate(loaded):
        conversation.messages.append(answered(str(number)))
    ends = await asyncio.gather(
        *[conversations.save(conversation) for conversation in loaded],
        return_exceptions=True,
    )
    assert sum(isinstance(end, ConversationConflict) for end in ends) == 5
    session = await session_of(conversations, "c")
    assert len(await conversations.store.messages(session, branches=True)) == 2

    made = [Conversation(conversation_id="d", messages=[asked("one")]) for _ in "123"]
    ends = await asyncio.gather(
        *[conversations.save(conversation) for conversation in made],
        return_exceptions=True,
    )
    assert sum(isinstance(end, ConversationConflict) for end in ends) == 2
    assert await read_texts(conversations, "d") == ["one"]


async def test_a_head_that_no_conversation_has_is_a_conflict(
    conversations: SessionDBConversationStore,
) -> None:
    record = ConversationRecord(conversation_id="c", head_id="unknown")
    with pytest.raises(ConversationConflict):
        await conversations.write_record(record, expected_revision=None)
    entry = ConversationEntry(parent_id="unknown", message=asked("one"))
    record.head_id = entry.id
    with pytest.raises(ConversationConflict):
        await conversations.write_record(
            record, new_entries=[entry], expected_revision=None
        )
    assert await conversations.list_conversations() == []
    with pytest.raises(ConversationConflict):
        await conversations.delete_record("c", expected_revision=record.revision)


@pytest.mark.parametrize("moment", range(1, 6))
async def test_a_conversation_that_is_deleted_while_it_is_read_is_none_and_not_a_part(
    moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"
    async with SessionDBConversationStore(path, durability="normal") as conversations:
        conversation = await saved(conversations, "c", LARGE, "two", "three")
        await conversations.branch("c", at=2, expected_revision=conversation.revision)
        session = await session_of(conversations, "c")
        _, second = await conversations.store.messages(session)
        await conversations.store.replace(session, second, assistant("other"))
        await conversations.store.append(session, user("by hand"))

        store = conversations.store
        reads = {name: getattr(store, name) for name in ("select", "message")}
        number = 0

        def interrupted(name: str) -> Any:
            async def read(*args: Any, **kwargs: Any) -> Any:
                nonlocal number
                number += 1
                if number == moment:
                    with Store.open(path) as another:
                        another.delete(session)
                        another.reap()
                return await reads[name](*args, **kwargs)

            return read

        for name in reads:
            monkeypatch.setattr(store, name, interrupted(name), raising=True)
        loaded = await conversations.load("c")
        assert number >= moment
        if loaded is not None:  # all had been read by then
            assert texts_of(loaded.messages) == [LARGE, "other"]


def take_turns(pipe: Connection, path: Path, name: str) -> None:
    async def add_messages() -> None:
        async with SessionDBConversationStore(
            path, durability="normal"
        ) as conversations:
            for number in range(5):
                while True:
                    loaded = await conversations.load("c", limit=3)
                    conversation = loaded or Conversation(conversation_id="c")
                    conversation.messages.append(asked(f"{name} {number}"))
                    try:
                        await conversations.save(conversation)
                        break
                    except ConversationConflict:
                        continue
                await saved(conversations, f"{name} {number}", "own", scope=name)

    del pipe
    asyncio.run(add_messages())


@pytest.mark.slow
def test_four_processes_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with (
        other(take_turns, path, "a") as a,
        other(take_turns, path, "b") as b,
        other(take_turns, path, "c") as c,
        other(take_turns, path, "d") as d,
    ):
        for process in (a, b, c, d):
            process.end()

    async def read() -> None:
        async with SessionDBConversationStore(path) as conversations:
            texts = texts_of((await loaded_from(conversations, "c")).messages)
            assert sorted(texts) == [f"{it} {n}" for it in "abcd" for n in range(5)]
            assert len(await conversations.list_conversations(scope="a")) == 5
            with Store.sharing(conversations.store) as store:
                assert check(store) == []

    asyncio.run(read())


async def test_a_save_that_is_cancelled_is_complete_or_absent(
    conversations: SessionDBConversationStore,
) -> None:
    await saved(conversations, "c", "0")
    for number in range(1, 15):
        loaded = await loaded_from(conversations, "c")
        before = len(loaded.messages)
        loaded.messages += [asked(str(number)), answered(str(number))]
        task = asyncio.create_task(conversations.save(loaded))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        again = await loaded_from(conversations, "c")
        again.messages.append(asked("again"))
        try:
            await conversations.save(again)
        except ConversationConflict:  # it was on its way
            again = await loaded_from(conversations, "c")
        assert len(again.messages) - before in (1, 2, 3)
        assert texts_of(again.messages).count(str(number)) in (0, 2)


# -- opening and closing -----------------------------------------------------------------


async def test_a_store_that_is_given_stays_open(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        async with SessionDBConversationStore(store) as conversations:
            await saved(conversations, "c", "one")
        assert [m.text for m in store.messages(store.sessions().items[0])] == ["one"]
    async with AsyncStore.open(tmp_path / "a.db") as opened:
        async with SessionDBConversationStore(opened) as conversations:
            assert await conversations.load("c") is not None
        assert len(await opened.sessions()) == 1
        with pytest.raises(InvalidInputError, match="open already"):
            SessionDBConversationStore(opened, durability="normal")
    with pytest.raises(StoreClosedError):
        await conversations.load("c")


def test_it_is_made_without_a_loop_and_used_by_several_of_both_kinds(
    tmp_path: Path,
) -> None:
    trio = pytest.importorskip("trio", reason="trio is not installed")
    conversations = SessionDBConversationStore(tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()

    async def use(name: str) -> None:
        await saved(conversations, name, "one", "two")
        assert len((await loaded_from(conversations, name)).messages) == 2

    asyncio.run(use("a"))
    trio.run(use, "b")
    asyncio.run(use("c"))
    asyncio.run(conversations.close())
    with Store.open(tmp_path / "a.db") as store:
        assert len(store.sessions()) == 3
        assert check(store) == []


async def test_bad_input_is_named_and_stores_nothing(
    conversations: SessionDBConversationStore,
) -> None:
    await saved(conversations, "c", "one")
    with pytest.raises(UserError, match="negative"):
        await conversations.load("c", limit=-1)
    with pytest.raises(UserError, match="negative"):
        await conversations.list_conversations(limit=-1)
    with pytest.raises(UserError, match="not in the store"):
        await conversations.fork("unknown")
    loaded = await loaded_from(conversations, "c")
    returned = ToolReturnPart("look", lambda: None, "call-1")
    loaded.messages += [answered("two"), ModelRequest([returned])]
    with pytest.raises(ValueError, match="serialize"):
        await conversations.save(loaded)
    assert await read_texts(conversations, "c") == ["one"]


def test_without_the_framework_the_class_names_the_extra() -> None:
    program = """
import sys
sys.modules["pydantic_ai"] = None
try:
    from sessiondb.adapters.pydantic_ai import SessionDBConversationStore
except ImportError as error:
    print(error, error.hint)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "SessionDBConversationStore needs pydantic-ai "
        "pip install 'sessiondb[pydantic-ai]'"
    ]
