"""The time a user waits for a command in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import sessiondb
from benchmarks.fixtures import built, session_list
from benchmarks.measure import Bench, Row, Skipped, alternate, timed

SOURCE = str(Path(sessiondb.__file__).parent.parent)
COMMAND = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); from sessiondb.cli import run; run()"
)


def rows(bench: Bench) -> Iterator[Row | Skipped]:
    """Yield `--help` and `list` against an interpreter that does nothing."""
    if find_spec("click") is None or find_spec("sessiondb.cli") is None:
        yield Skipped("command line, cold", "the command line is not installed")
        return
    path = built(bench.folder / "cold.db", session_list(1000, "/home/dev/acme"))
    listing = ["--db", str(path), "list", "-a"]
    for name, arguments, goal in (("--help", ["--help"], 7.0), ("list", listing, 30.0)):
        command = [sys.executable, "-c", COMMAND, *arguments]
        pair = alternate(
            _process(command), _process([sys.executable, "-c", "pass"]), bench.times(20)
        )
        yield Row(f"sessiondb {name}, cold", *pair, goal=goal)


def _process(command: list[str]) -> Callable[[], float]:
    # As installed: with bytecode, which the warm-up writes where it is missing.
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }

    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return timed(run)
