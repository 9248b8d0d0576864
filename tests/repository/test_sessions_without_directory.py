"""Sessions without a directory: those of a server, and those whose source states none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import processes
import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in

from sessiondb import (
    HERE,
    AsyncStore,
    NotFoundError,
    Session,
    Store,
    assistant,
    tool,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.maintenance import check

pytestmark = pytest.mark.slow


def place_of(session: Session) -> tuple[str | None, str | None]:
    return session.directory, session.project_id


NOWHERE = (None, None)


@pytest.fixture
def server(store: Store) -> str:
    """A session of a server: None says that it has no directory."""
    with store.effects() as fx:
        session = fx.create_session(directory=None, title="Of a server")
        fx.append(session, user("word"))
        call = tool("edit", {"path": "a.py"}, call_id="c", output="done")
        fx.append(session, assistant("word", call), cost=1.0)
    return session.id


def test_none_is_no_directory_and_no_project(store: Store, server: str) -> None:
    assert place_of(store.session(server)) == NOWHERE
    assert store.projects() == []
    opened = store.open_session("thread-1", directory=None)
    assert place_of(store.session(opened)) == NOWHERE
    # An argument that is not stated is the current directory, as ever.
    here = store.session(store.create_session())
    assert here.directory is not None
    assert here.directory.endswith(Path.cwd().name)
    assert here.project_id is not None


def test_forks_and_subagents_are_where_their_session_is_unless_stated(
    store: Store, server: str, tmp_path: Path
) -> None:
    fork, subagent = store.fork(server), store.create_session(parent=server)
    assert place_of(store.session(fork)) == NOWHERE
    assert place_of(store.session(subagent)) == NOWHERE
    placed = store.fork(server, directory=str(tmp_path))
    assert store.session(placed).directory == str(tmp_path)
    parent = store.create_session(directory=str(tmp_path))
    below = store.create_session(parent=parent, directory=None)
    assert place_of(store.session(below)) == NOWHERE


def test_a_session_gets_a_directory_and_loses_it(
    store: Store, server: str, tmp_path: Path
) -> None:
    store.set_directory(server, str(tmp_path))
    session = store.session(server)
    assert session.directory == str(tmp_path)
    assert [row.key for row in store.usage(by="project")] == [
        {"project": str(tmp_path)}
    ]
    store.set_directory(server, None)
    assert place_of(store.session(server)) == NOWHERE
    assert [row.key for row in store.usage(by="project")] == [{"project": None}]


def test_it_is_found_among_all_projects_and_in_none(
    store: Store, server: str, tmp_path: Path
) -> None:
    assert [item.id for item in store.sessions()] == [server]
    for order in ("created", "cost", "size"):
        assert len(store.sessions(order=order)) == 1
    assert len(store.search("word")) == 1
    assert len(store.search(file="a.py")) == 1
    for one in (HERE, tmp_path, "/"):
        assert len(store.sessions(project=one)) == 0
        assert len(store.search("word", project=one)) == 0
        assert store.usage(project=one) == []
    # What was used last here may be of anywhere.
    with pytest.raises(NotFoundError):
        store.session("@")
    store.note_used(server, "tty")
    assert store.session("@").id == server


@pytest.mark.parametrize(
    "by", ["project", ("project", "tool"), ("day", "project"), ("session", "project")]
)
def test_sums_by_project_have_the_group_none(
    store: Store, server: str, by: Any
) -> None:
    elsewhere = store.create_session(directory="/")
    store.append(elsewhere, assistant("x"), cost=2.0)
    rows = store.usage(by=by)
    costs = {row.key["project"]: row.cost for row in rows}
    assert costs == {None: 1.0, "/": 2.0}
    (row,) = [row for row in rows if row.key["project"] is None]
    (record,) = store.usage_records(row.key)
    assert record.session_id == server
    # The sums by hour, and those of messages that wait for them, agree.
    assert check(store) == []


def test_a_prompt_of_it_has_no_directory_either(store: Store, server: str) -> None:
    store.add_prompt("word", session=server)
    (prompt,) = store.prompts()
    assert (prompt.directory, prompt.project_id) == (None, None)


def test_slugs_are_unique_among_sessions_without_a_project(store: Store) -> None:
    with store.effects() as fx:
        for _ in range(400):
            fx.create_session(directory=None)
    slugs = [item.slug for item in store.sessions(empty=True, limit=1000)]
    assert len(set(slugs)) == len(slugs) == 400


def test_a_source_that_states_no_directory_has_none(store: Store) -> None:
    (taken,) = take_in(store, session_of("s", said("a"), directory=""))
    assert place_of(store.session(taken.id)) == NOWHERE
    assert store.projects() == []
    # Nothing more is known at the next import.
    take_in(store, session_of("s", said("a"), said("b"), directory=""))
    assert place_of(store.session(taken.id)) == NOWHERE


def test_the_first_directory_that_a_source_states_replaces_none(store: Store) -> None:
    (taken,) = take_in(store, session_of("s", said("a", role="user"), directory=""))
    store.add_prompt("typed", session=taken.id)
    take_in(
        store, session_of("s", said("a", role="user"), said("b"), directory="/there")
    )
    session = store.session(taken.id)
    assert session.directory == "/there"
    assert [item.worktree for item in store.projects()] == ["/there"]
    assert {item.directory for item in store.prompts()} == {"/there"}
    assert check(store) == []


def test_a_root_directory_that_is_stated_is_a_directory(store: Store) -> None:
    (taken,) = take_in(store, session_of("s", said("a"), directory="/"))
    assert store.session(taken.id).directory == "/"


@pytest.mark.parametrize("form", ["jsonl", "claude", "codex", "pi", "goose", "opencode",
                                  "opencode2", "aider", "event-log", "markdown", "html"])  # fmt: skip
def test_every_exporter_writes_it(
    store: Store, server: str, form: str, tmp_path: Path
) -> None:
    target = exporter(form)
    export = store.export(server, **target.read)
    for number, item in enumerate(target.write([export], detail=target.details[0])):
        if hasattr(item, "chunks"):
            content = b"".join(item.encoded())
            assert content
            file = tmp_path / f"{number}"
            file.write_bytes(content)


@pytest.mark.needs("is_file", "a database of a server is not imported")
def test_a_log_and_a_database_carry_it(
    store: Store,
    backend: Backend,
    server: str,
    opened: Callable[[str], Store],
    tmp_path: Path,
) -> None:
    jsonl = exporter("jsonl")
    (document,) = jsonl.write([store.export(server, **jsonl.read)])
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(document.encoded()))
    assert b'"directory":null' in log.read_bytes()
    for number, place in enumerate((log, backend.place_of(store))):
        other = opened(f"other {number}")
        for found in find(place):
            assert [getattr(r, "outcome", r) for r in other.ingest(found.read())] == [
                "imported"
            ]
        assert place_of(other.session(server)) == NOWHERE
        assert other.projects() == []
        assert other.messages(server) == store.messages(server)


async def test_an_async_store_and_another_process_agree(
    backend: Backend, tmp_path: Path
) -> None:
    place = backend.fresh()
    program = (
        "import sys; from sessiondb import Store\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    (session,) = store.sessions(empty=True)\n"
        "    print(session.directory, session.project_id)\n"
        "    store.set_directory(session.id, sys.argv[2])\n"
    )
    async with AsyncStore.open(place, durability="normal") as store:
        session = await store.create_session(directory=None)
        ran = processes.run(program, place, tmp_path)
        assert processes.said(ran) == "None None"
        assert (await store.session(session)).directory == str(tmp_path)
        await store.set_directory(session, None)
        assert place_of(await store.session(session)) == NOWHERE


@pytest.mark.parametrize("form", ["claude", "codex", "pi", "goose", "opencode"])
def test_what_another_program_was_given_returns_without_a_directory(
    store: Store, server: str, form: str, tmp_path: Path
) -> None:
    target = exporter(form)
    export = store.export(server, **target.read)
    for item in target.write([export], detail=target.details[0]):
        if hasattr(item, "chunks"):
            file = tmp_path / item.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"".join(item.encoded()))
    before = store.session(server)
    taken = [r for found in find(tmp_path) for r in store.ingest(found.read())]
    assert [getattr(result, "id", result) for result in taken] == [server]
    assert place_of(store.session(server)) == NOWHERE
    assert store.session(server).message_count == before.message_count
