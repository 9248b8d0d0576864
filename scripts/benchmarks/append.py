"""One durable append at a time, and 64 tasks that append at once.

Ours and its floor write two copies of one file; the floor replays the statements
that the store sent for the same appends on a third.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from benchmarks.fixtures import FIELDS, appendable, draft
from benchmarks.measure import Bench, Row, alternate, alternate_async, timed
from benchmarks.recording import Steps, open_floor, play, recorded, transactions
from sessiondb import AsyncStore, Store

LEVELS = ("full", "normal")
WARM_UP = 20


def record(
    path: Path, level: str, times: int, act: Callable[[Store, int], object]
) -> list[Steps]:
    """Return the transactions of *times* calls of *act* on the database at *path*."""
    with recorded() as log, Store.open(path, durability=level, source="bench") as store:
        act(store, 0)
        for steps in log:
            steps.clear()
        for number in range(1, times + 1):
            act(store, number)
    found = transactions(log)
    if len(found) != times:
        raise LookupError(
            f"{len(found)} transactions for {times} writes: mend the recording"
        )
    return found


def append_rows(bench: Bench) -> Iterator[Row]:
    """Yield the medians of one append, message and two parts, by façade and durability."""
    base, sessions = appendable(bench.folder)
    times = bench.times(900)

    def act(store: Store, number: int) -> None:
        store.append(sessions[0], draft(number), **FIELDS)

    for level in LEVELS:
        path = bench.copy(base, "recording")
        steps = record(path, level, times + WARM_UP, act)
        pair = _sync(bench, base, sessions[0], level, steps)
        yield Row(f"append, Store, {level}", *pair, goal=2)
        pair, hop = asyncio.run(_async(bench, base, sessions[0], level, steps))
        yield Row(f"append, AsyncStore, {level}", *pair, goal=3, allowance=hop)


def _sync(
    bench: Bench, base: Path, session: str, level: str, steps: list[Steps]
) -> tuple[float, float]:
    numbers, recorded_steps = itertools.count(), iter(steps)
    with (
        Store.open(bench.copy(base, "ours"), durability=level, source="bench") as store,
        closing(open_floor(bench.copy(base, "floor"), level)) as connection,
    ):
        ours = timed(lambda: store.append(session, draft(next(numbers)), **FIELDS))
        floor = timed(lambda: play(connection, next(recorded_steps)))
        return alternate(ours, floor, len(steps) - WARM_UP, WARM_UP)


async def _async(
    bench: Bench, base: Path, session: str, level: str, steps: list[Steps]
) -> tuple[tuple[float, float], float]:
    numbers, recorded_steps = itertools.count(), iter(steps)
    times = len(steps) - WARM_UP
    store = await AsyncStore.open(
        bench.copy(base, "ours"), durability=level, source="bench"
    )
    async with store:
        with closing(open_floor(bench.copy(base, "floor"), level)) as connection:
            pair = await alternate_async(
                lambda: store.append(session, draft(next(numbers)), **FIELDS),
                timed(lambda: play(connection, next(recorded_steps))),
                times,
                WARM_UP,
            )
    return pair, await hop_to_thread(times)


async def hop_to_thread(times: int) -> float:
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
    times, each = bench.times(18), 5

    def unit(store: Store, number: int) -> None:
        with store.effects() as fx:
            for session in sessions:
                fx.append(session, draft(number), **FIELDS)

    steps = record(bench.copy(base, "recording"), level, (times + 1) * each, unit)
    rounds = [steps[at : at + each] for at in range(0, len(steps), each)]
    took = asyncio.run(_together(bench, base, sessions, level, rounds))
    floor, ours = (1000 * len(sessions) * each / one for one in took)
    return Row(f"64 appenders, {level}", floor, ours, 0.6, "/s", at_least=True)


async def _together(
    bench: Bench, base: Path, sessions: list[str], level: str, rounds: list[list[Steps]]
) -> tuple[float, float]:
    numbers, left = itertools.count(), iter(rounds)
    store = await AsyncStore.open(
        bench.copy(base, "ours"), durability=level, source="bench"
    )
    async with store:
        with closing(open_floor(bench.copy(base, "floor"), level)) as connection:

            async def appender(session: str) -> None:
                for _ in rounds[0]:
                    await store.append(session, draft(next(numbers)), **FIELDS)

            async def ours() -> None:
                await asyncio.gather(*map(appender, sessions))

            def floor() -> None:
                for transaction in next(left):
                    play(connection, transaction)

            return await alternate_async(ours, timed(floor), len(rounds) - 1, 1)
