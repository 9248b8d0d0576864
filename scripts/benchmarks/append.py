"""One durable append at a time, and 64 tasks that append at once.

Ours and its floor write two copies of one file; the floor plays what the store
said while it did the same appends on a third.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import perf_counter

from benchmarks.fixtures import FIELDS, appendable, draft
from benchmarks.measure import Bench, Row, alternate, alternate_async, timed
from benchmarks.recording import Steps, open_floor, play, recorded, transactions
from sessiondb import AsyncStore, Store

LEVELS = ("full", "normal")
WARM_UP = 20


def record(
    path: Path, level: str, times: int, act: Callable[[Store, int], object]
) -> Iterator[Steps]:
    """Return the transactions of *times* calls of *act* on the database at *path*."""
    with recorded() as log, Store.open(path, durability=level, source="bench") as store:
        act(store, 0)
        for steps in log:
            steps.clear()
        for number in range(1, times + 1):
            act(store, number)
    found = transactions(log)
    if len(found) != times:
        raise LookupError(f"{len(found)} transactions for {times} writes: mend the recording")
    return iter(found)


def _floor(connection: sqlite3.Connection, steps: Iterator[Steps]) -> Callable[[], float]:
    return timed(lambda: play(connection, next(steps)))


def append_rows(bench: Bench) -> Iterator[Row]:
    """Yield the medians of one append, message and two parts, by façade and durability."""
    base, sessions = appendable(bench.folder)
    for level in LEVELS:
        yield _sync(bench, base, sessions[0], level)
    for level in LEVELS:
        yield _async(bench, base, sessions[0], level)


def _steps(bench: Bench, base: Path, session: str, level: str, times: int) -> Iterator[Steps]:
    def act(store: Store, number: int) -> None:
        store.append(session, draft(number), **FIELDS)

    return record(bench.copy(base, "recording"), level, times + WARM_UP, act)


def _sync(bench: Bench, base: Path, session: str, level: str) -> Row:
    times = bench.times(900)
    steps = _steps(bench, base, session, level, times)
    with (
        Store.open(bench.copy(base, "ours"), durability=level, source="bench") as store,
        closing(open_floor(bench.copy(base, "floor"), level)) as connection,
    ):
        numbers = iter(range(times + WARM_UP))
        ours = timed(lambda: store.append(session, draft(next(numbers)), **FIELDS))
        floor = _floor(connection, steps)
        return Row(f"append, Store, {level}", *alternate(ours, floor, times, WARM_UP), goal=2)


def _async(bench: Bench, base: Path, session: str, level: str) -> Row:
    times = bench.times(900)
    steps = _steps(bench, base, session, level, times)

    async def run() -> Row:
        store = await AsyncStore.open(
            bench.copy(base, "ours"), durability=level, source="bench"
        )
        async with store:
            with closing(open_floor(bench.copy(base, "floor"), level)) as connection:
                numbers = iter(range(times + WARM_UP))
                pair = await alternate_async(
                    lambda: store.append(session, draft(next(numbers)), **FIELDS),
                    _floor(connection, steps),
                    times,
                    WARM_UP,
                )
        return Row(f"append, AsyncStore, {level}", *pair, goal=3, allowance=await _hop(times))

    return asyncio.run(run())


async def _hop(times: int) -> float:
    """Return the median milliseconds of handing nothing to another thread and back."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as pool:
        _, hop = await alternate_async(
            lambda: loop.run_in_executor(pool, int), lambda: 0.0, times, WARM_UP
        )
    return hop


def appender_rows(bench: Bench) -> Iterator[Row]:
    """Yield the throughput of 64 tasks against 64 appends per raw transaction."""
    base, sessions = appendable(bench.folder)
    for level in LEVELS:
        yield _appenders(bench, base, sessions, level)


def _appenders(bench: Bench, base: Path, sessions: list[str], level: str) -> Row:
    times, each = bench.times(9), 10

    def unit(store: Store, number: int) -> None:
        with store.effects() as fx:
            for session in sessions:
                fx.append(session, draft(number), **FIELDS)

    path = bench.copy(base, "recording")
    steps = record(path, level, (times + 1) * each, unit)

    async def run() -> Row:
        loop = asyncio.get_running_loop()
        store = await AsyncStore.open(
            bench.copy(base, "ours"), durability=level, source="bench"
        )
        async with store:
            with closing(open_floor(bench.copy(base, "floor"), level)) as connection:

                async def appender(session: str) -> None:
                    for number in range(each):
                        await store.append(session, draft(number), **FIELDS)

                async def ours() -> None:
                    await asyncio.gather(*map(appender, sessions))

                def floor() -> float:
                    start = perf_counter()
                    for _ in range(each):
                        play(connection, next(steps))
                    return (perf_counter() - start) * 1000

                pair = await alternate_async(ours, floor, times, 1)
        per_second = [1000 * len(sessions) * each / took for took in pair]
        return Row(f"64 appenders, {level}", *per_second, goal=0.6, unit="/s", at_least=True)

    return asyncio.run(run())
