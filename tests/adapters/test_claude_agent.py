"""`SessionDBSessionStore`: transcripts come back as they were, and read like imported ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")

import anyio
from claude_agent_sdk import (
    InMemorySessionStore,
    fold_session_summary,
    fork_session_via_store,
    import_session_to_store,
    project_key_for_directory,
    tag_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import Connection, other

from sessiondb import AsyncStore, InvalidInputError, Store, StoreClosedError, assistant
from sessiondb.adapters.claude_agent import SessionDBSessionStore
from sessiondb.formats import find
from sessiondb.maintenance import check

SOURCE = "claude-agent-sdk"
SESSION = "11111111-1111-4111-8111-111111111111"
KEY: Any = {"project_key": "-home-dev-acme", "session_id": SESSION}
SUBAGENT: Any = {**KEY, "subpath": "subagents/agent-1"}
LOOPS = ("asyncio", "trio")


class Called:
    """The methods of a session store, each in a new event loop of asyncio or trio."""

    def __init__(self, store: Any, loop: str = "asyncio") -> None:
        self.store, self.loop = store, loop

    def run(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        return anyio.run(function, *args, backend=self.loop)

    def append(self, key: Any, *entries: Any) -> None:
        self.run(self.store.append, key, list(entries))

    def load(self, key: Any = KEY) -> Any:
        return self.run(self.store.load, key)

    def sessions(self, project: str = "-home-dev-acme") -> Any:
        return self.run(self.store.list_sessions, project)

    def summaries(self, project: str = "-home-dev-acme") -> Any:
        return self.run(self.store.list_session_summaries, project)

    def subkeys(self, key: Any = KEY) -> Any:
        return self.run(self.store.list_subkeys, key)

    def delete(self, key: Any = KEY) -> None:
        self.run(self.store.delete, key)

    @property
    def only_session(self) -> Any:
        (session,) = self.store.store.sessions(source=SOURCE).items
        return session

    def texts(self, **selected: Any) -> list[str]:
        session = self.only_session
        return [m.text for m in self.store.store.messages(session, **selected)]


@pytest.fixture(params=LOOPS)
def store(tmp_path: Path, request: Any) -> Iterator[Called]:
    with SessionDBSessionStore(tmp_path / "c.db", durability="normal") as opened:
        yield Called(opened, request.param)
        assert check(opened.store) == []


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Called]:
    with SessionDBSessionStore(tmp_path / "c.db", durability="normal") as opened:
        yield Called(opened)
        assert check(opened.store) == []


def entry(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> Any:
    message: Any = {"role": kind, "content": content}
    stated = {"parentUuid": parent, "uuid": uuid, "type": kind, "message": message}
    return {**stated, "timestamp": "2026-11-20T10:00:00.000Z", **more}


def prompt(uuid: str, parent: str | None, text: str, **more: Any) -> Any:
    return entry("user", uuid, parent, text, **more)


def answer(
    uuid: str, parent: str, *blocks: Any, id: str = "msg_1", output: int = 7
) -> Any:
    made = entry("assistant", uuid, parent, list(blocks), requestId=f"req_{id}")
    usage = {"input_tokens": 5, "output_tokens": output, "cache_read_input_tokens": 90}
    made["message"] |= {"id": id, "model": "claude-sonnet-4-5", "usage": usage}
    return made


def call(id: str) -> Any:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": id}}


def result(uuid: str, parent: str, id: str) -> Any:
    block = {"type": "tool_result", "tool_use_id": id, "content": f"output of {id}"}
    return entry("user", uuid, parent, [block])


def said(text: str) -> Any:
    return {"type": "text", "text": text}


@pytest.mark.parametrize("loop", LOOPS)
def test_the_contracts_of_the_sdk_hold(tmp_path: Path, loop: str) -> None:
    numbers = count()
    opened = []

    def make() -> SessionDBSessionStore:
        path = tmp_path / f"{next(numbers)}.db"
        opened.append(SessionDBSessionStore(path, durability="normal"))
        return opened[-1]

    anyio.run(run_session_store_conformance, make, backend=loop)
    assert len(opened) == 15
    for made in opened:
        assert check(made.store) == []
        made.close()


# -- entries come back as they were -------------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(),
    st.sampled_from(["\ud800", "\ud800\udc00", "\x00", "a\u2028b", 1 << 70, "", -0.0]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
blocks = st.one_of(
    values,
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["text", "thinking", "tool_use", "tool_result", "image", "odd"]
            )
        },
        optional={
            "text": scalars, "thinking": scalars, "signature": st.text(), "id": scalars,
            "name": scalars, "input": values, "tool_use_id": scalars, "content": values,
            "is_error": scalars, "source": values, "plain": values,
        },
    ),
)  # fmt: skip
entries = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["user", "assistant", "system", "attachment", "summary", "x", "mode", ""]
        )
        | st.text(max_size=4)
    },
    optional={
        "uuid": st.sampled_from(["u1", "u2", "~u", "msg_" + "0" * 26, "\ud800", "x" * 300]),
        "parentUuid": st.sampled_from([None, "u1", "u2", "gone", 3]),
        "logicalParentUuid": st.sampled_from([None, "u1"]),
        "timestamp": st.sampled_from(["2026-11-20T10:00:00.000Z", "never", 5]),
        "cwd": st.sampled_from(["/tmp", "relative", "\x00", "", 4]),
        "message": values
        | st.fixed_dictionaries(
            {"content": st.text() | st.lists(blocks, max_size=2)},
            optional={
                "id": scalars, "model": scalars, "usage": values, "stop_reason": scalars
            },
        ),
        "customTitle": scalars, "aiTitle": scalars, "lastPrompt": scalars, "tag": scalars,
        "isMeta": scalars, "isCompactSummary": scalars, "subtype": scalars,
        "content": values, "attachment": values, "claude_agent_entry": scalars,
        "first_kept_id": scalars, "other_lines": values, "requestId": scalars,
        "compactMetadata": values, "isSidechain": scalars, "version": scalars,
        "costUSD": scalars, "toolUseResult": values, "forkedFrom": values,
    },
)  # fmt: skip


def without_known(entries: list[Any], known: set[str]) -> list[Any]:
    new = []
    for made in entries:
        if not made.get("uuid") or made["uuid"] not in known:
            new.append(made)
            known.add(made.get("uuid") or "")
    return new


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batches=st.lists(st.lists(entries, min_size=1, max_size=4), max_size=4))
def test_any_entries_come_back_deep_equal_in_their_order(
    one: Called, batches: list[list[Any]]
) -> None:
    memory, known = InMemorySessionStore(), set[str]()
    number = next(NUMBERS)
    key: Any = {"project_key": f"p{number}", "session_id": "s"}

    async def write() -> Any:
        for batch in batches:
            await one.store.append(key, batch)
            new = without_known(batch, known)
            if new:
                await memory.append(key, new)
        stores: list[Any] = [one.store, memory]
        loaded = [await store.load(key) for store in stores]
        summaries = [
            await store.list_session_summaries(f"p{number}") for store in stores
        ]
        return *loaded, *[[it["data"] for it in summary] for summary in summaries]

    # JSON tells true from 1 and 1 from 1.0, and Python's == does not; it does not tell
    # two lone surrogates from the character that they are together.
    loaded, expected, summary, expected_summary = [
        json.dumps(value, sort_keys=True) for value in one.run(write)
    ]
    assert loaded == expected
    assert summary == expected_summary


NUMBERS = count()
CALLS = st.sampled_from(["c1", "c2"])
PARENTS = st.sampled_from([None, *[f"n{number}" for number in range(6)]])


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["call", "result", "text", "prompt"]), CALLS, PARENTS,
                  st.sampled_from(["m1", "m2"]), st.booleans(), st.booleans()),
        max_size=9,
    )
)  # fmt: skip
def test_calls_and_results_come_back_in_any_order_and_of_any_branch(
    one: Called, steps: list[tuple[str, str, str | None, str, bool, bool]]
) -> None:
    key: Any = {"project_key": f"p{next(NUMBERS)}", "session_id": "s"}
    transcript: list[Any] = []
    batches: list[list[Any]] = [[]]
    for number, (kind, name, parent, reply, is_listed, is_flushed) in enumerate(steps):
        uuid = f"n{number}"
        output: Any = f"output {number}"
        block = {"type": "tool_result", "tool_use_id": name, "is_error": is_listed,
                 "content": [{"type": "text", "text": output}] if is_listed else output}  # fmt: skip
        made = {
            "call": answer(uuid, str(parent), call(name), id=reply, output=number),
            "text": answer(uuid, str(parent), said(output), id=reply),
            "result": entry("user", uuid, parent, [block]),
            "prompt": prompt(uuid, parent, output),
        }[kind]
        transcript.append(made)
        batches[-1].append(made)
        if is_flushed:
            batches.append([])

    async def write() -> Any:
        for batch in batches:
            await one.store.append(key, batch)
        return await one.store.load(key)

    assert one.run(write) == (transcript or None)


def test_transcripts_of_the_program_come_back_and_read_like_imported_ones(
    tmp_path: Path,
    real_store: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = real_store("claude-code-2.1.329") / "data" / ".claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    files = sorted(home.glob("projects/*/*.jsonl"))
    one = Called(SessionDBSessionStore(tmp_path / "c.db", durability="normal"))
    memory = Called(InMemorySessionStore())
    for file in files:
        for size, target in ((7, one), (500, memory), (7, one)):

            async def copy(
                to: Any = target.store, name: str = file.stem, n: int = size
            ) -> None:
                await import_session_to_store(name, to, batch_size=n)

            # The second time finds all uuids; entries without one are appended again.
            if target is memory or one.load(key_of(file)) is None:
                target.run(copy)

    project = files[0].parent.name
    assert {s["session_id"]: s["data"] for s in one.summaries(project)} == {
        s["session_id"]: s["data"] for s in memory.summaries(project)
    }
    imported = Store.open(tmp_path / "imported.db", durability="normal")
    for found in find(str(home)):
        list(imported.ingest(found.read()))
    originals = {
        str(session.source_id).rpartition("/")[2]: session
        for session in imported.sessions(source="claude", subagents=True).items
    }
    written = one.store.store
    assert total_tokens(written) == total_tokens(imported)
    for file in files:
        key = key_of(file)
        assert one.load(key) == memory.load(key)
        for subpath in memory.subkeys(key):
            subkey = {**key, "subpath": subpath}
            assert one.load(subkey) == memory.load(subkey)
    sessions = written.sessions(source=SOURCE, subagents=True).items
    assert len(sessions) == len(originals)
    for session in sessions:
        original = originals[str(session.source_id).rpartition("/")[2]]
        for name in "title directory version model_id agent prompt_count".split():
            assert getattr(session, name) == getattr(original, name), name
        # A file beside the transcript, with an output, is read by the import alone.
        assert path_of(written, session) == [
            line for line in path_of(imported, original) if line[1] != "file"
        ]
    assert check(written) == []
    imported.close()
    one.store.close()


def key_of(file: Path) -> Any:
    return {"project_key": file.parent.name, "session_id": file.stem}


def total_tokens(store: Store) -> Any:
    return [(row.key, row.tokens) for row in store.usage(by="model")]


def path_of(store: Store, session: Any) -> list[tuple[Any, ...]]:
    return [
        (
            m.purpose,
            p.type,
            p.text,
            p.tool,
            p.input_json,
            p.outcome,
            p.status,
            p.synthetic,
        )
        for m in store.messages(session)
        for p in m.parts
    ]


# -- batches that are repeated -----------------------------------------------------


def test_a_batch_that_is_repeated_changes_nothing_and_its_new_entries_are_appended(
    store: Called,
) -> None:
    first = [prompt("u1", None, "Hello"), {"type": "mode", "mode": "plan"}]
    store.append(KEY, *first)
    before = store.summaries()
    store.append(KEY, first[0])
    store.append(KEY, {**first[0], "message": "another content"})
    assert store.load() == first
    assert store.summaries() == before, "no time but that of the last write"
    again = [
        first[0],
        prompt("u2", "u1", "More"),
        prompt("u2", "u1", "twice"),
        first[1],
    ]
    store.append(KEY, *again)
    assert store.load() == [*first, again[1], first[1]]


@pytest.mark.parametrize("reopened", [False, True])
def test_a_uuid_is_known_however_long_the_session_is(
    tmp_path: Path, reopened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.adapters.claude_agent.links.REMEMBERED", 50)
    odd = ["~odd", "msg_" + "0" * 26, "\ud800", "x" * 300, "\x00", "é" * 200]
    long = [prompt(uuid, None, f"Odd {n}") for n, uuid in enumerate(odd)]
    long += [prompt(f"u{n}", f"u{n - 1}", f"Text {n}") for n in range(150)]
    path = tmp_path / "c.db"
    with SessionDBSessionStore(path, durability="normal") as opened:
        one = Called(opened)
        for begin in range(0, len(long), 40):
            one.append(KEY, *long[begin : begin + 40])
        one.append(KEY, *long[:60])
        assert one.load() == long
        branch = prompt("b1", "u3", "A branch")
        if not reopened:
            one.append(KEY, branch)
    with SessionDBSessionStore(path, durability="normal") as opened:
        one = Called(opened)
        one.append(KEY, *long)
        one.append(KEY, branch)
        assert one.load() == [*long, branch]
        assert one.texts()[-2:] == ["Text 3", "A branch"]
        assert check(opened.store) == []


def test_who_continues_its_own_transcript_reads_nothing(
    one: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.append(KEY, prompt("u1", None, "Hello"))

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was read")

    with monkeypatch.context() as patched:
        patched.setattr(one.store.store, "select", refuse)
        patched.setattr(one.store.store, "messages", refuse)
        one.append(
            KEY, answer("a1", "u1", said("Hi")), {"type": "mode", "mode": "plan"}
        )
        one.append(KEY, prompt("u2", "a1", "Go on"))
        one.append(KEY, {"type": "custom-title", "customTitle": "Greetings"})
    assert one.texts(roles=("user", "assistant")) == ["Hello", "Hi", "Go on"]


def test_who_continues_a_long_transcript_reads_its_end_alone(
    one: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = [prompt(f"u{n}", f"u{n - 1}", f"Text {n}") for n in range(200)]
    one.append(KEY, *long)
    read: list[int] = []
    messages = one.store.store.messages

    def note(*args: Any, **selected: Any) -> Any:
        found = messages(*args, **selected)
        read.append(len(found))
        return found

    monkeypatch.setattr(one.store.store, "messages", note)
    with SessionDBSessionStore(one.store.store) as again:
        monkeypatch.setattr(again.store, "messages", note)
        Called(again).append(KEY, prompt("b1", "u7", "A branch"))
    assert read == [64]
    monkeypatch.undo()
    assert one.texts()[-2:] == ["Text 7", "A branch"]


def test_objects_that_take_turns_at_one_transcript_lose_and_double_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.db"
    made = [SessionDBSessionStore(path, durability="normal") for _ in range(2)]
    ones = [Called(made[0], "asyncio"), Called(made[1], "trio")]
    expected = []
    for number in range(6):
        expected += [prompt(f"u{number}", f"u{number - 1}", f"Text {number}")]
        ones[number % 2].append(KEY, *expected[-2:])
    assert ones[0].load() == ones[1].load() == expected
    ones[0].delete()
    ones[1].append(KEY, expected[0])
    assert ones[0].load() == expected[:1]
    for each in made:
        each.close()


def add_entries(pipe: Connection, path: Path, name: str) -> None:
    pipe.send("ready")
    pipe.recv()
    with SessionDBSessionStore(path, durability="normal") as opened:
        one = Called(opened)
        for number in range(6):
            uuid = f"{name}-{number}"
            made = prompt(uuid, None, uuid, gitBranch=uuid)
            one.append(KEY, made, {"type": "tag", "tag": uuid}, made)


@pytest.mark.slow
def test_processes_share_a_session_and_its_summary_is_that_of_its_entries(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.db"
    with (
        other(add_entries, path, "a") as a,
        other(add_entries, path, "b") as b,
        other(add_entries, path, "c") as c,
        other(add_entries, path, "d") as d,
    ):
        for each in (a, b, c, d):
            each.hear()
        for each in (a, b, c, d):
            each.say()
        for each in (a, b, c, d):
            each.end()
    with SessionDBSessionStore(path) as opened:
        one = Called(opened)
        loaded = one.load()
        uuids = [made["uuid"] for made in loaded if "uuid" in made]
        assert len(loaded) == 48
        assert len(set(uuids)) == len(uuids) == 24
        for name in "abcd":
            own = [uuid for uuid in uuids if uuid.startswith(name)]
            assert own == [f"{name}-{number}" for number in range(6)]
        (summary,) = one.summaries()
        assert summary["data"] == fold_session_summary(None, KEY, loaded)["data"]
        (listed,) = one.sessions()
        assert listed["mtime"] == summary["mtime"]
        assert check(opened.store) == []


# -- keys ---------------------------------------------------------------------------

HOSTILE = ["1234", "34", "a/b", "/", "", "%", "%2F;", "a:b", "é" * 150, "x" * 300, "\ud800",
           "\x00", "..", "a b", "subagents/agent-1", " ", "💡" * 100, '["a"]']  # fmt: skip


def test_any_texts_are_keys_and_no_two_of_them_are_the_same_session(
    one: Called,
) -> None:
    keys: list[Any] = [
        {"project_key": project, "session_id": session}
        for project in HOSTILE
        for session in ("s", *HOSTILE[:6])
    ]
    keys += [{"project_key": "p", "session_id": name} for name in HOSTILE]
    keys += [
        {"project_key": "p", "session_id": "s", "subpath": it} for it in HOSTILE if it
    ]
    keys += [{"project_key": "p", "session_id": "s/x", "subpath": "y"}]

    async def write() -> None:
        for number, key in enumerate(keys):
            await one.store.append(key, [{"type": "x", "n": number}])

    one.run(write)
    for number, key in enumerate(keys):
        assert one.load(key) == [{"type": "x", "n": number}], key
    for project in HOSTILE:
        ids = [found["session_id"] for found in one.sessions(project)]
        assert sorted(ids) == sorted(["s", *HOSTILE[:6]]), project
    # "s" itself has subagents alone.
    assert sorted(it["session_id"] for it in one.sessions("p")) == sorted(HOSTILE)
    subkeys = one.subkeys({"project_key": "p", "session_id": "s"})
    assert subkeys == [name for name in HOSTILE if name]


def test_an_equal_id_of_another_program_is_another_session(one: Called) -> None:
    one.append(KEY, prompt("u1", None, "Hello"))
    source_id = one.only_session.source_id
    other_session = one.store.store.open_session(source_id, source="langgraph")
    one.store.store.append(other_session, assistant("I am another one"))
    assert [made["uuid"] for made in one.load()] == ["u1"]
    one.delete()
    assert one.store.store.messages(other_session)[0].text == "I am another one"
    assert one.load() is None


# -- subagents, deleting ----------------------------------------------------------------


def test_subagents_come_before_their_session_and_go_with_it(store: Called) -> None:
    meta = {"type": "agent_metadata", "agentType": "Explore", "description": "Looks",
            "toolUseId": "call_1"}  # fmt: skip
    store.append(SUBAGENT, meta, prompt("s1", None, "Look", isSidechain=True))
    assert store.load() is None
    assert store.sessions() == store.summaries() == []
    assert store.subkeys() == ["subagents/agent-1"]
    store.append(KEY, prompt("u1", None, "Hello", cwd="/tmp"))
    store.append({**KEY, "subpath": "subagents/agent-2"}, {"type": "x"})
    assert store.subkeys() == ["subagents/agent-1", "subagents/agent-2"]
    assert [it["session_id"] for it in store.sessions()] == [SESSION]

    session = store.only_session
    assert session.directory == "/tmp"
    looks, _ = store.store.store.subagents(session)
    assert (looks.title, looks.agent, looks.call_id) == ("Looks", "Explore", "call_1")

    store.delete({**KEY, "subpath": "subagents/agent-2"})
    assert store.subkeys() == ["subagents/agent-1"]
    store.delete()
    store.delete()
    assert store.load() is None
    assert store.load(SUBAGENT) is None
    assert store.sessions() == store.subkeys() == []


def test_a_session_that_is_removed_can_be_written_again_at_once(store: Called) -> None:
    for number in range(3):
        store.append(KEY, prompt("u1", None, f"Take {number}"))
        store.append(SUBAGENT, {"type": "x", "n": number})
        assert store.load(SUBAGENT) == [{"type": "x", "n": number}]
        assert store.texts() == [f"Take {number}"]
        store.delete()
    assert store.load() is None


# -- what people read ---------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 20])
def test_an_answer_is_complete_on_the_live_path_and_paid_once(
    one: Called, size: int
) -> None:
    transcript = [
        prompt("u1", None, "Do the tests pass?", cwd="/tmp", version="2.1.330"),
        answer("a1", "u1", {"type": "thinking", "thinking": "Hm"}, output=1),
        answer("a2", "a1", call("c1"), output=1),
        {"type": "mode", "mode": "plan"},
        result("r1", "a2", "c1"),
        answer("a3", "a2", call("c2"), output=42),
        result("r2", "a3", "c2"),
        answer("a4", "r2", said("They do"), id="msg_2"),
        {"type": "ai-title", "aiTitle": "The tests"},
        {"type": "last-prompt", "lastPrompt": "Do the tests pass?"},
    ]
    for begin in range(0, len(transcript), size):
        one.append(KEY, *transcript[begin : begin + size])
    assert one.load() == transcript
    session, opened = one.only_session, one.store.store
    path = opened.messages(session)
    assert [message.id for message in path] == "u1 a1 a2 r1 a3 r2 a4".split()
    calls = [part for message in path for part in message.parts if part.type == "tool"]
    assert [part.text for part in calls] == ["output of c1", "output of c2"]
    assert session.tokens.output == 42 + 7
    assert (session.tokens.input, session.tokens.cache_read) == (10, 180)
    assert (session.title, session.model_id) == ("The tests", "claude-sonnet-4-5")
    assert (session.directory, session.version) == ("/tmp", "2.1.330")
    assert opened.search("output", scope=KEY["project_key"]).items
    assert one.texts(roles="assistant")[-1] == "They do"
    fork = opened.fork(session, at="r1")
    assert [m.id for m in opened.messages(fork)] == "u1 a1 a2 r1".split()


def test_going_back_is_a_branch_and_the_entries_stay_in_their_order(
    one: Called,
) -> None:
    transcript = [
        prompt("u1", None, "Hello"),
        answer("a1", "u1", said("Hi")),
        prompt("u2", "a1", "First"),
        prompt("u3", "a1", "Second"),
    ]
    for made in transcript:
        one.append(KEY, made)
    assert one.texts() == ["Hello", "Hi", "Second"]
    assert one.texts(branches=True) == ["Hello", "Hi", "First", "Second"]
    assert one.load() == transcript


def test_the_conversation_goes_on_behind_a_compaction(one: Called) -> None:
    kept = {"headUuid": "u2", "tailUuid": "a2", "anchorUuid": "s1"}
    one.append(
        KEY,
        prompt("u1", None, "Old"),
        prompt("u2", "u1", "Kept"),
        answer("a2", "u2", said("Kept answer")),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None,
         "logicalParentUuid": "a2", "content": "Compacted",
         "compactMetadata": {"preservedSegment": kept}},
        prompt("s1", "b1", "Summary", isCompactSummary=True),
        prompt("u3", "a2", "New"),
    )  # fmt: skip
    texts = ["Old", "Kept", "Kept answer", "Compacted", "Summary", "New"]
    assert one.texts() == texts
    context = one.store.store.context(one.only_session)
    assert [m.text for m in context.messages] == ["Kept", "Kept answer", "New"]
    assert context.summary is not None


def test_a_fork_by_the_sdk_is_a_fork_here_and_its_answers_are_paid_once(
    one: Called,
) -> None:
    directory = "/tmp/forked"
    key: Any = {
        "project_key": project_key_for_directory(directory),
        "session_id": SESSION,
    }
    one.append(key, prompt("u1", None, "Hello"))
    one.append(key, answer("a1", "u1", said("Hm"), output=1))
    one.append(key, answer("a2", "a1", said("Hi"), output=42))
    before = total_tokens(one.store.store)

    async def fork() -> Any:
        return await fork_session_via_store(one.store, SESSION, directory=directory)

    made = one.run(fork).session_id
    forked = one.load({**key, "session_id": made})
    assert forked[0]["message"]["content"] == "Hello"
    opened = one.store.store
    fork_here = next(s for s in opened.sessions().items if made in str(s.source_id))
    original = next(s for s in opened.sessions().items if SESSION in str(s.source_id))
    assert (fork_here.relation, fork_here.parent_id) == ("fork", original.id)
    assert total_tokens(opened) == before
    one.delete(key)
    assert one.load({**key, "session_id": made}) == forked
    assert total_tokens(opened) == before


def test_titles_and_tags_are_those_of_the_user(one: Called) -> None:
    directory = "/tmp/titled"
    project = project_key_for_directory(directory)
    key: Any = {"project_key": project, "session_id": SESSION}
    one.append(key, {"type": "ai-title", "aiTitle": "\ud800"})
    assert one.only_session.title == ""
    one.append(key, {"type": "custom-title", "customTitle": "Mine"})
    one.append(key, {"type": "ai-title", "aiTitle": "Made"})

    async def tag() -> None:
        await tag_session_via_store(
            one.store, SESSION, "important", directory=directory
        )

    one.run(tag)
    assert one.only_session.title == "Mine"
    (summary,) = one.summaries(project)
    assert summary["data"]["tag"] == "important"
    assert summary["data"]["ai_title"] == "Made"
    assert one.only_session.directory is None


def test_messages_of_another_program_are_read_by_people_alone(one: Called) -> None:
    one.append(KEY, prompt("u1", None, "Hello"))
    one.store.store.append(one.only_session, assistant("From elsewhere"))
    one.append(KEY, answer("a1", "u1", said("Hi")))
    assert [made["uuid"] for made in one.load()] == ["u1", "a1"]
    assert one.texts() == ["Hello", "Hi"]
    assert one.texts(branches=True) == ["Hello", "From elsewhere", "Hi"]


# -- the store --------------------------------------------------------------------------


def test_a_store_that_is_given_stays_open_and_a_path_is_opened_by_the_first_use(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.db"
    lazy = SessionDBSessionStore(path)
    assert not path.exists()
    Called(lazy, "trio").append(KEY, prompt("u1", None, "Hello"))
    lazy.close()
    with pytest.raises(StoreClosedError):
        Called(lazy).load()
    with Store.open(path) as opened:
        with SessionDBSessionStore(opened) as shared:
            assert Called(shared).load() == [prompt("u1", None, "Hello")]
        assert opened.sessions().items
        with pytest.raises(InvalidInputError, match="durability"):
            SessionDBSessionStore(opened, durability="normal")

    async def use() -> None:
        async with AsyncStore.open(path) as awaited:
            async with SessionDBSessionStore(awaited) as shared:
                assert await shared.load(KEY)
            assert (await awaited.sessions()).items

    anyio.run(use)


def test_bad_input_is_named_and_nothing_is_written(one: Called) -> None:
    circle: dict[str, Any] = {"type": "x"}
    circle["self"] = circle
    for bad in ({"type": "x", "o": object()}, circle, "text", 5):
        with pytest.raises(InvalidInputError, match="entry"):
            one.append(KEY, prompt("u1", None, "Hello"), bad)
    for key in ({}, {"project_key": "p"}, {"project_key": 1, "session_id": "s"}):
        with pytest.raises(InvalidInputError, match="must be a string"):
            one.append(key, {"type": "x"})
    one.append(KEY)
    assert one.load() is None


def test_a_caller_who_is_cancelled_has_written_all_or_nothing(store: Called) -> None:
    batch = [prompt(f"u{number}", None, "Hello") for number in range(50)]

    async def cancelled() -> bool:
        with anyio.move_on_after(0.001) as scope:
            await store.store.append(KEY, batch)
        return bool(scope.cancelled_caught)

    store.run(cancelled)
    # It waited for its thread, so the outcome is known at once.
    assert store.load() in (None, batch)
    store.append(KEY, *batch)
    assert store.load() == batch


def test_without_the_sdk_the_class_names_the_extra() -> None:
    program = """
import sys
sys.modules["claude_agent_sdk"] = None
try:
    from sessiondb.adapters.claude_agent import SessionDBSessionStore
except ImportError as error:
    print(error, error.hint)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == (
        "SessionDBSessionStore needs claude-agent-sdk "
        "pip install 'sessiondb[claude-agent]'\n"
    )
