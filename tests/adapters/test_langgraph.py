"""`SessionDBSaver`: real graphs continue on it as on LangGraph's own saver in memory."""

from __future__ import annotations

import asyncio
import operator
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from peers import Connection, other

from sessiondb import ALL, Store, Tokens, user
from sessiondb.adapters.langgraph import SessionDBSaver
from sessiondb.maintenance import check


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    count: int
    last: Any


def answer(state: State) -> dict[str, Any]:
    turn = len(state["messages"])
    last = state["messages"][-1]
    if isinstance(last, HumanMessage) and "tool" in last.text:
        call = {"name": "look", "args": {"at": turn}, "id": f"call-{turn}"}
        said = AIMessage(
            "I look.",
            id=f"a{turn}",
            tool_calls=[call],
            usage_metadata={"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
            response_metadata={"model_name": "large"},
        )
    else:
        said = AIMessage(f"Answer {turn}", id=f"a{turn}")
    return {"messages": [said], "notes": [f"n{turn}"], "count": turn, "last": said}


def use_tools(state: State) -> dict[str, Any]:
    (call,) = state["messages"][-1].tool_calls  # type: ignore[union-attr]
    turn = len(state["messages"])
    return {"messages": [ToolMessage("seen", tool_call_id=call["id"], id=f"t{turn}")]}


def ask(state: State) -> dict[str, Any]:
    said = interrupt({"sure": len(state["messages"])})
    return {"notes": [f"said {said}"]}


def route(state: State) -> Any:
    last = state["messages"][-1]
    if isinstance(last, AIMessage) and last.tool_calls:
        return "tools"
    if "ask" in state["messages"][-2].text:
        return "ask"
    if "fan" in state["messages"][-2].text:
        return [Send("part", {"number": number}) for number in range(3)]
    return END


def graph_on(saver: Any) -> Any:
    inner = StateGraph(State)
    inner.add_node("note", lambda _: {"notes": ["inner"]})
    inner.add_edge(START, "note")
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("tools", use_tools)
    builder.add_node("ask", ask)
    builder.add_node("part", lambda state: {"notes": [f"part {state['number']}"]})
    builder.add_node("inner", inner.compile())
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", route, ["tools", "ask", "part", END])
    builder.add_edge("tools", "answer")
    builder.add_edge("ask", "inner")
    builder.add_edge("part", END)
    builder.add_edge("inner", END)
    return builder.compile(checkpointer=saver)


def shown(snapshot: Any) -> Any:
    """Return what a person can observe of a state, without ids of checkpoints."""
    values = {
        name: [message.model_dump() for message in value]
        if name == "messages"
        else value
        for name, value in snapshot.values.items()
    }
    tasks = [
        (task.name, task.interrupts and task.interrupts[0].value)
        for task in snapshot.tasks
    ]
    return (
        values,
        snapshot.next,
        tasks,
        snapshot.metadata["step"],
        snapshot.metadata["source"],
    )


def history(graph: Any, config: Any) -> list[Any]:
    return [shown(state) for state in graph.get_state_history(config)]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SessionDBSaver]:
    with SessionDBSaver(tmp_path / "graph.db", durability="normal") as opened:
        yield opened
        assert check(opened.store) == []


