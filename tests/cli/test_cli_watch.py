from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import opencode_store as opencode
import pytest
from command_line import SAMPLE, Run
from samples import read_into

from sessiondb import Store
from sessiondb.cli import import_watch
from sessiondb.cli.import_watch import StoreChanges, UnfinishedFiles
from sessiondb.cli.sources import Sources
from sessiondb.formats.kit import sqlite as foreign
from sessiondb.model import Problem, SourceSession

pytestmark = pytest.mark.slow

Watch = Callable[..., "Watcher"]

#: The command line, with as many looks in a second as a test waits for.
OFTEN = """
import sessiondb.cli
from sessiondb.cli import import_watch, watchers
import_watch.PAUSE = watchers.PAUSE = 0.1
sessiondb.cli.run()
"""


class Watcher:
    """An `import --watch` that runs in a process of its own.

    With *often* it looks ten times as often as the command does.
    """

    def __init__(self, *args: str, begun: str = "Ctrl-C", often: bool = True) -> None:
        program = ["-c", OFTEN] if often else ["-m", "sessiondb"]
        command = [sys.executable, *program, "import", "--watch", *args]
        self.said = ""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        self.says(begun)

    def says(self, word: str) -> str:
        """Wait for the line of stderr with *word*."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said += line
            if word in line:
                return line
        raise AssertionError(f"it ended without saying {word!r}")

    def prints(self) -> str:
        """Wait for the next line of stdout."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def interrupt(self) -> tuple[int, str]:
        """Type Ctrl-C; return the exit code and the remaining output."""
        self._process.send_signal(signal.SIGINT)
        _, said = self._process.communicate(timeout=20)
        return self._process.returncode, said

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def watch(project: Path) -> Iterator[Watch]:
    running: list[Watcher] = []

    def start(*args: str, **how: Any) -> Watcher:
        running.append(Watcher(*args, **how))
        return running[-1]

    yield start
    for watcher in running:
        watcher.end()


def held(number: int) -> dict[str, object]:
    return opencode.session(
        number, opencode.user(10 * number, "Do it"), opencode.assistant(10 * number + 1)
    )


def write(agent: sqlite3.Connection, session: dict[str, object]) -> None:
    opencode.add_session(agent, session)
    agent.commit()


def test_new_messages_of_an_agent_are_imported_soon(
    watch: Watch, sessiondb: Run, tmp_path: Path
) -> None:
    path = opencode.sqlite_store(tmp_path / "agent" / "opencode.db", held(1))
    with closing(sqlite3.connect(path)) as agent:
        agent.execute("PRAGMA journal_mode=WAL")
        watcher = watch(str(path.parent), often=False)
        write(agent, held(2))
        assert "2 messages  Session 2" in watcher.says("imported")
        opencode.add_messages(
            agent, opencode.session(1, opencode.user(15, "And the tests?"))
        )
        agent.commit()
        assert "3 messages  Session 1" in watcher.says("updated")
        assert watcher.interrupt() == (130, "\n")
    assert len(sessiondb("list", "-a", "--json").json["sessions"]) == 2


def test_a_second_watcher_of_the_same_stores_waits_and_takes_over(
    watch: Watch, sessiondb: Run, tmp_path: Path
) -> None:
    path = opencode.sqlite_store(tmp_path / "agent" / "opencode.db", held(1))
    first = watch(str(path))
    second = watch(str(path), begun="is waiting for it to end")
    with closing(sqlite3.connect(path)) as agent:
        write(agent, held(2))
    assert "imported" in first.says("imported")
    first.end()
    second.says("Ctrl-C")
    with closing(sqlite3.connect(path)) as agent:
        write(agent, held(3))
    second.says("imported")
    assert second.interrupt()[0] == 130
    assert len(sessiondb("list", "-a", "--json").json["sessions"]) == 3


def test_a_watcher_that_waits_can_be_interrupted(watch: Watch, tmp_path: Path) -> None:
    path = opencode.sqlite_store(tmp_path / "agent" / "opencode.db", held(1))
    watch(str(path))
    second = watch(str(path), begun="is waiting for it to end")
    assert second.interrupt()[0] == 130


def test_watchers_of_other_stores_or_databases_work_at_once(
    watch: Watch, sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = opencode.sqlite_store(tmp_path / "agent" / "opencode.db", held(1))
    watch(str(path))
    watch(str(path.parent), begun="at other places").says("Ctrl-C")
    monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "other.db"))
    watch(str(path))


