"""Two processes, one file: a third one that holds the write lock delays them, and no more."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from processes import start

from sessiondb import ALL, AsyncStore, Store, user
from sessiondb.cli.app import app
from sessiondb.engine.sqlite.files import creation_lock
from sessiondb.errors import BusyError

pytestmark = pytest.mark.slow

_HOLDER = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    for line in sys.stdin:
        connection.execute(line)
        print("done", flush=True)
"""
Hold = Callable[[str], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        store.append(store.create_session(title="mine"), user("Hello"))
    return path


@pytest.fixture
def hold(path: Path) -> Iterator[Hold]:
    """Return a function that runs a statement in another process with the database open."""
    other: subprocess.Popen[str] = start(_HOLDER, path)

    def run(statement: str) -> None:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(f"{statement}\n")
        other.stdin.flush()
        assert other.stdout.readline() == "done\n"

    yield run
    other.kill()
    other.communicate()


def test_a_held_lock_raises_busy_after_the_timeout_and_reads_continue(
    path: Path, hold: Hold
) -> None:
    with Store.open(path, busy_timeout=0.3) as store:
        session = store.sessions(project=ALL).items[0]
        hold("BEGIN IMMEDIATE")
        begun = time.monotonic()
        with pytest.raises(BusyError) as raised:
            store.append(session, user("too early"))
        assert 0.25 < time.monotonic() - begun < 3
        error = raised.value
        assert isinstance(error, TimeoutError)
        assert (error.retryable, error.exit_code) == (True, 5)
        assert "try again" in (error.hint or "")
        for write in (
            lambda: store.fork(session),
            lambda: store.delete(session),
            lambda: store.stream(session).__enter__(),
            lambda: store.recover(session),
        ):
            with pytest.raises(BusyError):
                write()
        assert [message.text for message in store.messages(session)] == ["Hello"]
        hold("ROLLBACK")
        store.append(session, user("in time"))
        assert [message.text for message in store.messages(session)] == [
            "Hello",
            "in time",
        ]


def test_a_unit_that_was_busy_can_be_tried_again_and_is_written_once(
    path: Path, hold: Hold
) -> None:
    with Store.open(path, busy_timeout=0.05) as store:
        session = store.sessions(project=ALL).items[0]
        hold("BEGIN IMMEDIATE")
        with pytest.raises(BusyError), store.effects() as unit:
            unit.append(session, user("once"))
            unit.set_title(session, "renamed")
        hold("ROLLBACK")
        store.commit(unit)
        store.commit(unit)
        assert [message.text for message in store.messages(session)] == [
            "Hello",
            "once",
        ]
        assert store.session(session).title == "renamed"


def test_appends_wait_for_a_held_lock_without_blocking_the_loop(
    path: Path, hold: Hold
) -> None:
    async def wait() -> None:
        async with AsyncStore.open(path, busy_timeout=10) as store:
            session = (await store.sessions(project=ALL)).items[0]
            hold("BEGIN IMMEDIATE")
            waiting = [
                asyncio.ensure_future(store.append(session, user(n))) for n in "abc"
            ]
            await asyncio.sleep(0.2)
            assert not any(task.done() for task in waiting)
            assert len(await store.messages(session)) == 1, "no loop waits for the lock"
            hold("COMMIT")
            await asyncio.gather(*waiting)
            texts = [message.text for message in await store.messages(session)]
            assert texts == ["Hello", "a", "b", "c"]

    asyncio.run(wait())


def test_opening_a_current_file_needs_no_lock(path: Path, hold: Hold) -> None:
    hold("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with Store.open(path) as store:
        assert len(store.sessions(project=ALL).items) == 1
    assert time.monotonic() - begun < 2


def test_while_another_process_makes_the_database_opening_is_busy(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new.db"
    path.touch(0o600)
    with creation_lock(path, 0), pytest.raises(BusyError, match="held"):
        Store.open(path, busy_timeout=0.1)
    Store.open(path, busy_timeout=0.1).close()


def test_a_file_locked_for_itself_by_another_program_is_busy(
    path: Path, hold: Hold
) -> None:
    hold("PRAGMA locking_mode=EXCLUSIVE")
    hold("BEGIN IMMEDIATE")
    hold("UPDATE session SET title = title")
    hold("COMMIT")
    begun = time.monotonic()
    with pytest.raises(BusyError):
        Store.open(path, busy_timeout=0.3)
    assert time.monotonic() - begun < 2


def test_a_command_ends_with_code_5_and_says_what_to_do(
    path: Path, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = inspect.unwrap(Store.open.__func__)  # type: ignore[attr-defined]
    monkeypatch.setitem(opening.__kwdefaults__, "busy_timeout", 0.1)
    with Store.open(path) as store:
        session = store.sessions(project=ALL).items[0].id
    hold("PRAGMA locking_mode=EXCLUSIVE")
    hold("BEGIN EXCLUSIVE")
    ran = CliRunner().invoke(app, ["--db", str(path), "title", session, "busy"])
    assert ran.exit_code == 5
    assert "try again" in ran.stderr