THREAD = {"configurable": {"thread_id": "t"}}
SCRIPT = ["hello", "use a tool", "ask me", "fan out", "bye"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
def test_a_graph_has_the_same_history_as_in_memory(
    saver: SessionDBSaver, durability: Any, kind: str
) -> None:
    histories = []
    for one in (saver, InMemorySaver()):
        graph = graph_on(one)
        for number, words in enumerate(SCRIPT):
            message = HumanMessage(words, id=f"h{number}")
            steps: list[Any] = [{"messages": [message]}]
            if "ask" in words:
                steps.append(Command(resume="yes"))
            for step in steps:
                if kind == "invoke":
                    graph.invoke(step, THREAD, durability=durability)
                else:
                    asyncio.run(graph.ainvoke(step, THREAD, durability=durability))
        histories.append(history(graph, THREAD))
    assert histories[0] == histories[1]


def test_the_conversation_is_a_session_that_people_read(saver: SessionDBSaver) -> None:
    graph = graph_on(saver)
    for number, words in enumerate(["hello", "use a tool"]):
        graph.invoke({"messages": [HumanMessage(words, id=f"h{number}")]}, THREAD)
    (session,) = saver.store.sessions(project=ALL).items
    assert (session.source, session.source_id) == ("langgraph", "t")
    messages = saver.store.messages(session)
    assert [(m.role, m.text) for m in messages] == [
        ("user", "hello"),
        ("assistant", "Answer 1"),
        ("user", "use a tool"),
        ("assistant", "I look."),
        ("tool", ""),
        ("assistant", "Answer 5"),
    ]
    call = messages[3].parts[-1]
    assert (call.tool, call.input, call.text) == ("look", {"at": 3}, "seen")
    assert (messages[3].model_id, messages[3].tokens_input) == ("large", 10)
    assert saver.store.unfinished() == []
    assert saver.store.search("seen").items


def test_tokens_that_only_the_api_counted_are_those_of_the_answer(
    saver: SessionDBSaver,
) -> None:
    counted = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": None,
    }
    facts = {"model_name": "large", "token_usage": counted}
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {
        "messages": [AIMessage("Hi", id="a", response_metadata=facts)]
    }
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    saver.put(config, checkpoint, {}, {"messages": 1})
    (message,) = saver.store.messages(saver.store.open_session("t", source="langgraph"))
    assert message.tokens == Tokens(input=40, output=20, cache_read=60)


def test_a_message_that_is_changed_in_place_is_stored_again(
    saver: SessionDBSaver,
) -> None:
    class Marked(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, body = super().dumps_typed(obj)
            return f"marked {kind}", body

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return super().loads_typed((data[0].removeprefix("marked "), data[1]))

    messages: Any = [
        HumanMessage("one", id="h"),
        AIMessage("two", id="a", additional_kwargs={"flag": 1}),
        ToolMessage("three", tool_call_id="c", id="t", artifact={1, 2}),
    ]
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: messages[1].additional_kwargs.update(flag=True),
        lambda: messages[1].additional_kwargs.update(flag=1.0),
        lambda: messages[2].artifact.add(3),
        lambda: setattr(messages[0], "content", ["one", {"type": "text", "text": "1"}]),
        lambda: messages[0].content.append("more"),
        lambda: setattr(messages[0], "extra", "field"),
        lambda: setattr(saver, "serde", Marked()),
        lambda: messages.append(AIMessage("\ud800", id="b")),
    ]
    for version, change in enumerate(changes, 1):
        change()
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": version}
        config = saver.put(config, checkpoint, {}, {"messages": version})
        saved = saver.get_tuple(config)
        assert saved is not None
        stored = saved.checkpoint["channel_values"]["messages"]
        expected = JsonPlusSerializer()
        expected = expected.loads_typed(expected.dumps_typed(messages))
        assert stored == expected
        assert repr(stored) == repr(expected)


def test_going_back_and_on_is_a_branch_of_the_session(saver: SessionDBSaver) -> None:
    graph = graph_on(saver)
    graph.invoke({"messages": [HumanMessage("one", id="h0")]}, THREAD)
    early = graph.get_state(THREAD).config
    graph.invoke({"messages": [HumanMessage("two", id="h1")]}, THREAD)
    graph.invoke({"messages": [HumanMessage("other", id="h2")]}, early)
    (session,) = saver.store.sessions(project=ALL).items
    path = [m.text for m in saver.store.messages(session)]
    assert path == ["one", "Answer 1", "other", "Answer 3"]
    everything = [m.text for m in saver.store.messages(session, branches=True)]
    assert everything == ["one", "Answer 1", "two", "Answer 3", "other", "Answer 3"]

    last = graph.get_state(THREAD).values["messages"]
    graph.update_state(THREAD, {"messages": [RemoveMessage(last[-1].id)]})
    assert [m.text for m in saver.store.messages(session)] == path[:-1]
    graph.update_state(THREAD, {"messages": [HumanMessage("changed", id="h0")]})
    assert [m.text for m in saver.store.messages(session)] == ["changed", *path[1:-1]]