def test_watchers_that_cannot_lock_a_file_all_work(
    watch: Watch, sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = opencode.sqlite_store(tmp_path / "agent" / "opencode.db", held(1))
    watchers = [watch(str(path)), watch(str(path))]
    with closing(sqlite3.connect(path)) as agent:
        write(agent, held(2))
    deadline = time.monotonic() + 20
    while len(sessiondb("list", "-a", "--json").json["sessions"]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert [watcher.interrupt()[0] for watcher in watchers] == [130, 130]
    listed = sessiondb("list", "-a", "--json").json["sessions"]
    assert [session["message_count"] for session in listed] == [2, 2]
    assert sessiondb("check").code == 0


def test_a_store_may_appear_be_torn_and_vanish_while_it_is_watched(
    watch: Watch, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    watcher = watch("--json")
    assert json.loads(watcher.prints())["sessions"] == []
    store = home / ".local" / "share" / "opencode"
    new = shutil.copytree(SAMPLE, home / "new")
    message = next(new.rglob("message/*/*.json"))
    complete = message.read_text()
    message.write_text(complete[:20])
    store.parent.mkdir(parents=True)
    new.rename(store)
    report = json.loads(watcher.prints())
    assert report["imported"] == len(report["sessions"]) > 0
    assert report["problems"] == []
    next(store.rglob(message.name)).write_text(complete)
    report = json.loads(watcher.prints())
    assert report["updated"] == len(report["sessions"]) > 0
    assert report["problems"] == []
    shutil.rmtree(store)
    assert watcher.interrupt()[0] == 130


def read(sources: Sources | None) -> list[str | None]:
    """Return the titles of the sessions, None for each problem."""
    found = list(sources or ())
    assert all(isinstance(item, SourceSession | Problem) for item in found)
    return [item.title if isinstance(item, SourceSession) else None for item in found]


def linked(number: int) -> str:
    """Return a record of pi that follows the one before it."""
    record = {
        "type": "message", "id": f"{number:08x}", "parentId": f"{number - 1:08x}",
        "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"role": "user", "content": f"Word {number}", "timestamp": number},
    }  # fmt: skip
    return json.dumps(record) + "\n"


def growing(folder: Path) -> Path:
    """Write a log of pi whose program has not written the end of a line."""
    header = {
        "type": "session", "version": 3, "id": "p1", "cwd": "/tea",
        "timestamp": "2026-01-02T03:04:05.000Z",
    }  # fmt: skip
    folder.mkdir()
    log = folder / "2026-01-02T03-04-05-000Z_p1.jsonl"
    log.write_text(json.dumps(header) + "\n" + linked(1) + linked(2)[:40])
    return log


def test_a_line_that_is_still_being_written_is_no_problem_of_a_watcher(
    watch: Watch, tmp_path: Path
) -> None:
    log = growing(tmp_path / "agent")
    watcher = watch(str(log.parent))
    with log.open("a", buffering=1) as agent:
        rest = linked(2)[40:]
        for number in range(3, 7):
            line = linked(number)
            agent.write(rest + line[:40])
            agent.flush()
            watcher.says("updated")
            rest = line[40:]
        agent.write(rest)
    assert "6 messages" in watcher.says("updated")
    assert watcher.interrupt() == (130, "\n")
    assert "the file ends inside of it" not in watcher.said


def test_a_file_that_stays_half_written_is_reported_when_it_has_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_watch, "SETTLED", 0.05)
    log = growing(tmp_path / "agent")
    document = tmp_path / "document.json"
    document.write_text('{"info": ')
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        found = read_into(store, log.parent)
    torn = [item for item in found if isinstance(item, Problem)]
    assert "the file ends inside of it" in torn[0].why
    half = Problem(str(document), "breaks off after 2 messages")
    unfinished = UnfinishedFiles()
    assert unfinished.keep(torn[0])
    assert unfinished.keep(half)
    assert unfinished.keep(
        again := Problem(str(log), "the log has no header", is_torn=True)
    )
    assert not unfinished.keep(Problem(str(log), "another one", 1))
    assert unfinished.settled() == []
    document.write_text('{"info": {}}')
    time.sleep(0.06)
    # The next look reads the document again.
    assert unfinished.settled() == [*torn, again]
    assert unfinished.settled() == []


def test_only_a_store_that_changed_is_read(tmp_path: Path) -> None:
    one = opencode.sqlite_store(tmp_path / "one.db", held(1))
    opencode.sqlite_store(tmp_path / "two.db", held(2))
    changes = StoreChanges([tmp_path], None)
    assert changes.look() is None
    with closing(sqlite3.connect(one)) as agent:
        write(agent, held(3))
    assert read(changes.look()) == ["Session 1", "Session 3"]
    assert changes.look() is None


def test_the_store_of_a_project_that_appears_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = StoreChanges([], None, tmp_path)
    named = StoreChanges([], None)
    history = tmp_path / "tea" / ".aider.chat.history.md"
    history.parent.mkdir()
    history.write_text("# aider chat started at 2026-01-01 10:00:00\n\n#### Tea?  \n")
    assert changes.look() is None
    monkeypatch.setattr(import_watch, "SEARCH", 0)
    (session,) = changes.look() or ()
    assert isinstance(session, SourceSession)
    assert session.directory == str(history.parent)
    assert (changes.look(), named.look()) == (None, None)


def test_a_store_that_is_locked_is_read_when_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "BUSY_SECONDS", 0.01)
    path = opencode.sqlite_store(tmp_path / "opencode.db", held(1))
    opencode.sqlite_store(tmp_path / "other.db", held(2))
    changes = StoreChanges([tmp_path], None)
    changes.forget_all()
    with closing(sqlite3.connect(path)) as agent:
        agent.execute("BEGIN EXCLUSIVE")
        sources = changes.look()
        assert read(sources) == [None, "Session 2"]
        assert sources is not None
        changes.forget(sources.unread)
        agent.rollback()
    assert read(changes.look()) == ["Session 1"]


def test_watching_and_a_dry_run_exclude_each_other(sessiondb: Run) -> None:
    ran = sessiondb("import", "--watch", "--dry-run")
    assert (ran.code, ran.out) == (2, "")
