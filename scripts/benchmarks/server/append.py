"""One durable append at a time, its round trips, and 64 sessions appended to at once.

Ours and its floor append to sessions of their own in the same tables.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from statistics import median

from benchmarks.append import LEVELS, WARM_UP, hop_to_thread
from benchmarks.fixtures import FIELDS, draft, sessions_with_history
from benchmarks.measure import (
    Bench,
    Row,
    Skipped,
    alternate,
    alternate_async,
    medians,
    timed,
)
from benchmarks.server import raw
from benchmarks.server.place import Schema, ServerBench
from sessiondb import AsyncStore, Store

#: What an append may cost, and what many at once have to achieve.
GOAL, GOAL_TOGETHER = 1.3, 0.7
SESSIONS = 64
#: The other number of connections among which the floor divides its sessions.
_CONNECTIONS = 4
_WITH_INDEX = "; the floor with a search index"
#: Whether the floor has an index for search, as ours always has, by the end of a name.
_FLOORS = {"": False, _WITH_INDEX: True}
#: Appends of which round trips are counted, after each statement has been prepared.
_COUNTED = 5


def appendable(bench: ServerBench, count: int) -> tuple[Schema, list[str]]:
    """Return tables, and so many sessions in them with some history to append to."""
    schema = bench.schema()
    with Store.open(
        schema.direct_url, source="bench", durability="normal", cwd=bench.folder
    ) as store:
        return schema, sessions_with_history(store, count)


def append_rows(bench: ServerBench) -> Iterator[Row | Skipped]:
    """Yield the medians of one append, message and two parts, and its round trips."""
    schema, (mine, other, *_) = appendable(bench, 2)
    for level in LEVELS:
        pair = _sync(bench, schema, mine, other, level)
        yield Row(f"append, Store, {level}", *pair, goal=GOAL)
        pair, hop = asyncio.run(_async(bench, schema, mine, other, level))
        yield Row(f"append, AsyncStore, {level}", *pair, goal=GOAL, allowance=hop)
    pair = _sync(bench, schema, mine, other, "full", is_found=True)
    yield Row(f"append, Store, full{_WITH_INDEX}", *pair, goal=None)
    yield _trips(bench, schema, mine, other)


def _sync(
    bench: Bench,
    schema: Schema,
    mine: str,
    other: str,
    level: str,
    *,
    is_found: bool = False,
) -> tuple[float, float]:
    numbers = itertools.count()
    with (
        Store.open(schema.url, durability=level, source="bench") as store,
        closing(raw.connect(schema.url, level)) as connection,
    ):
        return alternate(
            timed(lambda: store.append(mine, draft(next(numbers)), **FIELDS)),
            timed(
                lambda: raw.append(
                    connection, [other], next(numbers), is_found=is_found
                )
            ),
            bench.times(300),
            bench.size(WARM_UP),
        )


async def _async(
    bench: Bench, schema: Schema, mine: str, other: str, level: str
) -> tuple[tuple[float, float], float]:
    numbers = itertools.count()
    times, warm_up = bench.times(300), bench.size(WARM_UP)
    store = await AsyncStore.open(schema.url, durability=level, source="bench")
    async with store:
        with closing(raw.connect(schema.url, level)) as connection:
            pair = await alternate_async(
                lambda: store.append(mine, draft(next(numbers)), **FIELDS),
                timed(lambda: raw.append(connection, [other], next(numbers))),
                times,
                warm_up,
            )
    return pair, await hop_to_thread(times)


def _trips(bench: ServerBench, schema: Schema, mine: str, other: str) -> Row | Skipped:
    """Return how often an append waits for the server."""
    name = "append, round trips"
    if bench.cluster is None:
        return Skipped(name, "they are counted on the bench's own server")
    with (
        schema.counted(bench.cluster.socket_file) as (proxy, url),
        Store.open(url, source="bench") as store,
        closing(raw.connect(url)) as connection,
    ):

        def counted(act: Callable[[int], object]) -> float:
            for number in range(WARM_UP):
                act(number)
            before = proxy.trips()
            for number in range(_COUNTED):
                act(number)
            return (proxy.trips() - before) / _COUNTED

        ours = counted(lambda number: store.append(mine, draft(number), **FIELDS))
        floor = counted(lambda number: raw.append(connection, [other], number))
    return Row(name, floor, ours, goal=None, unit="trips")


def appender_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield the throughput of 64 threads, and tasks, on a session each.

    The floor has them in larger transactions: the better of one connection with all of
    the sessions, and of four with a share of them each.
    """
    count, each = bench.size(SESSIONS), bench.size(5)
    schema, sessions = appendable(bench, 2 * count)
    appends = 1000 * count * each
    for level in LEVELS:
        crowd = _Crowd(schema.url, level, sessions[:count], each)
        for name, measure in (
            ("threads", crowd.measure_threads),
            ("tasks", crowd.measure_tasks),
        ):
            for suffix, is_found in _FLOORS.items():
                floors = _Floors(schema.url, level, sessions[count:], each, is_found)
                one, several, ours = measure(floors, bench.times(8))
                yield Row(
                    f"{count} {name}, {level}{suffix}", appends / min(one, several),
                    appends / ours, goal=GOAL_TOGETHER, unit="/s", at_least=True,
                )  # fmt: skip