@pytest.mark.slow
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(["say", "remove", "go back"])),
        min_size=2,
        max_size=8,
    )
)
def test_two_savers_that_take_turns_leave_the_session_as_the_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    path = tmp_path_factory.mktemp("savers") / "a.db"
    with SessionDBSaver(path, durability="normal") as one, SessionDBSaver(path) as two:
        builder = StateGraph(State)
        builder.add_node("answer", lambda _: {"messages": [AIMessage("well")]})
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graphs = [builder.compile(checkpointer=saver) for saver in (one, two)]
        for number, (place, step) in enumerate([(0, "say"), *steps]):
            graph = graphs[place]
            said = graph.get_state(THREAD).values.get("messages", [])
            if step == "remove" and said:
                graph.update_state(THREAD, {"messages": [RemoveMessage(said[-1].id)]})
            elif step == "go back":
                *_, early = graph.get_state_history(THREAD)
                message = HumanMessage(str(number), id=f"h{number}")
                graph.invoke({"messages": [message]}, early.config)
            else:
                message = HumanMessage(str(number), id=f"h{number}")
                graph.invoke({"messages": [message]}, THREAD)
            texts = [m.text for m in graph.get_state(THREAD).values["messages"]]
            session = one.store.open_session("t", source="langgraph")
            assert [m.text for m in one.store.messages(session)] == texts
        assert check(one.store) == []


def test_a_saver_of_a_new_process_continues_where_the_last_one_was(
    tmp_path: Path,
) -> None:
    texts = []
    for number in range(4):
        with SessionDBSaver(tmp_path / "graph.db") as saver:
            graph = graph_on(saver)
            graph.invoke(
                {"messages": [HumanMessage(str(number), id=f"h{number}")]}, THREAD
            )
            texts = [m.text for m in graph.get_state(THREAD).values["messages"]]
    assert texts[::2] == ["0", "1", "2", "3"]
    with Store.open(tmp_path / "graph.db") as store:
        (session,) = store.sessions(project=ALL).items
        assert [m.text for m in store.messages(session)] == texts
        # Each item is stored once, whatever its number of checkpoints.
        from sqlalchemy import func, select

        from sessiondb.adapters.langgraph.tables import ITEM

        (row,) = store.select(select(func.count()).select_from(ITEM))
        assert row == (8 + 4,)
        assert check(store) == []


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    lists=st.lists(st.lists(_VALUES, max_size=6), min_size=1, max_size=6),
    restarts=st.sets(st.integers(0, 5)),
)
def test_any_sequence_of_lists_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, lists: list[list[Any]], restarts: set[int]
) -> None:
    path = tmp_path_factory.mktemp("lists") / "a.db"
    written = []
    saver = SessionDBSaver(path, durability="normal")
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for number, value in enumerate(lists):
        if number in restarts:
            saver.close()
            saver = SessionDBSaver(path, durability="normal")
        checkpoint = empty_checkpoint()
        versions = {"c": f"{number:04}"}
        checkpoint["channel_values"] = {"c": value}
        checkpoint["channel_versions"] = dict(versions)
        config = saver.put(config, checkpoint, {"step": number}, dict(versions))  # type: ignore[arg-type]
        written.append((config, value))
    for at, value in written:
        saved = saver.get_tuple(at)
        assert saved is not None
        assert saved.checkpoint["channel_values"] == {"c": value}
    saver.prune(["t"])
    latest = saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert latest is not None
    assert latest.checkpoint["channel_values"] == {"c": lists[-1]}
    saver.close()


