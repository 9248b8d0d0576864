"""Eight processes that meet at a file which does not exist yet: one makes it, all use it.

``SESSIONDB_LONG=1`` runs many rounds instead of a few.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType

import pytest
from processes import start

from sessiondb import Store

pytestmark = pytest.mark.slow

PROCESSES = 8
ROUNDS = 400 if os.environ.get("SESSIONDB_LONG") else 4

# Each line of input is a round: the place to open. The process stays, the file is always new.
_WORKER = """
    import sys
    from sessiondb import ALL, Store, user
    from sessiondb.location import init_local
    print("ready", flush=True)
    for line in sys.stdin:
        where, local = line.rstrip("\\n").split("\\t")
        try:
            if local:
                init_local(where)
            how = {"scope": "local", "cwd": where} if local else {"where": where, "parents": True}
            with Store.open(**how, durability="normal") as store:
                session = store.create_session(title="cold", directory=where)
                store.append(session, user("first words"))
                assert store.messages(session)[0].text == "first words"
                assert store.sessions(project=ALL).items
            print("ok", flush=True)
        except BaseException as error:
            print(type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[list[subprocess.Popen[str]]]:
    started = [start(_WORKER) for _ in range(PROCESSES)]
    for worker in started:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    yield started
    for worker in started:
        _, errors = worker.communicate(timeout=30)
        assert errors == ""


def _play(
    workers: list[subprocess.Popen[str]], place: Path, *, local: bool
) -> list[str]:
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{place}\t{'local' if local else ''}\n")
        worker.stdin.flush()
    return [worker.stdout.readline().strip() for worker in workers if worker.stdout]


def _count(path: Path) -> tuple[int, str]:
    with closing(sqlite3.connect(path)) as connection:
        sessions = connection.execute("SELECT count(*) FROM session_list").fetchone()[0]
        return sessions, connection.execute("PRAGMA integrity_check").fetchone()[0]


def test_eight_processes_on_one_fresh_file_make_no_error(
    workers: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        path = tmp_path / str(number) / "sessions.db"
        assert _play(workers, path, local=False) == ["ok"] * PROCESSES
        assert _count(path) == (PROCESSES, "ok")


def test_eight_processes_in_a_project_make_one_local_database_and_no_error(
    workers: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        project = tmp_path / str(number)
        (project / ".git" / "objects").mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        assert _play(workers, project, local=True) == ["ok"] * PROCESSES
        assert _count(project / ".sessiondb" / "sessions.db") == (PROCESSES, "ok")
        assert (project / ".sessiondb" / ".gitignore").read_text() == "/sessions.db*\n"


def test_a_file_that_is_filled_during_the_first_look_is_recognised(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    path.touch()

    def fill(frame: FrameType, event: str, arg: object) -> None:
        # The file is filled between the look at its identity and that at its content.
        if frame.f_code.co_name == "_is_empty":
            sys.settrace(None)
            program = "import sys, sessiondb; sessiondb.Store.open(sys.argv[1]).close()"
            subprocess.run([sys.executable, "-c", program, path], check=True)

    before = sys.gettrace()
    sys.settrace(fill)
    try:
        with Store.open(path) as store:
            assert store.sessions().items == ()
    finally:
        sys.settrace(before)
