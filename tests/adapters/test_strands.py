"""Strands Agents on sessiondb: agents continue on it as on Strands' own files."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed")

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import Connection, other
from sqlalchemy.dialects.sqlite import dialect
from strands import Agent
from strands.models import Model
from strands.session import (
    FileSessionManager,
    RepositorySessionManager,
    SnapshotSessionManager,
)
from strands.storage import InMemoryStorage
from strands.storage.storage import Storage
from strands.tools import tool
from strands.types.exceptions import SessionException, StorageError
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from sessiondb import ALL, AsyncStore, Store, StoreClosedError, user
from sessiondb.adapters.strands import (
    SessionDBRepository,
    SessionDBStorage,
    statements,
)
from sessiondb.errors import InvalidInputError
from sessiondb.formats import exporter, find
from sessiondb.maintenance import check, vacuum
from sessiondb.model import Document

QUICK = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[SessionDBRepository]:
    path = tmp_path / "strands.db"
    with SessionDBRepository(path, model="large", durability="normal") as opened:
        yield opened
        assert check(opened.store) == []


def new_agent(name: str = "a", **state: Any) -> SessionAgent:
    return SessionAgent(name, state, {"removed_message_count": 0}, {"model_state": {}})


def message(index: int, *blocks: Any, role: str = "user", **keys: Any) -> Any:
    content: Any = {"role": role, "content": list(blocks), **keys}
    return SessionMessage(content, index)


def words(index: int, text: str) -> SessionMessage:
    return message(index, {"text": text})


def begin(repository: Any, session: str = "s", agent: str = "a") -> None:
    repository.create_session(Session(session, SessionType.AGENT))
    repository.create_agent(session, new_agent(agent))


# -- real agents -----------------------------------------------------------------------


class ScriptedModel(Model):
    """Calls the tool once, then answers with what it returned."""

    def update_config(self, **model_config: Any) -> None:
        raise NotImplementedError

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        results = [
            block["toolResult"]["content"][0]["text"]
            for block in messages[-1]["content"]
            if "toolResult" in block
        ]
        yield {"messageStart": {"role": "assistant"}}
        if results:
            yield {"contentBlockStart": {"start": {}}}
            delta = {"text": f"The tests say: {results[0]}"}
        else:
            call = {"toolUseId": f"call-{len(messages)}", "name": "bash"}
            yield {"contentBlockStart": {"start": {"toolUse": call}}}
            delta = {"toolUse": {"input": json.dumps({"command": "pytest"})}}  # type: ignore[dict-item]
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if results else "tool_use"}}
        usage = {"inputTokens": 20, "outputTokens": 5, "totalTokens": 25}
        yield {
            "metadata": {
                "usage": {**usage, "cacheReadInputTokens": 8},
                "metrics": {"latencyMs": 1},
            }
        }


@tool
def bash(command: str) -> str:
    """Run a command in the shell."""
    assert command == "pytest"
    return "3 passed"


def agent_on(manager: Any, **options: Any) -> Agent:
    return Agent(
        ScriptedModel(),
        tools=[bash],
        session_manager=manager,
        callback_handler=None,
        **options,
    )


def test_the_conversation_of_an_agent_is_a_session_that_people_read(
    repository: SessionDBRepository,
) -> None:
    manager = RepositorySessionManager("terminal-1", repository)
    agent_on(manager, state={"plan": "test"})("Do the tests pass?")

    (session,) = repository.store.sessions(project=ALL, scope="terminal-1")
    assert (session.source, session.source_id) == ("strands", "terminal-1/default")
    assert (session.title, session.agent) == ("Do the tests pass?", "default")
    assert (session.directory, session.model_id) == (None, "large")
    assert session.metadata["strands"]["state"] == {"plan": "test"}
    messages = repository.store.messages(session)
    assert [(m.role, m.text) for m in messages] == [
        ("user", "Do the tests pass?"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "The tests say: 3 passed"),
    ]
    (call,) = messages[1].parts
    assert (call.tool, call.input, call.text) == (
        "bash",
        {"command": "pytest"},
        "3 passed",
    )
    assert call.status == "completed"
    assert (messages[1].tokens_input, messages[1].tokens_cache_read) == (12, 8)
    assert repository.store.unfinished() == []
    assert repository.store.search("passed").items
    (usage,) = repository.store.usage(by="model")
    assert (usage.key, usage.tokens.output) == ({"model": "large"}, 10)
    fork = repository.store.fork(session, at=messages[0])
    assert [m.text for m in repository.store.messages(fork)] == ["Do the tests pass?"]
    # A fork is a session of people, and not an agent's.
    assert len(repository.list_messages("terminal-1", "default")) == 4


def test_a_fresh_agent_continues_where_the_last_one_was(tmp_path: Path) -> None:
    for number in range(3):
        with SessionDBRepository(tmp_path / "a.db", durability="normal") as repository:
            manager = RepositorySessionManager("s", repository)
            agent = agent_on(manager)
            assert len(agent.messages) == 4 * number
            agent(f"Prompt {number}")
            stored = repository.list_messages("s", "default")
            assert [item.to_message() for item in stored] == agent.messages
    with Store.open(tmp_path / "a.db") as store:
        assert check(store) == []


def test_a_redacted_message_is_erased_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with SessionDBRepository(path, durability="normal") as repository:
        begin(repository)
        first = words(0, "my password is hunter2")
        repository.create_message("s", "a", first)
        repository.create_message("s", "a", words(1, "thanks"))
        created_at, first.created_at = first.created_at, "another time"
        # The message itself still has the text: an agent would have changed it, too.
        first.redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
        repository.update_message("s", "a", first)

        stored = repository.read_message("s", "a", 0)
        assert stored is not None
        assert first.created_at == stored.created_at == created_at
        assert stored.message == stored.redact_message == first.redact_message
        assert stored == repository.list_messages("s", "a")[0]
        assert repository.store.search("hunter2").items == ()
        (session,) = repository.store.sessions(project=ALL)
        assert session.title == "[redacted]"
        vacuum(repository.store)
        assert check(repository.store) == []
    assert b"hunter2" not in path.read_bytes()


# -- beside the files of Strands -------------------------------------------------------

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
_TEXTS = st.sampled_from(["", "a", "\0", "ü💡", "x" * 2000, "\x1b[0m"])
_NAMES = st.sampled_from(["", "c1", "c2", "bash", "\0", "x" * 300])


def _objects(**values: Any) -> Any:
    """Return objects with some of *values*, and sometimes one more."""
    return st.fixed_dictionaries({}, optional={**values, "more": _JSON})


_SOURCES = _objects(bytes=st.binary(max_size=3) | st.just(b"x" * 2000)) | _objects(
    location=_objects(uri=_TEXTS)
)
_MEDIA = _objects(format=_TEXTS, name=_TEXTS, source=_SOURCES | _JSON) | _JSON
_PLAIN_BLOCKS = _objects(text=_TEXTS) | _objects(json=_JSON) | _objects(image=_MEDIA)
_BLOCKS = st.lists(
    st.one_of(
        _objects(text=_TEXTS),
        st.fixed_dictionaries({"text": _TEXTS}),
        st.fixed_dictionaries(
            {
                "toolUse": st.fixed_dictionaries(
                    {"toolUseId": _NAMES, "name": _NAMES, "input": _JSON}
                )
            }
        ),
        st.fixed_dictionaries(
            {"toolUse": _objects(toolUseId=_NAMES, name=_NAMES, input=_JSON)}
        ),
        st.fixed_dictionaries(
            {
                "toolResult": _objects(
                    toolUseId=_NAMES,
                    status=st.sampled_from(["success", "error", "", None]),
                    content=st.lists(_PLAIN_BLOCKS, max_size=2),
                )
            }
        ),
        st.fixed_dictionaries(
            {
                "toolResult": st.fixed_dictionaries(
                    {
                        "toolUseId": st.sampled_from(["c1", "c2"]),
                        "status": st.sampled_from(["success", "error"]),
                        "content": st.tuples(
                            st.fixed_dictionaries({"text": _TEXTS})
                        ).map(list),
                    }
                )
            }
        ),
        _objects(
            reasoningContent=_objects(
                reasoningText=_objects(text=_TEXTS, signature=_JSON)
            )
        ),
        _objects(reasoningContent=_objects(redactedContent=st.binary(max_size=4))),
        _objects(image=_MEDIA, document=_MEDIA),
        _objects(cachePoint=_JSON, guardContent=_objects(text=_objects(text=_TEXTS))),
        _objects(
            citationsContent=_objects(content=st.lists(_PLAIN_BLOCKS, max_size=2))
        ),
    ),
    max_size=4,
)
_CONTENTS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system"]), "content": _BLOCKS},
    optional={
        "tracking_id": _TEXTS,
        "metadata": _objects(
            usage=_objects(inputTokens=_JSON, outputTokens=st.integers())
        ),
    },
)
_INDEXES = st.integers(0, 4)
_STEPS = st.one_of(
    st.tuples(st.just("append"), _CONTENTS),
    st.tuples(st.just("create"), st.sampled_from([0, 1, 2, 5, 7, -1]), _CONTENTS),
    st.tuples(st.just("update"), _INDEXES, _CONTENTS),
    st.tuples(st.just("redact"), _INDEXES, _CONTENTS),
    st.tuples(st.just("state"), _JSON, _JSON),
    st.tuples(
        st.just("restart"),
    ),
    st.tuples(
        st.just("recreate"),
    ),
)


def outcome_of(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except SessionException as error:
        return str(error)


@pytest.mark.slow
@settings(QUICK, max_examples=25)
@given(steps=st.lists(_STEPS, min_size=1, max_size=14))
def test_any_history_is_read_as_from_the_files_of_strands(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("strands")
    ours = SessionDBRepository(folder / "a.db", durability="normal")
    theirs = FileSessionManager("unused", str(folder / "files"))
    both: tuple[Any, Any] = (ours, theirs)
    agent = new_agent()

    def start() -> None:
        session = Session("s", SessionType.AGENT)
        for place in both:
            place.create_session(session)
            place.create_agent("s", agent)

    start()
    indexes: set[int] = set()
    for step in steps:
        match step:
            case ("append" | "create", *place, content):
                index = place[0] if place else max(indexes, default=-1) + 1
                if index in indexes:
                    with pytest.raises(SessionException, match="already exists"):
                        ours.create_message("s", "a", SessionMessage(content, index))
                    continue
                written = SessionMessage(content, index)
                for place in both:
                    place.create_message("s", "a", written)
                indexes.add(index)
            case ("update" | "redact" as kind, index, content):
                changed = SessionMessage(content, index)
                if kind == "redact":
                    changed.redact_message = content
                one, other_one = (
                    outcome_of(place.update_message, "s", "a", changed)
                    for place in both
                )
                assert one == other_one
            case ("state", state, internal):
                changed_agent = SessionAgent("a", {"s": state}, {}, {"i": internal})
                for place in both:
                    place.update_agent("s", changed_agent)
            case ("restart",):
                ours.close()
                ours = SessionDBRepository(folder / "a.db", durability="normal")
                both = (ours, theirs)
            case ("recreate",):
                for place in both:
                    place.delete_session("s")
                    assert place.read_session("s") is None
                    assert place.read_agent("s", "a") is None
                start()
                indexes = set()
        for offset, limit in ((0, None), (1, None), (3, 1), (2, 2), (20, None), (0, 0)):
            listed, listed_there = (
                place.list_messages("s", "a", limit, offset) for place in both
            )
            assert listed == listed_there
    for index in range(-1, 9):
        assert ours.read_message("s", "a", index) == theirs.read_message(
            "s", "a", index
        )
    assert ours.read_agent("s", "a") == theirs.read_agent("s", "a")
    assert ours.read_session("s") == theirs.read_session("s")
    assert check(ours.store) == []
    ours.close()


def test_values_that_no_column_takes_are_stored_all_the_same(
    repository: SessionDBRepository,
) -> None:
    begin(repository)
    odd = [
        {"toolUse": {"toolUseId": "c", "name": "f", "input": {"n": float("inf")}}},
        {"text": "x", "more": 1 << 70, "bytes": b"\0"},
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": None}}},
    ]
    repository.create_message("s", "a", message(0, *odd, role="assistant"))
    stored = repository.read_message("s", "a", 0)
    assert stored is not None
    assert stored.message["content"] == odd
    assert repository.store.search("x").items
    repository.create_message("s", "a", message(1, *odd[2:], role="assistant"))
    stored = repository.read_message("s", "a", 1)
    assert stored is not None
    assert stored.message["content"] == odd[2:]
    agent = new_agent(big=float("-inf"), image=b"\1")
    repository.update_agent("s", agent)
    assert repository.read_agent("s", "a") == agent
    repository.update_agent("s", new_agent())
    assert repository.read_agent("s", "a").state == {}  # type: ignore[union-attr]


def test_files_and_images_are_parts_with_their_content(
    repository: SessionDBRepository,
) -> None:
    begin(repository)
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 500}}}
    paper = {
        "document": {"format": "pdf", "name": "plan", "source": {"bytes": b"%PDF"}}
    }
    remote = {"video": {"format": "mp4", "source": {"location": {"uri": "s3://b/v"}}}}
    repository.create_message("s", "a", message(0, image, paper, remote))
    stored = repository.read_message("s", "a", 0)
    assert stored is not None
    assert stored.message["content"] == [image, paper, remote]
    (session,) = repository.store.sessions(project=ALL)
    (first,) = repository.store.messages(session)
    assert [part.type for part in first.parts] == ["file"] * 3
    assert [part.data.get("mime") for part in first.parts] == [
        "image/png", "application/pdf", "video/mp4",
    ]  # fmt: skip
    assert first.parts[0].data["content"] == b"\x89PNG" * 500
    assert (first.parts[1].data["filename"], first.parts[2].data["url"]) == (
        "plan",
        "s3://b/v",
    )


# -- names, conflicts, people ----------------------------------------------------------

HOSTILE = ["", "1", "0", "user-1", "a", "-a", "a b", " a", "@", "ü💡", "x" * 300, "x" * 299,
           "\\", "\x1f", "a\nb", "..", "ses_7SCRB6WNZZZZZZZZZZZZZZZZZZ", "a\u200bb", "\ud800"]  # fmt: skip


def test_no_id_is_taken_for_another_one(repository: SessionDBRepository) -> None:
    for number, session in enumerate(HOSTILE):
        repository.create_session(Session(session, SessionType.AGENT))
        for agent in (HOSTILE[number - 1], HOSTILE[number - 2]):
            repository.create_agent(session, new_agent(agent, at=[number, agent]))
            repository.create_message(session, agent, words(0, f"{number} {agent!r}"))
    assert repository.store.sessions(project=ALL, limit=50).items
    for number, session in enumerate(HOSTILE):
        assert repository.read_session(session).session_id == session  # type: ignore[union-attr]
        for agent in (HOSTILE[number - 1], HOSTILE[number - 2]):
            stored = repository.read_agent(session, agent)
            assert stored == new_agent_like(stored, agent, [number, agent])
            (first,) = repository.list_messages(session, agent)
            assert first.message["content"] == [{"text": f"{number} {agent!r}"}]
        assert repository.read_agent(session, "other") is None
    repository.delete_session("1")
    assert repository.read_session("user-1") is not None
    assert len(repository.list_messages("user-1", "0")) == 1


def new_agent_like(stored: Any, agent_id: str, place: Any) -> SessionAgent:
    agent = new_agent(agent_id, at=place)
    agent.created_at, agent.updated_at = stored.created_at, stored.updated_at
    return agent


@pytest.mark.parametrize("bad", ["a/b", "a/../b", "/", "../a"])
def test_an_id_with_a_path_separator_is_refused_as_by_strands(
    repository: SessionDBRepository, bad: str
) -> None:
    begin(repository)
    match = "id cannot contain path separators"
    with pytest.raises(ValueError, match=f"session_id={bad} | {match}"):
        repository.create_session(Session(bad, SessionType.AGENT))
    with pytest.raises(ValueError, match=match):
        repository.read_session(bad)
    with pytest.raises(ValueError, match=f"agent_id={bad} | {match}"):
        repository.read_agent("s", bad)
    with pytest.raises(ValueError, match=match):
        repository.create_agent("s", new_agent(bad))
    with pytest.raises(ValueError, match=match):
        repository.read_multi_agent("s", bad)


@pytest.mark.parametrize("bad", ["../../x", "1", None, [], 1.0])
def test_an_index_is_a_number(repository: SessionDBRepository, bad: Any) -> None:
    begin(repository)
    with pytest.raises(ValueError, match="message id must be an integer"):
        repository.read_message("s", "a", bad)
    with pytest.raises(ValueError, match="message id must be an integer"):
        repository.create_message("s", "a", words(bad, "x"))


def test_nothing_is_overwritten_and_nothing_is_made_of_what_is_missing(
    repository: SessionDBRepository,
) -> None:
    begin(repository)
    repository.create_message("s", "a", words(0, "x"))
    for call, text in (
        (lambda: begin(repository), "Session s already exists"),
        (lambda: repository.create_agent("s", new_agent()), "Agent a already exists"),
        (lambda: repository.create_agent("t", new_agent()), "Session t does not exist"),
        (
            lambda: repository.update_agent("s", new_agent("b")),
            "Agent b in session s does",
        ),
        (
            lambda: repository.create_message("s", "b", words(0, "")),
            "Agent b in session s",
        ),
        (
            lambda: repository.create_message("t", "b", words(0, "")),
            "Session t does not",
        ),
        # The same text at another time is another message.
        (
            lambda: repository.create_message("s", "a", words(0, "x")),
            "Message 0 already",
        ),
        (
            lambda: repository.update_message("s", "a", words(1, "")),
            "Message 1 does not",
        ),
        (
            lambda: repository.update_message("s", "b", words(0, "")),
            "Message 0 does not",
        ),
        (lambda: repository.list_messages("s", "b"), "Agent b in session s does not"),
        (lambda: repository.delete_session("t"), "Session t does not exist"),
    ):
        with pytest.raises(SessionException, match=text):
            call()
    assert repository.read_message("s", "b", 0) is None
    assert repository.read_message("s", "a", 1) is None
    assert len(repository.list_messages("s", "a")) == 1
    assert len(repository.store.sessions(project=ALL)) == 1


def test_an_agent_is_found_again_after_it_was_removed_and_made(tmp_path: Path) -> None:
    with (
        SessionDBRepository(tmp_path / "a.db", durability="normal") as one,
        SessionDBRepository(tmp_path / "a.db", durability="normal") as two,
    ):
        begin(one)
        one.create_message("s", "a", words(0, "old"))
        two.delete_session("s")
        with pytest.raises(SessionException, match="does not exist"):
            one.create_message("s", "a", words(1, "x"))
        begin(two)
        two.create_message("s", "a", words(0, "new"))
        one.create_message("s", "a", words(1, "more"))
        one.update_agent("s", new_agent(n=1))
        texts = [m.message["content"][0]["text"] for m in two.list_messages("s", "a")]
        assert texts == ["new", "more"]
        assert check(one.store) == []


def test_a_session_is_removed_with_an_agent_that_is_made_meanwhile(
    tmp_path: Path,
) -> None:
    with SessionDBRepository(tmp_path / "a.db", durability="normal") as repository:

        class LateAgent(SessionDBRepository):
            made = False

            def _agents_in(self, session_id: str) -> Any:
                agents = super()._agents_in(session_id)
                if not self.made:
                    self.made = True
                    repository.create_agent(session_id, new_agent("late"))
                return agents

        begin(repository)
        LateAgent(repository.store).delete_session("s")
        assert repository.store.sessions(project=ALL).items == ()
        assert repository.store.values("strands").items == ()


def test_a_session_of_another_program_is_none_of_strands(
    repository: SessionDBRepository,
) -> None:
    other_one = repository.store.open_session("s/a", source="langgraph", scope="s")
    begin(repository)
    repository.create_message("s", "a", words(0, "x"))
    repository.delete_session("s")
    (left,) = repository.store.sessions(project=ALL, empty=True)
    assert left.id == other_one.id


def test_what_people_write_and_remove_does_not_disturb_an_agent(
    repository: SessionDBRepository,
) -> None:
    begin(repository)
    for index in range(4):
        repository.create_message("s", "a", words(index, str(index)))
    (session,) = repository.store.sessions(project=ALL)
    repository.store.append(session, user("a note of a person"))
    repository.store.update_metadata(session, lambda old: {**(old or {}), "mine": 1})
    repository.create_message("s", "a", words(4, "4"))
    repository.update_agent("s", new_agent(n=1))
    assert repository.store.session(session).metadata["mine"] == 1

    def texts(offset: int = 0) -> list[str]:
        listed = repository.list_messages("s", "a", offset=offset)
        return [item.message["content"][0]["text"] for item in listed]

    assert texts() == ["0", "1", "2", "3", "4"]
    assert texts(3) == ["3", "4"]
    messages = repository.store.messages(session, branches=True)
    repository.store.remove(session, [messages[1]])
    assert (texts(), texts(1)) == (["0", "2", "3", "4"], ["2", "3", "4"])
    repository.create_message("s", "a", words(5, "5"))
    assert texts(3) == ["4", "5"]


def test_an_exported_session_continues_in_another_database(tmp_path: Path) -> None:
    with SessionDBRepository(tmp_path / "a.db", durability="normal") as repository:
        agent = agent_on(RepositorySessionManager("s", repository), state={"n": 1})
        agent("Do the tests pass?")
        (session,) = repository.store.sessions(project=ALL)
        jsonl = exporter("jsonl")
        (tmp_path / "logs").mkdir()
        for item in jsonl.write([repository.store.export(session, **jsonl.read)]):
            assert isinstance(item, Document)
            (tmp_path / "logs" / item.name).write_text("".join(item.chunks))
        listed = repository.list_messages("s", "default")
    with SessionDBRepository(tmp_path / "b.db", durability="normal") as repository:
        for store in find(str(tmp_path / "logs")):
            list(repository.store.ingest(store.read()))
        assert repository.list_messages("s", "default") == listed
        agent = agent_on(RepositorySessionManager("s", repository))
        assert agent.state.get("n") == 1
        agent("Are you sure?")
        repository.create_agent("s", new_agent("second"))
        with pytest.raises(SessionException, match="already exists"):
            repository.create_session(Session("s", SessionType.AGENT))
        assert len(repository.list_messages("s", "default")) == 8
        repository.delete_session("s")
        assert repository.store.sessions(project=ALL).items == ()
        assert check(repository.store) == []


def append_at_each_index(pipe: Connection, path: str, number: int) -> None:
    with SessionDBRepository(path) as repository:
        manager = RepositorySessionManager("s", repository)
        own = f"agent-{number}"
        repository.create_agent("s", new_agent(own))
        won = []
        for index in range(25):
            repository.create_message("s", own, words(index, f"{own} {index}"))
            try:
                repository.create_message("s", "shared", words(index, own))
            except SessionException as error:
                assert "already exists" in str(error)  # noqa: PT017
            else:
                won.append(index)
        pipe.send((manager.session_id, won))


@pytest.mark.slow
def test_of_four_processes_one_writes_an_index(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with SessionDBRepository(path) as repository:
        begin(repository, agent="shared")
        with (
            other(append_at_each_index, path, 0) as a,
            other(append_at_each_index, path, 1) as b,
            other(append_at_each_index, path, 2) as c,
            other(append_at_each_index, path, 3) as d,
        ):
            winners = [peer.hear()[1] for peer in (a, b, c, d)]
        assert sorted(index for won in winners for index in won) == list(range(25))
        shared = repository.list_messages("s", "shared")
        assert [item.message_id for item in shared] == list(range(25))
        for number, won in enumerate(winners):
            for index in won:
                text = shared[index].message["content"][0]["text"]
                assert text == f"agent-{number}"
            own = repository.list_messages("s", f"agent-{number}", offset=20)
            assert [item.message_id for item in own] == list(range(20, 25))
        assert check(repository.store) == []


# -- graphs and swarms, stores ---------------------------------------------------------


class Orchestrator:
    def __init__(self, name: str, state: Any) -> None:
        self.id, self.state = name, state

    def serialize_state(self) -> Any:
        return self.state


@settings(QUICK, max_examples=6)
@given(state=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), _JSON))
def test_the_state_of_a_graph_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, state: Any
) -> None:
    path = tmp_path_factory.mktemp("graphs") / "a.db"
    with SessionDBRepository(path, durability="normal") as repository:
        graph: Any = Orchestrator("g\0", state)
        with pytest.raises(SessionException, match="Session s does not exist"):
            repository.create_multi_agent("s", graph)
        repository.create_session(Session("s", SessionType.AGENT))
        with pytest.raises(SessionException, match="MultiAgent state"):
            repository.update_multi_agent("s", graph)
        repository.create_multi_agent("s", Orchestrator("g\0", {}))  # type: ignore[arg-type]
        assert repository.read_multi_agent("s", "g\0") == {}
        repository.update_multi_agent("s", graph)
        assert repository.read_multi_agent("s", "g\0") == state
        repository.delete_session("s")
        assert repository.read_multi_agent("s", "g\0") is None
        assert check(repository.store) == []


def test_a_store_that_was_given_is_not_closed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        with SessionDBRepository(store) as repository:
            begin(repository)
        assert len(store.sessions(project=ALL, empty=True)) == 1
        with pytest.raises(InvalidInputError):
            SessionDBRepository(store, durability="normal")

        async def use_storage() -> None:
            async with SessionDBStorage(store) as storage:
                await storage.write("k", b"v")

        asyncio.run(use_storage())
        assert len(store.values("strands").items) == 2
    with pytest.raises(StoreClosedError):
        repository.list_messages("s", "a")

    async def share() -> None:
        async with AsyncStore(tmp_path / "a.db") as shared:
            storage = SessionDBStorage(shared)
            sharing = SessionDBRepository(shared)
            assert await storage.read("k") == b"v"
            assert sharing.read_session("s") is not None
            sharing.close()

    asyncio.run(share())


# -- the storage -----------------------------------------------------------------------


def run_on(path: Path, work: Any) -> Any:
    async def run() -> Any:
        async with SessionDBStorage(path, durability="normal") as storage:
            return await work(storage)

    return asyncio.run(run())


_KEYS = st.lists(
    st.sampled_from(
        ["a", "b", "a b", "ü", "\U0010ffff", "\ud7ff", "..", "a\\", ".md", "", "A", "é"]
    ),
    max_size=4,
).map("/".join)
_DATA = st.sampled_from(
    [b"", b"\0\xff", b"dark mode", b"light MODE toggle", b"x" * 5000]
)
_STORAGE_STEPS = st.one_of(
    st.tuples(st.just("write"), _KEYS, _DATA),
    st.tuples(st.sampled_from(["read", "delete", "list"]), _KEYS),
    st.tuples(st.just("search"), st.sampled_from(["dark mode", "toggle b", "", "the"])),
)


async def storage_outcome(storage: Any, step: Any) -> Any:
    verb, *args = step
    try:
        return await getattr(storage, verb)(*args)
    except StorageError as error:
        return str(error)


@settings(QUICK, max_examples=30)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["", "a", "a/b/"]), _STORAGE_STEPS), max_size=25
    )
)
def test_any_use_of_a_storage_is_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    memory = InMemoryStorage()

    async def compare(storage: SessionDBStorage) -> None:
        for prefix, step in steps:
            ours, theirs = (
                place.namespace(prefix) if prefix else place
                for place in (storage, memory)
            )
            assert await storage_outcome(ours, step) == await storage_outcome(
                theirs, step
            )
        assert await storage.list() == await memory.list()
        assert isinstance(storage, Storage)

    run_on(tmp_path_factory.mktemp("storage") / "a.db", compare)


def test_a_storage_has_the_errors_of_strands(tmp_path: Path) -> None:
    async def misuse(storage: SessionDBStorage) -> None:
        for bad in ("k\0", "\ud800", "x" * 5000):
            with pytest.raises(StorageError):
                await storage.write(bad, b"")
            with pytest.raises(StorageError):
                await storage.read(bad)
        await storage.close()
        with pytest.raises(StorageError, match="Failed to write 'k'"):
            await storage.write("k", b"")
        with pytest.raises(StorageError, match="Failed to list"):
            await storage.list()
        with pytest.raises(StorageError):
            await storage.search("k")

    run_on(tmp_path / "a.db", misuse)
    missing = SessionDBStorage(tmp_path / "no" / "a.db")
    with pytest.raises(StorageError, match="Failed to read"):
        asyncio.run(missing.read("k"))


def test_a_search_strategy_indexes_and_searches(tmp_path: Path) -> None:
    class Strategy:
        def __init__(self) -> None:
            self.indexed: list[tuple[str, bytes]] = []

        async def index(self, storage: Any, key: str, data: bytes, **_: Any) -> None:
            if data == b"bad":
                raise ValueError(data)
            self.indexed.append((key, data))

        async def search(self, storage: Any, query: str, **_: Any) -> Any:
            return [query]

    async def use() -> None:
        strategy = Strategy()
        async with SessionDBStorage(
            tmp_path / "a.db", search_strategy=strategy
        ) as storage:
            await storage.namespace("n").write("/k", b"v")
            with pytest.raises(StorageError, match="Wrote 'b' but indexing failed"):
                await storage.write("b", b"bad")
            assert strategy.indexed == [("k", b"v")]
            assert await storage.search("q") == ["q"]
            assert await storage.list() == ["b", "n/k"]

    asyncio.run(use())


def test_an_agent_is_restored_from_its_snapshot(tmp_path: Path) -> None:
    storage = SessionDBStorage(tmp_path / "a.db", durability="normal")
    # Each call of an agent that is not awaited runs a loop of its own.
    agent = agent_on(SnapshotSessionManager("s", storage=storage), agent_id="a")
    agent("Do the tests pass?")
    again = agent_on(SnapshotSessionManager("s", storage=storage), agent_id="a")
    assert again.messages == agent.messages
    key = "session/s/scopes/agent/a/snapshots/snapshot_latest.json"
    assert asyncio.run(storage.list("session/")) == [key]
    asyncio.run(SnapshotSessionManager("s", storage=storage).delete_session())
    assert asyncio.run(storage.list()) == []
    asyncio.run(storage.close())


def test_a_storage_is_used_from_asyncio_and_trio(tmp_path: Path) -> None:
    storage = SessionDBStorage(tmp_path / "a.db", durability="normal")
    asyncio.run(storage.write("k", b"1"))
    assert trio.run(storage.read, "k") == b"1"
    trio.run(storage.write, "k", b"2")
    assert asyncio.run(storage.read("k")) == b"2"
    trio.run(storage.close)


def test_a_cancelled_write_is_complete_or_not_there(tmp_path: Path) -> None:
    async def cancel_writes(storage: SessionDBStorage) -> None:
        for number in range(12):
            task = asyncio.create_task(storage.write("k", b"%d" % number * 100_000))
            await asyncio.sleep(number / 4000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            stored = await storage.read("k")
            assert stored is None or stored in {
                b"%d" % written * 100_000 for written in range(number + 1)
            }
            if not task.cancelled():
                assert stored == b"%d" % number * 100_000
        await storage.write("k", b"last")
        assert await storage.read("k") == b"last"

    run_on(tmp_path / "a.db", cancel_writes)


def test_lists_read_an_index_of_what_they_list(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store.open(path).close()
    connection = sqlite3.connect(path)
    for statement, index in (
        (
            statements.keys_below("session/")[0],
            "USING COVERING INDEX sqlite_autoindex_key",
        ),
        (statements.keys_below("")[0], "USING COVERING INDEX sqlite_autoindex_key"),
        (statements.AGENTS_IN, "USING INDEX ix_session_scope"),
        (statements.AGENT, "USING INDEX sqlite_autoindex_session"),
    ):
        query = str(statement.compile(dialect=dialect()))
        rows = connection.execute(
            f"EXPLAIN QUERY PLAN {query}", ["x"] * query.count("?")
        )
        assert index in rows.fetchall()[0][3]
    connection.close()
