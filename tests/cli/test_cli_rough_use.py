"""Commands in rough use: odd targets, closed streams, kills, full disks."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import Run, Story

from sessiondb import Store, user
from sessiondb.repository.sessions import ALL

pytestmark = pytest.mark.slow


def test_reading_makes_no_database_of_an_empty_file(
    sessiondb: Run, tmp_path: Path
) -> None:
    empty = tmp_path / "another"
    empty.touch()
    for args in (["list"], ["show"], ["check"], ["sql", "SELECT 1"], ["stats"]):
        ran = sessiondb("--db", str(empty), *args)
        assert (ran.code, ran.out) == (1, ""), args
        assert ran.err.startswith(f"sessiondb: {empty} is empty\n"), args
    assert empty.stat().st_size == 0
    assert os.listdir(tmp_path).count("another.lock") == 0


def test_writing_makes_a_database_of_an_empty_file(
    sessiondb: Run, tmp_path: Path
) -> None:
    empty = tmp_path / "new.db"
    empty.touch()
    made = sessiondb("--db", str(empty), "init", "--json")
    assert made.json == {"path": str(empty)}
    assert sessiondb("--db", str(empty), "list", "--json").json["sessions"] == []


def test_a_bundle_never_replaces_an_older_one(
    sessiondb: Run, store: Store, story: Story, tmp_path: Path
) -> None:
    bundle = tmp_path / "removed.jsonl"
    assert sessiondb("rm", story.other, "--bundle", str(bundle), "--yes").code == 0
    kept = bundle.read_bytes()
    ran = sessiondb("rm", story.parser, "--bundle", str(bundle), "--yes")
    assert (ran.code, len(ran.err.splitlines())) == (1, 2)
    assert "already exists" in ran.err
    assert bundle.read_bytes() == kept
    assert store.session(story.parser).title == "Fix the parser"


def test_a_bundle_is_a_file_that_can_be_read_back(
    sessiondb: Run,
    store: Store,
    story: Story,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = sessiondb("rm", story.parser, "--bundle", "-", "--yes")
    assert (ran.code, len(ran.err.splitlines())) == (2, 2)
    assert "a bundle must be a file" in ran.err
    assert store.session(story.parser).title == "Fix the parser"
    assert not (tmp_path / "-").exists()


def test_an_export_into_a_missing_folder_names_the_folder(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    ran = sessiondb(
        "export", story.parser, "--to", "jsonl", "-o", str(tmp_path / "no" / "x.jsonl")
    )
    assert ran.code == 3
    assert ran.err.splitlines() == [
        f"sessiondb: there is no folder {tmp_path / 'no'}", "  make it first"
    ]  # fmt: skip


def test_an_export_of_all_reports_what_it_leaves_out(
    sessiondb: Run, store: Store, story: Story, tmp_path: Path
) -> None:
    store.archive(story.other)
    to = ["-a", "--to", "jsonl", "--force", "-o", str(tmp_path / "all.jsonl")]
    ran = sessiondb("export", *to)
    assert ran.err == "left out: 1 subagent (--subagents), 1 archived (--archived)\n"
    assert "archived" not in sessiondb("export", *to, "--archived").err
    assert sessiondb("export", *to, "--archived", "--subagents").err == ""
    # A subagent exported with its parent is not left out.
    assert "subagent" not in sessiondb("export", *to, "--with-children").err


def test_an_export_of_named_sessions_leaves_nothing_out(
    sessiondb: Run, story: Story
) -> None:
    assert sessiondb("export", story.parser, "--to", "jsonl").err == ""


@pytest.mark.parametrize(
    "args",
    [
        ["list", "--cursor", "x"], ["show", "@~x"], ["fork", "@", "--at", "999"],
        ["stats", "--by", "nope"], ["export", "@", "--to", "nope"], ["import", "--from", "nope"],
        ["relink", "/nowhere/at/all", "/elsewhere"], ["label", "@", "999", "x"],
    ],
)  # fmt: skip
def test_every_error_is_two_lines(
    sessiondb: Run, story: Story, args: list[str]
) -> None:
    ran = sessiondb(*(story.parser if word == "@" else word for word in args))
    assert ran.code in (2, 3)
    assert len(ran.err.splitlines()) == 2
    assert "(effect " not in ran.err


def _shell(line: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m sessiondb {line}"
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False
    )


def test_closed_streams_are_not_a_defect(story: Story) -> None:
    ran = _shell("list -a >&-")
    assert (ran.returncode, ran.stderr) == (0, "")
    ran = _shell(f"rm {story.other} <&-")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "pass --yes" in ran.stderr


def test_interrupted_before_it_began_is_130_without_a_traceback(project: Path) -> None:
    code = (
        "import signal, sys\nfrom sessiondb import cli\n"
        # Python's handler raises at the first import that `run` makes.
        "class Finder:\n  def find_spec(*_):\n    signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\ncli.run()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "command", ["list -a --json", "show @ --full", "sql 'SELECT 1'"]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stdout_is_two_lines(
    story: Story, command: str, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    ran = _shell(f"{command} >/dev/full")
    assert ran.returncode == 1
    said = ["No space left on device", "free some disk space and try again"]
    if "--json" in command:
        error = json.loads(ran.stderr)["error"]
        assert [error["message"], error["hint"]] == said
    else:
        assert ran.stderr == f"sessiondb: {said[0]}\n  {said[1]}\n"


def _fill(store: Store) -> None:
    with store.effects() as fx:
        session = fx.create_session(title="large")
        for number in range(200):
            fx.append(session, user(f"{number} " + os.urandom(1500).hex()))


def _at_most_100_kb() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_full_disk_leaves_no_incomplete_file(
    process: Run, store: Store, tmp_path: Path
) -> None:
    _fill(store)
    out = tmp_path / "out"
    out.mkdir()
    for args in (
        ["export", "-a", "--to", "jsonl", "-o", str(out / "all.jsonl")],
        ["backup", str(out / "copy.db")],
    ):
        ran = process(*args, preexec_fn=_at_most_100_kb)
        assert ran.code == 1
        assert len(ran.err.splitlines()) == 2, ran.err
    assert [name for name in os.listdir(out) if not name.endswith(".lock")] == []
    assert process("backup", str(out / "copy.db")).code == 0


def test_a_killed_backup_leaves_nothing_that_has_its_name(
    process: Run, store: Store, tmp_path: Path
) -> None:
    _fill(store)
    out = tmp_path / "out"
    out.mkdir()
    copy = out / "copy.db"
    command = [sys.executable, "-m", "sessiondb", "backup", str(copy)]
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 30
    while not os.listdir(out) and time.monotonic() < until:
        time.sleep(0.0005)
    running.kill()
    running.wait()
    if not copy.exists():
        assert process("backup", str(copy)).code == 0
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM message").fetchone() == (200,)


def test_the_last_session_of_a_terminal_can_be_archived_and_compared(
    terminal: Run, store: Store, story: Story
) -> None:
    ran = terminal(
        f"show {story.parser}",
        f"show {story.fork}",
        "diff @~1 @",
        "archive @",
        width=100,
    )
    assert ran.code == 0
    assert "2 messages in common" in ran.out
    archived = [
        s.id for s in store.sessions(project=ALL, archived=True) if s.time_archived
    ]
    assert archived == [story.fork]


def test_without_a_prompt_history_a_hint_names_search(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb("prompts", "-a", "--json")
    assert (ran.code, ran.json["prompts"]) == (0, [])
    assert "`sessiondb search --help`" in ran.err
    assert (
        "`sessiondb search -a --role user -- chapter`"
        in sessiondb("prompts", "chapter").err
    )
    assert sessiondb("search", "-a", "--role", "user", "chapter", "--json").json["hits"]
    assert "`sessiondb search --help`" in sessiondb("prompts", "").err