_WORDS = st.text(max_size=4) | st.sampled_from(["\0", "/t", "x" * 300])
_IDS = st.sampled_from(["a", "b", "c", "", "msg_1", "ü💡", "x" * 300])
_BLOCKS = st.lists(
    _WORDS
    | st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["text", "image_url", "file", "thinking", "tool", ""]
            )
        },
        optional={"text": _WORDS, "thinking": _WORDS, "url": _WORDS, "n": _VALUES},
    ),
    max_size=3,
)
_CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": _WORDS,
            "args": st.dictionaries(
                _WORDS, _VALUES | st.just((1 << 64) - 1), max_size=2
            ),
            "id": st.none() | _IDS,
        }
    ),
    max_size=2,
)
_USAGE = st.none() | st.fixed_dictionaries(
    dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), st.integers(0, 9)),
    optional={
        "input_token_details": st.fixed_dictionaries(
            {}, optional={"cache_read": st.integers(0, 99)}
        )
    },
)
_CONTENT = _WORDS | _BLOCKS
_MESSAGES = st.one_of(
    st.builds(HumanMessage, content=_CONTENT, id=_IDS),
    st.builds(SystemMessage, content=_CONTENT, id=_IDS),
    st.builds(ToolMessage, content=_CONTENT, id=_IDS, tool_call_id=_IDS),
    st.builds(
        AIMessage,
        content=_CONTENT,
        id=_IDS,
        tool_calls=_CALLS,
        usage_metadata=_USAGE,
        response_metadata=st.dictionaries(
            st.sampled_from(["model_name", "model_provider"]),
            _WORDS | st.integers(0, 9),
        ),
    ),
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    lists=st.lists(st.lists(_MESSAGES, max_size=5), min_size=1, max_size=4),
    is_restarted=st.booleans(),
)
def test_any_messages_are_a_conversation_and_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, lists: list[Any], is_restarted: bool
) -> None:
    path = tmp_path_factory.mktemp("messages") / "a.db"
    saver = SessionDBSaver(path, durability="normal")
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for number, messages in enumerate(lists):
        if is_restarted:
            saver.close()
            saver = SessionDBSaver(path, durability="normal")
        checkpoint = empty_checkpoint()
        versions: Any = {"messages": f"{number:04}"}
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = dict(versions)
        config = saver.put(config, checkpoint, {"step": number}, versions)
        saved = saver.get_tuple(config)
        assert saved is not None
        assert saved.checkpoint["channel_values"] == {"messages": messages}
        session = saver.store.open_session("t", source="langgraph")
        roles = [message.role for message in saver.store.messages(session)]
        assert roles == [ROLES[message.type] for message in messages]
    assert check(saver.store) == []
    saver.close()


ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def converse(pipe: Connection, path: Path, name: str) -> None:
    del pipe
    with SessionDBSaver(path, durability="normal") as saver:
        graph = graph_on(saver)
        for number in range(5):
            message = HumanMessage(f"{name} {number}", id=f"{name}-{number}")
            graph.invoke({"messages": [message]}, THREAD)
            own = {"configurable": {"thread_id": name}}
            graph.invoke({"messages": [HumanMessage(f"own {number}")]}, own)


@pytest.mark.slow
def test_processes_share_a_file_and_a_thread_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with other(converse, path, "x") as one, other(converse, path, "y") as two:
        one.end()
        two.end()
    with SessionDBSaver(path) as saver:
        graph = graph_on(saver)
        for name in ("x", "y"):
            values = graph.get_state({"configurable": {"thread_id": name}}).values
            assert len(values["messages"]) == 10
        # Of one thread the last writer wins, as on any saver; what it has is complete.
        values = graph.get_state(THREAD).values
        session = saver.store.sessions(project=ALL, source="langgraph").items
        assert len(session) == 3
        assert values["messages"]
        assert check(saver.store) == []


