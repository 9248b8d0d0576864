"""Fixtures of the command line: a project, a database, and ways to type commands."""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_line import Ran, Run, Story

from sessiondb import Store, assistant, reasoning, text, tool, user
from sessiondb.cli.app import app

# The folder of the modules that write small foreign stores.
sys.path.append(str(Path(__file__).resolve().parents[1] / "formats"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that commands are typed in; the database is named by the environment."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "sessions.db"))
    return folder


@pytest.fixture
def database(project: Path) -> Path:
    return project.parent / "sessions.db"


@pytest.fixture
def store(database: Path, empty: Path) -> Iterator[Store]:
    if not database.exists():  # a command may have made it before
        shutil.copy(empty, database)
    with Store.open(database, durability="normal") as store:
        yield store


@pytest.fixture
def story(store: Store, tmp_path: Path) -> Story:
    """A session with a fork and a subagent here, and a session in another directory."""
    parser = store.create_session(title="Fix the parser", agent="build")
    store.append(parser, user("Fix the off-by-one in lexer.py"))
    answer = assistant(
        reasoning("The bound is exclusive."),
        text("Fixed it."),
        tool(
            "bash",
            {"command": "pytest"},
            output="\n".join(f"line {n}" for n in range(40)),
        ),
    )
    store.append(
        parser, answer, model="large", cost=0.25, tokens={"input": 100, "output": 20}
    )
    store.append(parser, user("Thanks"))
    fork = store.fork(parser, title="Another idea", at=2)
    store.append(fork, user("Try a generator instead"))
    helper = store.create_session(
        title="Look around", parent=parser, relation="subagent", agent="explore"
    )
    store.append(helper, user("Where is the lexer?"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = store.create_session(title="Write the manual", directory=str(elsewhere))
    store.append(other, user("Begin with a chapter on forks"))
    return Story(parser.id, fork.id, helper.id, other.id)


@pytest.fixture
def sessiondb(project: Path) -> Run:
    """Run a command line in this process, as if through pipes."""

    def run(
        *args: str, stdin: str | bytes | None = None, encoding: str = "utf-8"
    ) -> Ran:
        result = CliRunner(charset=encoding).invoke(app, list(args), input=stdin)
        return Ran(
            result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode()
        )

    return run


@pytest.fixture
def process(project: Path) -> Run:
    """Run a command line in a process of its own, through pipes."""

    def run(*args: str, **how: Any) -> Ran:
        result = subprocess.run(
            [sys.executable, "-m", "sessiondb", *args],
            capture_output=True,
            check=False,
            **how,
        )
        return Ran(result.returncode, result.stdout.decode(), result.stderr.decode())

    return run


@pytest.fixture
def type_lines(project: Path) -> Callable[..., list[Ran]]:
    """Type commands on one terminal; return how each ended, stdout and stderr as one."""

    def run(
        *lines: str, typed: str = "", width: int = 80, height: int = 200, **env: str
    ) -> list[Ran]:
        with warnings.catch_warnings():
            # The child of a process with threads runs nothing but our commands.
            warnings.simplefilter("ignore", DeprecationWarning)
            child, master = pty.fork()
        if child == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            size = {"COLUMNS": str(width), "LINES": str(height)}
            os.environ.update({"TERM": "xterm", "PAGER": "cat", **size, **env})
            os.environ.pop("NO_COLOR" if "NO_COLOR" not in env else "", None)
            _type(lines)
            os._exit(0)
        os.write(master, typed.encode())
        said = b""
        while block := _read(master):
            said += block
        os.close(master)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        *ended, rest = said.decode().replace("\r\n", "\n").split(_END)
        codes_and_outputs = [output.rpartition("\0") for output in ended]
        rans = [Ran(int(code), output, "") for output, _, code in codes_and_outputs]
        # A command that ended the process, or gave its place to a program.
        return rans if len(rans) == len(lines) else [*rans, Ran(status, rest, "")]

    return run


@pytest.fixture
def terminal(type_lines: Callable[..., list[Ran]]) -> Run:
    """Type commands on a terminal; return how the last one ended, and all output."""

    def run(*lines: str, **how: Any) -> Ran:
        rans = type_lines(*lines, **how)
        return Ran(rans[-1].code, "".join(ran.out for ran in rans), "")

    return run


#: Follows the exit code of a command on the terminal; no command prints it.
_END = "\0;"


def _type(lines: tuple[str, ...]) -> None:
    """Run command lines on the terminal that is file descriptor 0, 1 and 2."""
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    for line in lines:
        code: Any = 1
        try:
            app.main(shlex.split(line))
        except SystemExit as ended:
            code = ended.code
        sys.stderr.flush()
        print(f"\0{int(code)}", end=_END, flush=True)  # noqa: T201


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other side is closed
        return b""
