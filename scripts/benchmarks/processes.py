"""Four processes that append to one file, each to a session of its own."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, Protocol

from benchmarks.append import LEVELS, record
from benchmarks.fixtures import FIELDS, appendable, draft
from benchmarks.measure import Bench, Row
from benchmarks.recording import Replay, Steps, open_floor
from sessiondb import SessionDBError, Store

PROCESSES, WARM_UP = 4, 5
_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Result:
    """The work of one process, between two readings of the machine's monotonic clock."""

    start: float
    end: float
    times: int
    errors: int


class Turn(Protocol):
    """The work of one process in one round."""

    def run(self, ready: Any) -> Result:
        """Prepare, wait for *ready*, a barrier of all processes, and do it."""


def rows(bench: Bench) -> Iterator[Row]:
    """Yield appends per second of all processes together; a single error fails the row."""
    base, sessions = appendable(bench.folder)
    times, each = (2, 40) if bench.quick else (5, 400)
    rounds: list[list[Turn]] = []
    for level in LEVELS:
        recordings = [
            _recording(bench, base, level, sid, each) for sid in sessions[:PROCESSES]
        ]
        for number in range(times):
            ours = bench.copy(base, f"ours-{level}-{number}")
            floor = bench.copy(base, f"floor-{level}-{number}")
            rounds.append(
                [_Ours(ours, level, sid, each) for sid in sessions[:PROCESSES]]
            )
            rounds.append([_Floor(floor, level, steps) for steps in recordings])
    results = run_rounds(rounds)
    for level, found in zip(LEVELS, batched(results, 2 * times), strict=True):
        ours_rate, floor_rate = (median(r[0] for r in found[k::2]) for k in (0, 1))
        errors = sum(failed for _, failed in found[::2])
        name = f"{PROCESSES} processes, {level}"
        yield Row(name, floor_rate, ours_rate, 0.6, "/s", at_least=True, errors=errors)


def batched(values: list[Any], size: int) -> Iterator[list[Any]]:
    """Yield *values* in pieces of *size*."""
    return (values[start : start + size] for start in range(0, len(values), size))


def _recording(
    bench: Bench, base: Path, level: str, session: str, each: int
) -> list[Steps]:
    path = bench.copy(base, "recording")

    def act(store: Store, number: int) -> None:
        # As among several processes: after a commit of another one all is read again.
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE project SET time_updated = time_updated + 1")
        store.append(session, draft(number), **FIELDS)

    return record(path, level, each + WARM_UP, act)


@dataclass(frozen=True)
class _Ours:
    """Appends through a store of its own."""

    path: Path
    level: str
    session: str
    times: int

    def run(self, ready: Any) -> Result:
        with Store.open(self.path, durability=self.level, source="bench") as store:

            def once(number: int) -> None:
                store.append(self.session, draft(number), **FIELDS)

            return measured(once, self.times, ready, SessionDBError)


@dataclass(frozen=True)
class _Floor:
    """Plays what a store did."""

    path: Path
    level: str
    recording: list[Steps]

    def run(self, ready: Any) -> Result:
        replays = [Replay(steps) for steps in self.recording]
        with closing(open_floor(self.path, self.level)) as connection:

            def once(number: int) -> None:
                replays[number].play(connection)

            return measured(once, len(replays) - WARM_UP, ready, sqlite3.Error)


def measured(
    once: Callable[[int], None], times: int, ready: Any, failure: type[Exception]
) -> Result:
    """Call *once* for each number, and report how often it raised *failure*."""
    errors = 0
    for number in range(WARM_UP):
        once(number)
    ready.wait()
    start = monotonic()
    for number in range(WARM_UP, WARM_UP + times):
        try:
            once(number)
        except failure:
            errors += 1
    return Result(start, monotonic(), times, errors)


def _work(turns: list[Turn], ready: Any, results: Any) -> None:
    for turn in turns:
        ready.wait()
        results.put(turn.run(ready))


def run_rounds(rounds: Sequence[Sequence[Turn]]) -> list[tuple[float, int]]:
    """Return operations per second, and errors, of each round of all processes together.

    A round has a turn for each process, which begins it at the same time as the others.
    """
    count = len(rounds[0])
    ready, results = _spawn.Barrier(count, timeout=300), _spawn.Queue()
    workers = [
        _spawn.Process(
            target=_work, args=([turns[k] for turns in rounds], ready, results)
        )
        for k in range(count)
    ]
    for worker in workers:
        worker.start()
    found = []
    for _ in rounds:
        parts: list[Result] = [results.get(timeout=300) for _ in workers]
        seconds = max(part.end for part in parts) - min(part.start for part in parts)
        failed = sum(part.errors for part in parts)
        found.append(((sum(part.times for part in parts) - failed) / seconds, failed))
    for worker in workers:
        worker.join()
    return found
