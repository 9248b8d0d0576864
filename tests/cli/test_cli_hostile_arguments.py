"""Every argument and option of every command against one table of hostile values.

The commands and their parameters are read from the command line itself, so that a
new one is covered without a change here. A value is accepted, or refused by one
line that names it, with a hint, the right exit code and nothing written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import Ran, Run, Story

from sessiondb.cli.app import COMMANDS, app
from sessiondb.cli.moments import Moment
from sessiondb.cli.options import Ref
from sessiondb.cli.text import cell, visible
from sessiondb.errors import abridged

pytestmark = pytest.mark.slow

#: Seconds that no command may take, however odd its argument: one that waits for a pipe does.
PATIENCE = 20
TOO_LATE = "the command does not end"
#: Characters of the longest line.
LONGEST = 2_100
HUGE, BYTES, HALF = "a" * 60_000, "\udcff\udcfe", "\ud800"
DIGITS = "9" * 5_000

TEXTS = [
    "", " ", "\0", BYTES, HALF, HUGE, "%" * 60_000, "é" * 30_000, "²", "-1", "-", "NaN", DIGITS,
    "a\nb\tc", "\x1b[31m\u202e", "`$(false)`'\"", "[" * 5_000, "*",
]  # fmt: skip
NUMBERS = [
    "",
    "-1",
    "0",
    "1.5",
    "NaN",
    "inf",
    DIGITS,
    "²",
    str(2**63),
    BYTES,
    HALF,
    "\0",
    "1e9",
]
TIMES = [
    "", "now", "-1d", "999999d", "9999999999d", "0001-01-01", "9999-12-31", "10000-01-01",
    "2026-13", "2026-02-30", DIGITS, "²d", BYTES, HALF, "\0", HUGE, "NaN", "1e9",
]  # fmt: skip
REFS = [
    "", " ", "@~" + DIGITS, "@~²", "@~-1", "@~", "@x", "@~99999", "@~٣", HUGE, "%" * 60_000,
    "_" * 60_000, "\\", BYTES, HALF, "\0", "nobody", "a\nb", "\x1b[31m", "-", "ses_" + "Z" * 300,
]  # fmt: skip
PATHS = [
    "", ".", "missing", "missing/below", "folder", "file", "file/below", "dangling", "loop", "pipe",
    "\0", BYTES, HALF, "n" * 300, "d/" * 3_000, "~nobody-has-this-name/x", "a\nb", "-",
]  # fmt: skip
CHOICES = ["", "lost", HUGE, BYTES, HALF, "\0"]
FLAGS = ["", "x", "false"]

#: Options that let a command with valid arguments do no harm.
HARMLESS = ("--dry-run", "--print")
#: Arguments that are given although a command may do without.
WORDS = ("query", "words")
#: Options that some commands require.
NEEDED = {
    "prune": ["--keep", "1000"],
    "rm": ["--title", "no session has this title"],
    "export": ["--source", "sessiondb"],
}


def command_of(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


def values_for(param: click.Parameter) -> list[str]:
    """Return the row of the table for a parameter, by its type."""
    if getattr(param, "is_flag", False):
        return FLAGS
    kinds: list[tuple[type, list[str]]] = [
        (Ref, REFS), (Moment, TIMES), (click.IntRange, NUMBERS), (click.Choice, CHOICES),
        (click.Path, PATHS),
    ]  # fmt: skip
    return next((row for kind, row in kinds if isinstance(param.type, kind)), TEXTS)


def is_met_before(name: str, param: click.Parameter) -> bool:
    """Return whether `list` has the same option: one of FILTERS, and the options of a page."""
    shared = {other.name for other in command_of("list").params}
    return name != "list" and isinstance(param, click.Option) and param.name in shared


def valid_for(command: str, param: click.Parameter, story: Story) -> str:
    """Return a value that a required parameter accepts."""
    if isinstance(param.type, Ref):
        # Following never ends.
        return "nobody" if command == "tail" else story.parser
    if isinstance(param.type, click.Choice):
        return str(param.type.choices[0])
    if isinstance(param.type, click.Path):
        return "folder"
    named = {"query": "SELECT 1", "words": "lexer", "message": "1", "form": "jsonl"}
    return named.get(param.name or "", "some text")


def lines_for(
    name: str, story: Story
) -> Iterator[tuple[click.Parameter, str, list[str]]]:
    """Yield (parameter, value, command line) for each parameter of a command and each value."""
    command = command_of(name)
    for param in command.params:
        values = values_for(param)
        # Shared options were tried with all values once; each command must use them.
        for value in values[::6] if is_met_before(name, param) else values:
            yield param, value, [name, *line_for(command, param, value, story)]


def line_for(
    command: click.Command, tested: click.Parameter, value: str, story: Story
) -> list[str]:
    """Return a command line with *value* for one parameter and valid values for the others."""
    name = str(command.name)
    options = {opt for param in command.params for opt in param.opts}
    before: list[str] = []
    after: list[str] = []
    flags = [flag for flag in HARMLESS if flag in options and flag not in tested.opts]
    if name == "export":
        # It writes nothing but files, and this option is one of --redact.
        flags = []
    needed = NEEDED.get(name, [])
    if tested.name != "refs" and set(tested.opts).isdisjoint(needed):
        before += needed
    for param in command.params:
        is_option = isinstance(param, click.Option)
        if param is tested:
            given = value
        elif (
            param.required or param.name in WORDS or name in ("tail", "import", "label")
        ):
            if is_option and not param.required:
                continue
            given = valid_for(name, param, story)
        else:
            continue
        if is_option:
            before.append(f"{max(param.opts, key=len)}={given}")
        else:
            after.append(given)
    return [*flags, *before, "--", *after]


@pytest.fixture
def places(project: Path) -> Iterator[Path]:
    """The current directory, with one of everything that a path can name."""
    (project / "folder").mkdir()
    (project / "file").write_text("not a database, not TOML = [\n")
    (project / "dangling").symlink_to("not here")
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "pipe")
    # Both ends are open, so that opening the pipe never waits; reading from it would.
    ends = os.open(project / "pipe", os.O_RDWR | os.O_NONBLOCK)
    yield project
    os.close(ends)


@pytest.fixture
def in_time() -> Iterator[None]:
    """End a test whose command does not end."""

    def too_late(*_: Any) -> None:
        raise TimeoutError(TOO_LATE)

    before = signal.signal(signal.SIGALRM, too_late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def shell(database: Path, story: Story) -> Iterator[sqlite3.Connection]:
    """A connection to the database beside those of the commands."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        yield connection


