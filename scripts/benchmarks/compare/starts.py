"""The time a user waits for a new process, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter
from typing import NamedTuple

from benchmarks.cold import COMMAND, IMPORT
from benchmarks.fixtures import built, conversation, corpus, session_list
from sessiondb import ids


@dataclass(frozen=True, slots=True)
class Start:
    """A command: the median milliseconds until it ends, and those of the processor."""

    name: str
    ms: float
    cpu_ms: float


class _Took(NamedTuple):
    ms: float
    cpu_ms: float


def measure(folder: Path, times: int) -> list[Start]:
    """Time the commands in turn, after one round that does not count."""
    commands = _commands(folder)
    home = folder / "home"
    home.mkdir()
    # As installed: with bytecode, which the first round writes where it is missing.
    environment = {
        **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        "HOME": str(home),
    }
    took: dict[str, list[_Took]] = {name: [] for name in commands}
    for number in range(1 + times):
        for name, command in commands.items():
            sample = _time(command, environment)
            if number:
                took[name].append(sample)
    return [
        Start(name, median(t.ms for t in each), median(t.cpu_ms for t in each))
        for name, each in took.items()
    ]


def _commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands, on a database with 1,000 sessions and one of 200 turns."""
    session = ids.new_session_id()
    path = built(
        folder / "starts.db",
        session_list(1000, "/home/dev/acme"),
        conversation(session, 200, 3),
    )
    word = corpus().split(maxsplit=1)[0]
    ours = [sys.executable, "-c", COMMAND, "--db", str(path)]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "from sessiondb import Store": [sys.executable, "-c", IMPORT],
        "sessiondb list": [*ours, "list", "-a"],
        "sessiondb show": [*ours, "show", session],
        "sessiondb search": [*ours, "search", "-a", word],
        "sessiondb stats": [*ours, "stats", "-a"],
        "git log -1": ["git", "-C", str(_repository(folder)), "log", "-1"],
    }


def _repository(folder: Path) -> Path:
    """Make a repository with one commit."""
    repository = folder / "repository"
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    git = ["git", "-C", str(repository), *who]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "First"], check=True)
    return repository


def _time(command: list[str], environment: dict[str, str]) -> _Took:
    before, started = getrusage(RUSAGE_CHILDREN), perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    ms, after = (perf_counter() - started) * 1000, getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return _Took(ms, cpu * 1000)