class _Floors:
    """Appends to all of the sessions, by one connection or by several."""

    def __init__(
        self, url: str, level: str, sessions: list[str], each: int, is_found: bool
    ) -> None:
        self._url, self._level, self._is_found = url, level, is_found
        self._sessions, self._each = sessions, each
        self._numbers = itertools.count()

    @contextmanager
    def measured(self) -> Iterator[Callable[[], tuple[float, float]]]:
        """Yield a function that returns the milliseconds of one, and of several."""
        most = min(_CONNECTIONS, len(self._sessions))
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(most))
            connections = [
                stack.enter_context(closing(raw.connect(self._url, self._level)))
                for _ in range(most)
            ]

            def run(count: int) -> None:
                shares = [self._sessions[place::count] for place in range(count)]
                list(pool.map(self._append, connections[:count], shares))

            yield lambda: (timed(lambda: run(1))(), timed(lambda: run(most))())

    def _append(self, connection: raw.Raw, share: Sequence[str]) -> None:
        for _ in range(self._each):
            raw.append(connection, share, next(self._numbers), is_found=self._is_found)


class _Crowd:
    """Appends to all of the sessions at once, through one store."""

    def __init__(self, url: str, level: str, sessions: list[str], each: int) -> None:
        self._url, self._level = url, level
        self._sessions, self._each = sessions, each
        self._numbers = itertools.count()

    def measure_threads(
        self, floors: _Floors, times: int
    ) -> tuple[float, float, float]:
        """Return the medians of both floors, and of a thread for each session."""

        def append(session: str) -> None:
            for _ in range(self._each):
                store.append(session, draft(next(self._numbers)), **FIELDS)

        with (
            Store.open(self._url, durability=self._level, source="bench") as store,
            ThreadPoolExecutor(len(self._sessions)) as pool,
            floors.measured() as floor,
        ):
            ours = timed(lambda: list(pool.map(append, self._sessions)))
            return medians(lambda _: (*floor(), ours()), times, 1)

    def measure_tasks(self, floors: _Floors, times: int) -> tuple[float, float, float]:
        """Return the medians of both floors, and of a task for each session."""
        return asyncio.run(self._measure_tasks(floors, times))

    async def _measure_tasks(
        self, floors: _Floors, times: int
    ) -> tuple[float, float, float]:
        by_connections: list[tuple[float, float]] = []

        async def append(session: str) -> None:
            for _ in range(self._each):
                await store.append(session, draft(next(self._numbers)), **FIELDS)

        async def ours() -> None:
            await asyncio.gather(*map(append, self._sessions))

        store = await AsyncStore.open(self._url, durability=self._level, source="bench")
        with floors.measured() as floor:

            def note_floor() -> float:
                by_connections.append(floor())
                return min(by_connections[-1])

            async with store:
                _, took = await alternate_async(ours, note_floor, times, 1)
        one, several = (median(of) for of in zip(*by_connections[1:], strict=True))
        return one, several, took
