"""Processes that append at once, each to a session of its own, or all to one.

Those of different sessions have no row in common that both write, and take no lock that
keeps the other waiting: how often a connection is seen to wait for a lock says so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median
from typing import Any

import psycopg

from benchmarks.append import LEVELS
from benchmarks.fixtures import FIELDS, draft
from benchmarks.measure import Row, Skipped
from benchmarks.processes import Result, Turn, batched, measured, run_rounds
from benchmarks.server import raw
from benchmarks.server.append import GOAL_TOGETHER, appendable
from benchmarks.server.place import ServerBench
from sessiondb import SessionDBError, Store

#: At most this share of the waiting for one session.
_FEW = 0.1
_SECONDS_BETWEEN_LOOKS = 0.01
_WAITING = (
    "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) "
    "FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND state <> 'idle' "
    "AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class _Ours:
    """Appends through a store of its own."""

    url: str
    level: str
    session: str
    times: int

    def run(self, ready: Any) -> Result:
        with Store.open(self.url, durability=self.level, source="bench") as store:

            def once(number: int) -> None:
                store.append(self.session, draft(number), **FIELDS)

            return measured(once, self.times, ready, SessionDBError)


@dataclass(frozen=True)
class _Floor:
    """Appends by plain psycopg."""

    url: str
    level: str
    session: str
    times: int

    def run(self, ready: Any) -> Result:
        with closing(raw.connect(self.url, self.level)) as connection:

            def once(number: int) -> None:
                raw.append(connection, [self.session], number)

            return measured(once, self.times, ready, psycopg.Error)


def rows(bench: ServerBench) -> Iterator[Row]:
    """Yield appends per second of all processes together; an error fails the row."""
    counts = sorted({bench.size(4), bench.size(8)})
    most = counts[-1]
    schema, sessions = appendable(bench, 2 * most)
    mine, others = sessions[:most], sessions[most:]
    times, each = 1 if bench.quick else 3, bench.times(120)
    places = {"a session each": most, "one session": 1}
    cases = [(where, level) for where in places for level in LEVELS]
    for count in counts:
        rounds: list[Sequence[Turn]] = []
        for where, level in cases:
            ours, floor = (
                list(islice(cycle(some[: places[where]]), count))
                for some in (mine, others)
            )
            for _ in range(times):
                rounds.append([_Ours(schema.url, level, one, each) for one in ours])
                rounds.append([_Floor(schema.url, level, one, each) for one in floor])
        results = batched(run_rounds(rounds), 2 * times)
        for (where, level), found in zip(cases, results, strict=True):
            ours_rate, floor_rate = (
                median(rate for rate, _ in found[k::2]) for k in (0, 1)
            )
            yield Row(
                f"{count} processes, {where}, {level}", floor_rate, ours_rate,
                goal=GOAL_TOGETHER, unit="/s", at_least=True,
                errors=sum(failed for _, failed in found[::2]),
            )  # fmt: skip


def hot_rows(bench: ServerBench) -> Iterator[Row | Skipped]:
    """Yield the throughput on different sessions beside that on one, and the waiting.

    The floor of both is one session: its processes take turns.
    """
    counts = sorted({bench.size(8), bench.size(16)})
    schema, sessions = appendable(bench, counts[-1])
    each = bench.times(120)
    for count in counts:
        found = []
        for session_ids in ([sessions[0]] * count, sessions[:count]):
            turns = [_Ours(schema.url, "full", one, each) for one in session_ids]
            with _waiting(bench) as shares:
                ((rate, errors),) = run_rounds([turns])
            found.append((rate, errors, 100 * sum(shares) / max(1, len(shares))))
        (one, _, waited_for_one), (many, errors, waited) = found
        yield Row(
            f"{count} processes: one session → a session each", one, many,
            goal=1.0, unit="/s", at_least=True, errors=errors,
        )  # fmt: skip
        name = f"{count} processes, waiting for locks: one → a session each"
        if waited_for_one:
            yield Row(name, waited_for_one, waited, goal=_FEW, unit="%")
        else:
            yield Skipped(name, "no process was seen to wait, not even for one session")


@contextmanager
def _waiting(bench: ServerBench) -> Iterator[list[float]]:
    """Yield the list of the shares of working connections that wait for a lock.

    It has an entry for each look while any connection works in the ``with`` block.
    """
    shares: list[float] = []
    is_over = threading.Event()

    def look() -> None:
        with closing(raw.connect(bench.direct_url)) as connection:
            while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
                ((waiting, working),) = raw.read(connection, _WAITING)
                if working:
                    shares.append(waiting / working)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield shares
    finally:
        is_over.set()
        thread.join()