def test_a_message_that_another_program_appended_stays_on_a_branch(
    saver: SessionDBSaver,
) -> None:
    graph = graph_on(saver)
    graph.invoke({"messages": [HumanMessage("one", id="h0")]}, THREAD)
    with Store.open(saver.store.path) as store:
        (session,) = store.sessions(source="langgraph").items
        store.append(session, user("by hand"))
    graph.invoke({"messages": [HumanMessage("two", id="h1")]}, THREAD)
    path = [m.text for m in saver.store.messages(session)]
    assert path == ["one", "Answer 1", "two", "Answer 3"]
    everything = [m.text for m in saver.store.messages(session, branches=True)]
    assert everything == ["one", "Answer 1", "by hand", "two", "Answer 3"]


def test_equal_ids_of_another_program_are_another_session(
    saver: SessionDBSaver,
) -> None:
    store = saver.store
    mine = store.open_session("t", source="another")
    store.append(mine, user("mine"))
    graph = graph_on(saver)
    graph.invoke({"messages": [HumanMessage("hello", id="h0")]}, THREAD)
    for thread in ("1", "/t", "t" * 200, "tür 💡"):
        graph.invoke(
            {"messages": [HumanMessage(thread, id="h0")]},
            {"configurable": {"thread_id": thread}},
        )
    saver.delete_thread("t")
    assert [m.text for m in store.messages(mine)] == ["mine"]
    assert graph.get_state(THREAD).values == {}
    for thread in ("1", "/t", "t" * 200, "tür 💡"):
        config = {"configurable": {"thread_id": thread}}
        assert graph.get_state(config).values["messages"][0].text == thread
    graph.invoke({"messages": [HumanMessage("again", id="h0")]}, THREAD)
    assert [m.text for m in graph.get_state(THREAD).values["messages"]] == [
        "again",
        "Answer 1",
    ]


class Pausing(JsonPlusSerializer):
    """The serializer of a graph, which does something once before it loads anything."""

    def __init__(self, interlude: Callable[[], Any]) -> None:
        super().__init__()
        self.interludes = [interlude]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        while self.interludes:
            self.interludes.pop()()
        return super().loads_typed(data)


@pytest.mark.parametrize("how", ["get_tuple", "list"])
def test_a_checkpoint_that_is_removed_while_it_is_read_is_complete_or_none(
    saver: SessionDBSaver, how: str
) -> None:
    graph = graph_on(saver)
    for number in range(2):
        message = HumanMessage(str(number), id=f"h{number}")
        graph.invoke({"messages": [message]}, THREAD)
    *_, early, _ = saver.list(THREAD)

    serde = Pausing(lambda: saver.prune(["t"]))
    with SessionDBSaver(saver.store.path, serde=serde) as reading:
        if how == "get_tuple":
            assert reading.get_tuple(early.config) == early
        else:
            # Removed between the page and the reading of its values.
            assert list(reading.list(early.config)) == []
        assert reading.get_tuple(early.config) is None
    assert serde.interludes == []


def test_checkpoints_that_are_removed_while_they_are_listed_are_left_out(
    saver: SessionDBSaver,
) -> None:
    graph = graph_on(saver)
    graph.invoke({"messages": [HumanMessage("one", id="h0")]}, THREAD)
    checkpoints = saver.list(THREAD)
    newest = next(checkpoints)
    saver.prune(["t"])
    assert list(checkpoints) == []
    assert saver.get_tuple(THREAD) == newest


def test_pruning_takes_no_value_that_another_process_comes_to_need(
    saver: SessionDBSaver,
) -> None:
    graph = graph_on(saver)
    graph.invoke({"messages": [HumanMessage("one", id="h0")]}, THREAD)
    early = graph.get_state(THREAD).config
    graph.invoke({"messages": [HumanMessage("two", id="h1")]}, THREAD)

    # While the values that can go are sought, a graph goes back to an old checkpoint.
    serde = Pausing(lambda: graph.update_state(early, {"count": 7}))
    with SessionDBSaver(saver.store.path, serde=serde) as pruning:
        pruning.prune(["t"])
    assert serde.interludes == []
    values = graph.get_state(THREAD).values
    assert values["count"] == 7
    assert [m.text for m in values["messages"]] == ["one", "Answer 1"]
    assert len(list(saver.list(THREAD))) == 1


