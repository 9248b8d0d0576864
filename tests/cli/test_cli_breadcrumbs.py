"""The session that oh-my-pi used last in a terminal is ``@`` there, too."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from command_line import Run
from samples_pi import asked, header, write

from sessiondb.cli import opening

#: Two terminals that tmux names; the tests type in the first one.
HERE, ELSEWHERE = "%3", "%4"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".omp" / "agent"


def used(
    home: Path, project: Path, number: int, *, ago: float = -60, **how: str
) -> str:
    """Write a session, and the breadcrumb of a terminal that used it; return its id."""
    head = header(number, cwd=str(project))
    log = write(home / "sessions" / "-project", head, asked(1, f"Tea {number}", None))
    left = [how.get("directory", str(project)), how.get("log", str(log)), ""]
    crumb = home / "terminal-sessions" / f"tmux-{how.get('pane', HERE)}"
    crumb.parent.mkdir(exist_ok=True)
    crumb.write_text("\n".join(left))
    os.utime(crumb, times=(time.time() - ago,) * 2)
    return str(head["id"])


@pytest.fixture(autouse=True)
def terminal_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type in a terminal, opened now, that is the first one of tmux."""
    device = tmp_path / "tty"
    device.touch()
    monkeypatch.setattr(opening, "terminal", lambda: f"{device}:1")
    monkeypatch.setenv("TMUX_PANE", HERE)


def last(sessiondb: Run) -> str:
    """Return the id at its source of the session that ``@`` is."""
    return str(sessiondb("show", "@", "--json").json["session"]["source_id"])


@pytest.fixture
def newest(project: Path, tmp_path: Path) -> str:
    """A session of pi in this directory that is newer than those of the tests."""
    head = {**header(9, cwd=str(project)), "timestamp": "2026-03-03T00:00:00.000Z"}
    write(tmp_path / ".pi/agent/sessions/--project--", head, asked(9, "New", None))
    return str(head["id"])


def test_it_is_the_session_used_last_in_this_terminal_and_directory(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    mine = used(home, project, 1)
    used(home, project, 2, pane=ELSEWHERE)
    sessiondb("import", str(home.parents[1]))
    assert last(sessiondb) == mine


def test_a_use_of_a_subagent_is_one_of_its_session(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    mine = used(home, project, 1)
    crumb = home / "terminal-sessions" / f"tmux-{HERE}"
    directory, log, _ = crumb.read_text().split("\n")
    below = Path(log).with_suffix("") / "Tea" / "Milk.jsonl"
    crumb.write_text(f"{directory}\n{below}\n")
    sessiondb("import", str(home.parents[1]))
    assert last(sessiondb) == mine


def test_without_a_use_the_newest_session_is_the_last_one(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    used(home, project, 1, pane=ELSEWHERE)
    used(home, project, 2, directory=str(home))
    sessiondb("import", str(home.parents[1]))
    assert last(sessiondb) == newest


@pytest.mark.parametrize("log", ["/gone/-project/gone.jsonl", "", "\udc80"])
def test_a_use_of_an_unknown_session_is_skipped(
    sessiondb: Run, home: Path, project: Path, newest: str, log: str
) -> None:
    used(home, project, 1)
    crumb = home / "terminal-sessions" / f"tmux-{HERE}"
    crumb.write_bytes(f"{project}\n{log}\n".encode("utf-8", "surrogateescape"))
    ran = sessiondb("import", str(home.parents[1]), "--json")
    assert (ran.code, ran.json["problems"]) == (0, [])
    assert last(sessiondb) == newest


def test_a_use_older_than_the_terminal_is_ignored(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    used(home, project, 1, ago=60)
    sessiondb("import", str(home.parents[1]))
    assert last(sessiondb) == newest


def test_a_newer_use_here_stays_until_theirs_is_newer(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    folder = str(home.parents[1])
    theirs = used(home, project, 1, ago=0)
    sessiondb("import", folder)
    sessiondb("show", newest)
    sessiondb("import", folder)
    assert last(sessiondb) == newest

    # Only the breadcrumb changed: the log of the session is as it was.
    crumb = home / "terminal-sessions" / f"tmux-{HERE}"
    os.utime(crumb, times=(time.time() + 60,) * 2)
    assert sessiondb("import", folder, "--json").json["updated"] == 0
    assert last(sessiondb) == theirs


def test_an_older_use_does_not_replace_a_newer_one_of_its_terminal(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    mine = used(home, project, 1)
    sessiondb("import", str(home))
    used(home, project, 2, ago=0)
    sessiondb("import", str(home))
    assert last(sessiondb) == mine


def test_a_use_follows_a_directory_that_was_moved(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    mine = used(home, project, 1)
    sessiondb("import", str(home.parents[1]))
    # The working directory is the moved one now.
    there = project.rename(project.with_name("moved"))
    assert sessiondb("relink", str(project), str(there)).code == 0
    assert last(sessiondb) == mine


def test_importing_twice_changes_nothing(
    sessiondb: Run, home: Path, project: Path, database: Path
) -> None:
    used(home, project, 1)
    sessiondb("import", str(home))
    before = database.read_bytes()
    sessiondb("import", str(home))
    sessiondb("import", str(home), "--dry-run")
    assert database.read_bytes() == before


def test_a_dry_run_records_no_use(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    sessiondb("import", str(home.parents[1]))
    used(home, project, 1, pane=ELSEWHERE)
    sessiondb("import", str(home))
    used(home, project, 1)
    sessiondb("import", str(home), "--dry-run")
    assert last(sessiondb) == newest


def test_a_log_that_is_imported_alone_has_its_uses_too(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    sessiondb("import", str(home.parents[1] / ".pi"))
    mine = used(home, project, 1)
    (log,) = home.rglob("*.jsonl")
    sessiondb("import", str(log))
    assert last(sessiondb) == mine


def test_a_session_that_was_removed_here_is_not_used(
    sessiondb: Run, home: Path, project: Path, newest: str
) -> None:
    mine = used(home, project, 1)
    folder = str(home.parents[1])
    sessiondb("import", folder)
    sessiondb("rm", mine, "--yes")
    sessiondb("import", folder)
    assert last(sessiondb) == newest


@pytest.mark.slow
def test_a_real_terminal_has_the_name_that_oh_my_pi_gives_it(
    terminal: Run,
    home: Path,
    project: Path,
    newest: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(project)
    monkeypatch.setenv("SESSIONDB_PATH", str(project.parent / "sessions.db"))
    mine = used(home, project, 1)
    ran = terminal(f"import {home.parents[1]}", "show @ --json", TMUX_PANE=HERE)
    assert mine in ran.out


def test_the_names_of_a_terminal_are_those_of_oh_my_pi(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(opening, "terminal", lambda: "/dev/pts/3:42")
    for name in ("TMUX_PANE", "ZELLIJ_PANE_ID", "TERM_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KITTY_WINDOW_ID", "5")
    monkeypatch.setenv("ZELLIJ_PANE_ID", "7")
    monkeypatch.setenv("ZELLIJ_SESSION_NAME", "a/b")
    names = opening.terminal_names() or {}
    assert names["/dev/pts/3:42"] == 0
    assert {"pts-3", "kitty-5", "zellij-a-b-7"} <= names.keys()
