"""A database copied into another one: everything arrives, whatever interrupts it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from processes import environment

from sessiondb import (
    ALL,
    ConflictError,
    InvalidInputError,
    MessageDraft,
    Store,
    assistant,
    event,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.maintenance import check
from sessiondb.maintenance.copying import copy

Opened = Callable[[str], Store]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a database, each with a name of its own in `meta`."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(
            Store.open(tmp_path / name, durability="normal")
        )


def fill(store: Store, name: str) -> str:
    """Write a family with something in every table that belongs to sessions."""
    top = store.create_session(title=f"{name} top", directory=f"/{name}")
    store.append(top, user(f"{name} asks"))
    call = tool("bash", {"command": "x" * 1500}, call_id="c")
    store.append(top, assistant(text(f"{name} " * 600), call), model="m", cost=0.5)
    store.append(top, event("label", text("noted")))
    store.append(top, MessageDraft("tool", (tool_result("c", f"{name} result"),)))
    store.set_todos(top, ["todo"])
    store.label(top, 1, "start")
    store.add_prompt(f"{name} asks", session=top, directory=f"/{name}")
    fork = store.fork(top)
    store.append(fork, assistant(f"{name} {'y' * 2000}"), model="m", cost=0.25)
    helper = store.create_session(title="helper", parent=top, relation="subagent")
    store.append(helper, user("\0 and \udcff, which no text has"))
    store.set_value([name, "notes"], "a", {"deep": [1, 2.5, None, "ü"]})
    store.set_value([name], "b", b"\x00\xff", ttl=3_600_000)
    return top.id


@pytest.fixture
def source(opened: Opened) -> Store:
    store = opened("source.db")
    for number in range(4):
        fill(store, f"n{number}")
    gone = store.create_session(title="gone").id
    store.append(gone, user("deleted"))
    store.delete(gone)
    store.set_value(["n0"], "gone", 1)
    store.delete_value(["n0"], "gone")
    return store


def described(store: Store) -> list[Any]:
    """Return what programs read of every session, and of values."""
    sessions = list(
        store.sessions(project=ALL, subagents=True, archived=True, limit=100).items
    )
    read = [(item, list(store.messages(item.id, branches=True))) for item in sessions]
    return [
        sorted(read, key=lambda pair: pair[0].id),
        [store.todos(item.id) for item, _ in read],
        store.usage(by=("model", "session"), project=ALL, subagents=True),
        list(store.prompts(project=ALL).items),
        list(store.values([]).items),
    ]


def test_a_copy_has_everything_and_is_sound(source: Store, opened: Opened) -> None:
    to = opened("copy.db")
    seen: list[tuple[int, int]] = []
    done = copy(source, to, progress=lambda *number: seen.append(number))

    assert described(to) == described(source)
    assert check(to) == []
    assert (done.sessions, done.equal, done.left_out) == (done.rows["session"], 0, [])
    assert done.rows["message"] > 20
    assert seen[-1] == (done.sessions, done.sessions)
    found = {hit.session.id for hit in to.search("n2 result", project=ALL).items}
    assert (
        found
        == {hit.session.id for hit in source.search("n2 result", project=ALL).items}
        != set()
    )


def test_the_copy_goes_on_as_a_database_of_its_own(
    source: Store, opened: Opened
) -> None:
    to = opened("copy.db")
    copy(source, to)
    # A value that was deleted there has no revision of its own again, as in the source.
    handles = [store.set_value(["n0"], "gone", 1) for store in (source, to)]
    assert handles[0].revision == handles[1].revision > 1

    session = to.sessions(project=ALL).items[0].id
    revision = to.session(session).revision
    to.append(session, user("only in the copy"))
    assert to.session(session).revision == revision + 1
    assert source.session(session).revision == revision
    assert to.search("only", project=ALL).items
    assert not source.search("only", project=ALL).items


def test_what_is_written_into_the_source_meanwhile_is_not_in_the_copy(
    source: Store, opened: Opened
) -> None:
    to = opened("copy.db")
    before = described(source)
    copy(source, to, progress=lambda *_: fill(source, "late"))
    assert described(to) == before != described(source)


class StopError(Exception):
    """Interrupts a copy."""


def test_an_interrupted_copy_is_completed_by_another_one(
    source: Store, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = opened("copy.db")
    monkeypatch.setattr("sessiondb.maintenance.copying._SESSIONS", 2)

    def stop(done: int, _: int) -> None:
        if done == 4:
            raise StopError

    with pytest.raises(StopError):
        copy(source, to, progress=stop)
    # What was copied has changed, has grown and is gone since.
    sessions = source.sessions(project=ALL, subagents=True, limit=100).items
    source.append(sessions[-1].id, user("later"))
    source.set_title(sessions[0].id, "another title")
    source.delete(sessions[-1].id)
    source.reap()
    source.delete_value(["n0"], "b")

    done = copy(source, to)
    assert done.equal > 0
    assert described(to) == described(source)
    assert check(to) == []


@pytest.mark.parametrize("begun", [False, True])
def test_a_database_with_sessions_of_its_own_is_not_overwritten(
    source: Store, opened: Opened, begun: bool
) -> None:
    to = opened("copy.db")
    if begun:
        copy(source, to)
    else:
        to.create_session(title="mine")
    before = described(to)
    with pytest.raises(ConflictError, match="has sessions of its own") as caught:
        copy(source, to)
    assert "sessiondb import" in str(caught.value.hint)
    assert described(to) == before


def test_a_copy_that_was_begun_of_another_database_is_not_mixed(
    source: Store, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, other = opened("copy.db"), opened("other.db")
    fill(other, "other")

    def stop(*_: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        copy(source, to, progress=stop)
    with pytest.raises(ConflictError, match="unfinished copy of another database"):
        copy(other, to)


def test_a_database_is_not_copied_into_itself(source: Store, opened: Opened) -> None:
    with pytest.raises(InvalidInputError, match="cannot be copied into itself"):
        copy(source, source)


@pytest.mark.slow
def test_a_copy_that_is_killed_is_completed_by_the_same_command(
    source: Store, opened: Opened, tmp_path: Path
) -> None:
    for number in range(60):
        fill(source, f"more{number}")
    place = tmp_path / "killed.db"
    command = [sys.executable, "-m", "sessiondb", "copy", str(source.path), str(place)]
    for _ in range(3):
        started = subprocess.Popen(
            command, env=environment(), stderr=subprocess.DEVNULL
        )
        time.sleep(0.6)
        started.send_signal(signal.SIGKILL)
        started.wait()
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False
    )
    if "has sessions of its own" not in done.stderr:  # the last kill came too late
        assert done.returncode == 0, done.stderr
    with Store.open(place) as to:
        assert described(to) == described(source)
        assert check(to) == []


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sessiondb", *words]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_command_says_what_it_did_and_where(
    source: Store, opened: Opened, tmp_path: Path
) -> None:
    place = tmp_path / "copy.db"
    done = typed("copy", str(source.path), str(place))
    assert (done.returncode, done.stdout) == (0, f"{place}\n")
    assert done.stderr.endswith("sessions copied; all rows are equal\n")
    with Store.open(place) as to:
        assert described(to) == described(source)

    again = typed("copy", str(source.path), str(place))
    assert again.returncode == 1
    assert "the target has sessions of its own" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["copy", "missing.db", "to.db"], 3, "no database at"),
        (
            ["--db", "a.db", "copy", "b.db", "c.db"],
            2,
            "copy names both databases itself",
        ),
        (
            ["copy", "postgresql://a:secret@127.0.0.1:1/s", "to.db"],
            5,
            "a:***@127.0.0.1",
        ),
    ],
)
def test_a_wrong_command_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    message: str,
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    done = typed(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "secret" not in done.stderr
    assert list(tmp_path.iterdir()) == []