def test_pruning_keeps_the_transcript_and_deleting_removes_it(
    saver: SessionDBSaver,
) -> None:
    graph = graph_on(saver)
    for number, words in enumerate(SCRIPT[:2]):
        graph.invoke({"messages": [HumanMessage(words, id=f"h{number}")]}, THREAD)
    before = graph.get_state(THREAD)
    saver.prune(["t"])
    assert graph.get_state(THREAD).values == before.values
    assert len(list(saver.list(THREAD))) == 1
    saver.prune(["t"], strategy="delete")
    assert list(saver.list(THREAD)) == []
    (session,) = saver.store.sessions(project=ALL).items
    assert len(saver.store.messages(session)) == 6
    saver.delete_thread("t")
    assert saver.store.sessions(project=ALL).items == ()


def test_checkpoints_of_runs_go_and_the_rest_continues(saver: SessionDBSaver) -> None:
    graph = graph_on(saver)
    for number, run in enumerate(["first", "second"]):
        config = {**THREAD, "metadata": {"run_id": run}}
        message = HumanMessage(run, id=f"h{number}")
        graph.invoke({"messages": [message]}, config)
    before = graph.get_state(THREAD)
    assert {saved.metadata["run_id"] for saved in saver.list(THREAD)} == {
        "first", "second",
    }  # fmt: skip
    saver.delete_for_runs(["first", "unknown"])
    assert {saved.metadata["run_id"] for saved in saver.list(THREAD)} == {"second"}
    assert graph.get_state(THREAD).values == before.values


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_branches_of_the_page_make_a_session_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "adapters" / "langgraph.md").read_text()
    _, program = re.findall(r"(?s)```python\n(.*?)```", page)
    exec(compile(program, "docs/adapters/langgraph.md", "exec"), {"__name__": "reader"})
    assert capsys.readouterr().out.splitlines() == [
        "langgraph kitchen 6",
        "Fix the lamp", "You said: Fix the lamp", "And the sink", "You said: And the sink",
    ]  # fmt: skip

    def typed(*arguments: str) -> str:
        command = [sys.executable, "-m", "sessiondb", "--db", "graph.db", *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout

    assert "langgraph" in typed("list", "-a")
    assert "And the sink" in typed("show", "kitchen")
    assert "‹stove›" in typed("search", "-a", "stove")
    fork = typed("fork", "kitchen").strip()
    assert "You said: And the sink" in typed("show", fork)
    typed("check")

    # A log carries the tables along: the graph continues in another database.
    typed("export", "kitchen", "--to", "jsonl", "--output", "kitchen.jsonl")
    (tmp_path / "graph.db").unlink()
    typed("import", "kitchen.jsonl")
    with SessionDBSaver(tmp_path / "graph.db") as saver:
        saved = saver.get_tuple({"configurable": {"thread_id": "kitchen"}})
        assert saved is not None
        texts = [m.text for m in saved.checkpoint["channel_values"]["messages"]]
        assert texts[-2:] == ["And the sink", "You said: And the sink"]
        assert check(saver.store) == []


def test_without_the_framework_the_tables_are_known_and_the_class_names_the_extra(
    tmp_path: Path,
) -> None:
    program = """
import sys
sys.modules["langgraph"] = sys.modules["langchain_core"] = None
from importlib.metadata import entry_points
(entry,) = entry_points(group="sessiondb.extensions", name="langgraph")
print(entry.load().name)
from sessiondb import Store
with Store.open(sys.argv[1]) as store:
    store.extend(entry.load())
try:
    from sessiondb.adapters.langgraph import SessionDBSaver
except ImportError as error:
    print(error, error.hint)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a.db")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "langgraph",
        "SessionDBSaver needs langgraph pip install 'sessiondb[langgraph]'",
    ]