def state(shell: sqlite3.Connection, folder: Path) -> tuple[Any, ...]:
    """Return the state that a failing command must not change."""
    rows = [
        shell.execute(f"SELECT count(*), max(rowid) FROM {table}").fetchone()
        for table in ("session", "message", "part", "label", "project", "prompt")
    ]
    change = shell.execute("SELECT max(change) FROM session").fetchone()
    names = [name for name in os.listdir(folder) if not name.endswith(("-wal", "-shm"))]
    return (*rows, change, sorted(map(os.fsencode, names)))


def check_end(command: str, ran: Ran, param: click.Parameter, value: str) -> None:
    """Check how a command with a hostile value ended."""
    assert ran.code in (0, 1, 2, 3, 4), ran.err
    assert "Traceback" not in ran.err
    assert "defect" not in ran.err
    assert TOO_LATE not in ran.err
    lines = ran.err.split("\n")
    assert max(map(len, lines)) <= LONGEST
    errors = [n for n, line in enumerate(lines) if line.startswith("sessiondb: ")]
    if ran.code in (2, 3):
        (first,) = errors
        assert lines[first + 1].startswith("  "), "a hint"
        assert lines[first + 2 :] == [""]
        assert names(command, lines[first], param, value), lines[first]


def names(command: str, line: str, param: click.Parameter, value: str) -> bool:
    """Return whether an error names the argument or its value."""
    words = [
        *param.opts,
        param.human_readable_name,
        param.name or "",
        (param.metavar or "").strip("[]"),
    ]
    # The messages name what is wrong; relink finds nothing under OLD, whatever NEW is, and
    # copy nothing at FROM, whatever TO is.
    words += {
        "copy": ["database"],
        "relink": ["folder"],
        "title": ["title"],
        "label": ["label"],
        "sql": ["SQL"],
    }.get(command, [])
    said = line.lower()
    top = value.split("/", maxsplit=1)[0].strip()
    shown = [
        abridged(value),
        visible(value)[:1_000] or "''",
        cell(value)[:1_000] or "''",
        top or "''",
    ]
    return any(w.lower() in said for w in words if w) or any(
        s.lower() in said for s in shown
    )


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_of_every_command_refuses_or_takes_any_value(
    name: str, sessiondb: Run, places: Path, shell: sqlite3.Connection, story: Story
) -> None:
    before = state(shell, places)
    for param, value, line in lines_for(name, story):
        signal.alarm(PATIENCE)
        ran = sessiondb(*line)
        signal.alarm(0)
        where = (line[0], param.name, value[:40], ran.err[:600])
        try:
            check_end(name, ran, param, value)
        except AssertionError as error:
            raise AssertionError(where) from error
        after = state(shell, places)
        assert ran.code in (0, 4) or after == before, where
        before = after


@pytest.mark.usefixtures("in_time")
def test_every_option_before_the_command_refuses_or_takes_any_value(
    sessiondb: Run, places: Path, shell: sqlite3.Connection
) -> None:
    for param in app.params:
        if param.name in ("help", "version"):
            continue
        for value in values_for(param):
            before = state(shell, places)
            signal.alarm(PATIENCE)
            ran = sessiondb(f"{max(param.opts, key=len)}={value}", "list")
            signal.alarm(0)
            try:
                check_end("", ran, param, value)
            except AssertionError as error:
                raise AssertionError((param.name, value[:40], ran.err[:600])) from error
            assert state(shell, places) == before
