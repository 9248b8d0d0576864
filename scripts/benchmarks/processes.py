"""Four processes that append to one file, each to a session of its own."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from benchmarks.append import LEVELS, record
from benchmarks.fixtures import FIELDS, appendable, draft
from benchmarks.measure import Bench, Row
from benchmarks.recording import Replay, Steps, open_floor
from sessiondb import SessionDBError, Store

PROCESSES, WARM_UP = 4, 5
_spawn = multiprocessing.get_context("spawn")


def rows(bench: Bench) -> Iterator[Row]:
    """Yield appends per second of all processes together; a single error fails the row."""
    base, sessions = appendable(bench.folder)
    each = 200 if bench.quick else 500
    for level in LEVELS:
        recordings = []
        for session in sessions[:PROCESSES]:

            def act(store: Store, number: int, session: str = session) -> None:
                store.append(session, draft(number), **FIELDS)

            path = bench.copy(base, "recording")
            recordings.append(list(record(path, level, each + WARM_UP, act)))
        ours, floors, errors = [], [], 0
        for _ in range(2 if bench.quick else 5):
            path = bench.copy(base, "ours")
            jobs: list[Any] = [(path, level, session, each) for session in sessions[:PROCESSES]]
            rate, failed = _together(_append, jobs)
            ours.append(rate)
            errors += failed
            path = bench.copy(base, "floor")
            floors.append(_together(_replay, [(path, level, steps) for steps in recordings])[0])
        yield Row(
            f"4 processes, {level}", median(floors), median(ours), 0.6, "/s", True, errors=errors
        )


def _together(work: Callable[..., None], jobs: list[Any]) -> tuple[float, int]:
    """Start one process for each job; return their operations per second and their errors."""
    ready, results = _spawn.Barrier(len(jobs)), _spawn.Queue()
    started = [_spawn.Process(target=work, args=(*job, ready, results)) for job in jobs]
    for process in started:
        process.start()
    found = [results.get(timeout=300) for _ in started]
    for process in started:
        process.join()
    seconds = max(end for _, end, _, _ in found) - min(start for start, _, _, _ in found)
    done, errors = sum(row[2] for row in found), sum(row[3] for row in found)
    return done / seconds, errors


def _append(path: Path, level: str, session: str, times: int, ready: Any, results: Any) -> None:
    with Store.open(path, durability=level, source="bench") as store:
        for number in range(WARM_UP):
            store.append(session, draft(number), **FIELDS)

        def once(number: int) -> None:
            store.append(session, draft(number), **FIELDS)

        _run(once, times, ready, results)


def _replay(path: Path, level: str, recording: list[Steps], ready: Any, results: Any) -> None:
    replays = [Replay(steps) for steps in recording]
    with closing(open_floor(path, level)) as connection:
        for replay in replays[:WARM_UP]:
            replay.play(connection)
        left = replays[WARM_UP:]
        _run(lambda number: left[number].play(connection), len(left), ready, results)


def _run(once: Callable[[int], None], times: int, ready: Any, results: Any) -> None:
    errors = 0
    ready.wait()
    start = monotonic()
    for number in range(times):
        try:
            once(number)
        except (SessionDBError, sqlite3.Error):
            errors += 1
    results.put((start, monotonic(), times - errors, errors))
