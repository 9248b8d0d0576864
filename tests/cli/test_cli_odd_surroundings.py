"""Commands where the settings, the home or the current directory are not what they should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Ran, Run, Story

from sessiondb import Store, user
from sessiondb.errors import InvalidInputError
from sessiondb.location import load_config

#: Seconds; a command that waits for a pipe would wait for ever.
PATIENCE = 30
BAD_NAME = os.fsdecode(b"caf\xe9-\xff")


def run_in(folder: Path, *args: str, **env: str) -> Ran:
    """Run a command in a process of its own; *env* replaces variables."""
    done = subprocess.run(
        [sys.executable, "-m", "sessiondb", *args], cwd=folder, env={**os.environ, **env},
        capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return Ran(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))


def _deep(path: Path) -> None:
    path.write_text("a = " + "[" * 5_000 + "]" * 5_000)


def _large(path: Path) -> None:
    path.write_bytes(b"#" * (2 << 20))


def _bytes(path: Path) -> None:
    path.write_bytes(b"database = '\xff\xfe'")


def _nul(path: Path) -> None:
    path.write_bytes(b"a = \x00")


def _loop(path: Path) -> None:
    path.symlink_to(path)


CONFIGS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo, "folder": Path.mkdir, "deep": _deep, "large": _large, "bytes": _bytes,
    "nul": _nul, "loop": _loop,
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIGS)
def test_settings_that_cannot_be_read_are_one_line_that_names_them(
    sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    config = tmp_path / "config.toml"
    CONFIGS[kind](config)
    monkeypatch.setenv("SESSIONDB_CONFIG", str(config))
    for args in (["list"], ["stats"], ["import"]):
        ran = sessiondb(*args)
        assert (ran.code, ran.out) == (2, "")
        first, hint = ran.err.splitlines()
        assert first.startswith(f"sessiondb: cannot read {config}: ")
        assert "SESSIONDB_CONFIG" in hint
    with pytest.raises(InvalidInputError):
        load_config(config)
    assert sessiondb("--help").code == 0


@pytest.mark.slow
def test_a_pipe_as_settings_blocks_no_process(project: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert run_in(project, "list", SESSIONDB_CONFIG=str(pipe)).code == 2
    assert run_in(project, "list", SESSIONDB_CONFIG="/dev/null").code == 0


@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "SESSIONDB_CONFIG"])
def test_settings_are_optional_if_their_file_cannot_exist(
    sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    below = file if variable == "XDG_CONFIG_HOME" else file / "config.toml"
    monkeypatch.setenv(variable, str(below))
    for args in (["--global", "path"], ["list"], ["stats"], ["doctor"]):
        assert sessiondb(*args).code == 0, args


def test_without_a_usable_home_a_named_database_works(
    sessiondb: Run,
    database: Path,
    story: Story,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "file"
    file.touch()
    for home in ("", str(tmp_path / "missing"), str(file), "/dev/null/x"):
        monkeypatch.setenv("HOME", home)
        named = sessiondb("--db", str(database), "list")
        assert named.code == 0, (home, named.err)
    for home in (str(file), "/dev/null/x"):
        monkeypatch.setenv("HOME", home)
        ran = sessiondb("--global", "list")
        assert ran.code == 1, (home, ran.err)
        assert len(ran.err.splitlines()) == 2
        assert "defect" not in ran.err


def test_an_empty_home_is_not_the_root_of_the_file_system(
    sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "")
    ran = sessiondb("--global", "path")
    assert (ran.code, ran.out) == (3, "")
    assert "set HOME" in ran.err

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    ran = sessiondb("--global", "path")
    assert ran.out == f"{tmp_path}/sessiondb/sessions.db\n"


@pytest.fixture
def gone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory that was removed."""
    folder = project.parent / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


@pytest.mark.parametrize(
    "command", ["list", "show", "search x", "stats", "prompts", "trust"]
)
def test_a_current_directory_that_is_gone_is_named(
    sessiondb: Run, story: Story, gone: None, command: str
) -> None:
    ran = sessiondb(*command.split())
    assert (ran.code, ran.out) == (3, "")
    assert "gone" in ran.err.splitlines()[0]
    assert len(ran.err.splitlines()) == 2


def test_commands_that_need_no_current_directory_work_without_one(
    sessiondb: Run, story: Story, gone: None
) -> None:
    for command in ("list -a", f"show {story.parser}", "check", "stats -a", "import"):
        ran = sessiondb(*command.split())
        assert (ran.code, ran.err.count("sessiondb:")) == (0, 0), ran.err


@pytest.fixture
def badly_named(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory whose name is not UTF-8."""
    folder = tmp_path / BAD_NAME
    try:
        folder.mkdir()
    except OSError:  # pragma: no cover  macOS
        pytest.skip("the file system takes names in UTF-8 alone")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "command",
    ["list", "search lexer", "stats", "prompts", "list --json", "path", "doctor"],
)
def test_a_directory_whose_name_is_not_utf8_is_an_empty_project_at_first(
    sessiondb: Run, story: Story, badly_named: Path, command: str
) -> None:
    ran = sessiondb(*command.split())
    assert ran.code == 0, ran.err
    assert "defect" not in ran.err
    ran = sessiondb("show", "@")
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 2


@pytest.mark.slow
def test_sessions_of_a_directory_whose_name_is_not_utf8_are_found_there(
    sessiondb: Run, database: Path, badly_named: Path
) -> None:
    with Store.open(database) as store:
        session = store.create_session(title="Odd place")
        store.append(session, user("where is the lexer?"))
        store.add_prompt("where is the lexer?")
        assert store.session(session).directory.endswith(r"caf\xe9-\xff")
    assert sessiondb("list", "--json").json["sessions"][0]["id"] == session.id
    assert sessiondb("show", "@", "--json").json["session"]["title"] == "Odd place"
    assert len(sessiondb("search", "lexer", "--json").json["hits"]) == 1
    assert len(sessiondb("prompts", "--json").json["prompts"]) == 1
    assert sessiondb("fork", session.id).code == 0
    assert sessiondb("check").code == 0
    ran = run_in(badly_named, "list", "--json")
    assert {s["title"] for s in json.loads(ran.out)["sessions"]} == {
        "Odd place", "Odd place (fork #1)"
    }  # fmt: skip


def test_a_database_may_lie_in_a_directory_whose_name_is_not_utf8(
    sessiondb: Run, badly_named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    assert sessiondb("init", "--local").code == 0
    with Store.open() as store:
        store.append(store.create_session(title="Here"), user("x"))
    assert sessiondb("list", "--json").json["sessions"][0]["title"] == "Here"
    assert sessiondb("path", "--json").code == 0
    assert sessiondb("--db", "missing.db", "list").code == 3
    assert sessiondb("check").code == 0


@pytest.mark.slow
def test_bytes_that_are_not_utf8_on_a_real_command_line(
    project: Path, story: Story
) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    for args in (
        ["show", odd], ["list", "--title", odd], ["--db", odd, "list"], ["import", odd], [odd],
    ):  # fmt: skip
        ran = run_in(project, *args)
        assert ran.code in (2, 3), (args, ran.err)
        assert "Traceback" not in ran.err
        assert "defect" not in ran.err
        assert len(ran.err.splitlines()) == 2, ran.err
