from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, Story

from sessiondb import Store, __version__, user
from sessiondb.cli import main
from sessiondb.cli.app import COMMANDS, app

#: Commands without output of sessiondb's own: nothing, or another format.
WITHOUT_JSON = {"trust", "completion"}


def test_help_names_every_command(sessiondb: Run) -> None:
    helped = sessiondb("--help")
    assert helped.code == 0
    assert all(f"\n  {name} " in helped.out for name in COMMANDS)


def test_every_command_has_a_help_text(sessiondb: Run) -> None:
    for name in COMMANDS:
        helped = sessiondb(name, "-h")
        assert helped.code == 0
        assert f"Usage: sessiondb {name}" in helped.out
        assert "--json" in helped.out or name in WITHOUT_JSON, name


def test_the_version_option_prints_the_version(sessiondb: Run) -> None:
    assert sessiondb("--version").out == f"sessiondb {__version__}\n"


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["path"], ["list", "--help"]]
)
def test_commands_without_a_database_do_not_load_sqlalchemy(
    project: Path, args: list[str]
) -> None:
    code = (
        "import sys\nfrom sessiondb.cli import main\n"
        f"sys.argv = ['sessiondb', *{args!r}]\n"
        "try:\n    main()\nfinally:\n"
        "    print(*{'sqlalchemy', 'alembic', 'sqlite3'} & set(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout
    assert ran.stderr == "\n"


def test_the_module_is_the_command(process: Run) -> None:
    assert process("--version").out == f"sessiondb {__version__}\n"


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_a_command_without_its_extra_names_the_installation_in_one_line(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert "sessiondb[cli]" in str(ended.value.code)
    assert "\n" not in str(ended.value.code)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("lits",), "no command 'lits'; is it list?"),
        (("xyzzy",), "no command 'xyzzy'"),
        (("list", "--no-such"), "No such option '--no-such'\n"),
        (("list", "--archive"), "No such option '--archive'; is it --archived?\n"),
        (("--db", "x.db", "--global", "list"), "--db and --global exclude each other"),
        (("--color", "sometimes", "list"), "--color"),
    ],
)
def test_bad_usage_is_exit_2(sessiondb: Run, args: tuple[str, ...], said: str) -> None:
    ran = sessiondb(*args)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_an_error_is_two_lines_the_failure_and_a_hint(sessiondb: Run) -> None:
    ran = sessiondb("show", "nobody")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        "sessiondb: no session is named 'nobody'\n  `sessiondb list -a` shows every session\n"
    )


def test_a_part_of_a_title_is_listed_by_the_hint(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title="The lexer reads one token too far")
    store.append(session, user("Hello"))
    for part in ("lexer reads", "The lexer reads one…"):
        ran = sessiondb("show", part)
        hint = ran.err.splitlines()[1].strip()
        assert (ran.code, hint.endswith("shows titles that contain it")) == (3, True)
        _, *listing = shlex.split(hint.split("`")[1])
        (listed,) = sessiondb(*listing, "--json").json["sessions"]
        assert listed["id"] == session.id


def test_verbose_shows_where_an_error_comes_from(sessiondb: Run) -> None:
    ran = sessiondb("-v", "show", "nobody")
    assert ran.code == 3
    assert "Traceback" in ran.err
    assert ran.err.endswith("\n  `sessiondb list -a` shows every session\n")


def test_a_defect_is_reported_without_a_traceback(
    sessiondb: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.store.Store.open", lambda *_, **__: 1 / 0)
    ran = sessiondb("list")
    assert ran.code == 1
    assert ran.err.startswith("sessiondb: ZeroDivisionError: ")
    assert "Traceback" not in ran.err


def test_a_database_that_is_named_and_missing_is_not_made_by_reading(
    sessiondb: Run, project: Path
) -> None:
    ran = sessiondb("--db", "typo.db", "list")
    assert ran.code == 3
    assert list(project.iterdir()) == []


def test_a_file_that_is_not_a_database_is_left_alone(
    sessiondb: Run, project: Path
) -> None:
    (project / "notes.db").write_bytes(b"remember the milk" * 100)
    ran = sessiondb("--db", "notes.db", "list")
    assert ran.code == 1
    assert (project / "notes.db").read_bytes() == b"remember the milk" * 100


def test_interrupted_is_130(sessiondb: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sessiondb.store.Store.open", interrupt)
    assert sessiondb("list").code == 130


@pytest.mark.slow
@pytest.mark.parametrize("args", [["--help"], ["show", "--json", "--last", "1"]])
def test_a_closed_pipe_is_quiet(story: Story, args: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "sessiondb", *args]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_a_command_of_the_table_is_one_of_its_module() -> None:
    for name in COMMANDS:
        context = app.make_context("sessiondb", ["path"])
        command = app.get_command(context, name)
        assert command is not None
        assert command.name == name
