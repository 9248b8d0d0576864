"""The time a user waits for a command in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import sessiondb
from benchmarks.fixtures import built, conversation, corpus, session_list
from benchmarks.measure import Bench, Row, Skipped, alternate, timed
from sessiondb import ids

SOURCE = str(Path(sessiondb.__file__).parent.parent)
COMMAND = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); from sessiondb.cli import run; run()"
)
IMPORT = f"import sys; sys.path.insert(0, {SOURCE!r}); from sessiondb import Store"


def rows(bench: Bench) -> Iterator[Row | Skipped]:
    """Yield the import of `Store`, and commands, against an interpreter that does nothing."""
    commands: list[tuple[str, list[str], float]] = [
        ("from sessiondb import Store", [sys.executable, "-c", IMPORT], 8.0)
    ]
    if find_spec("click") is None or find_spec("sessiondb.cli") is None:
        yield Skipped("command line, cold", "the command line is not installed")
    else:
        commands += _command_line(bench)

    for name, command, goal in commands:
        pair = alternate(
            _process(command), _process([sys.executable, "-c", "pass"]), bench.times(20)
        )
        yield Row(f"{name}, cold", *pair, goal=goal)


def _command_line(bench: Bench) -> Iterator[tuple[str, list[str], float]]:
    """Yield (name, command, goal), on a database with 1,000 sessions and one of 20 turns."""
    session = ids.new_session_id()
    path = built(
        bench.folder / "cold.db",
        session_list(1000, "/home/dev/acme"),
        conversation(session, 20, 3),
    )
    ours = [sys.executable, "-c", COMMAND]
    yield "sessiondb --help", [*ours, "--help"], 7.0
    word = corpus().split(maxsplit=1)[0]
    for arguments in (["list"], ["show", session], ["search", word], ["stats"]):
        everywhere = [] if arguments[0] == "show" else ["-a"]
        command = [*ours, "--db", str(path), *arguments, *everywhere]
        yield f"sessiondb {arguments[0]}", command, 12.0


def _process(command: list[str]) -> Callable[[], float]:
    # As installed: with bytecode, which the warm-up writes where it is missing.
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }

    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return timed(run)
