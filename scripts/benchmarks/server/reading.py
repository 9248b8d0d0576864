"""Reads of a server: lists, a complete session, the end of a long one, sums.

A floor is the query for the rows alone, which an index answers, and their values as
Python has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from benchmarks.fixtures import (
    answered_sessions,
    conversation,
    session_list,
    small,
)
from benchmarks.measure import Row, alternate, timed
from benchmarks.reading import FLAT, LISTS, SUM_OF_MESSAGES, Read
from benchmarks.server import raw
from benchmarks.server.place import Schema, ServerBench
from sessiondb import Store, ids

#: More than the runs after which a server keeps its plan.
WARM_UP = 12
_NEWEST = (
    "SELECT * FROM session WHERE hidden = 0 ORDER BY time_updated DESC, id LIMIT 50"
)


def compare(
    schema: Schema, read: Read, floor: Callable[[raw.Raw], object], times: int
) -> tuple[float, float]:
    """Let a read and its floor take turns; return their medians (floor, ours)."""
    with (
        Store.open(schema.url, create=False) as store,
        closing(raw.connect(schema.url)) as connection,
    ):
        return alternate(
            timed(lambda: read(store)), timed(lambda: floor(connection)), times, WARM_UP
        )


def compare_sizes(
    few: Schema, many: Schema, read: Read, times: int
) -> tuple[float, float]:
    """Let one read take turns on two sets of tables; return the medians."""
    with (
        Store.open(few.url, create=False) as a,
        Store.open(many.url, create=False) as b,
    ):
        return alternate(timed(lambda: read(b)), timed(lambda: read(a)), times, WARM_UP)


def list_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield the newest of 10³, 10⁴ and 10⁵ sessions, 95 % of them subagents."""
    read, times = LISTS["newest 50"], bench.times(200)
    counts = sorted({bench.size(full) for full in (1_000, 10_000, 100_000)})
    schemas = [bench.schema(session_list(count, "/home/dev/acme")) for count in counts]
    for count, schema in zip(counts, schemas, strict=True):
        pair = compare(schema, read, lambda floor: raw.read(floor, _NEWEST), times)
        yield Row(f"newest 50: {count:,} sessions", *pair, goal=8)
    pair = compare_sizes(schemas[0], schemas[-1], read, times)
    name = f"newest 50: {counts[0]:,} → {counts[-1]:,} sessions"
    yield Row(name, *pair, goal=FLAT)


def last_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield the last 20 messages of a session of 10⁴."""
    short, long = ids.new_session_id(), ids.new_session_id()
    turns = bench.size(5_000)
    schema = bench.schema(
        conversation(short, 250, 1, small), conversation(long, turns, 2, small)
    )

    def read(store: Store) -> object:
        return store.messages(long, last=20)

    def floor(connection: raw.Raw) -> object:
        return raw.read_messages(connection, long, 2 * turns - 19)

    times, name = bench.times(200), "last 20 messages"
    pair = compare(schema, read, floor, times)
    yield Row(f"{name} of {2 * turns:,}", *pair, goal=3)
    with Store.open(schema.url, create=False) as store:
        pair = alternate(
            timed(lambda: store.messages(long, last=20)),
            timed(lambda: store.messages(short, last=20)),
            times,
            WARM_UP,
        )
    yield Row(f"{name} of 500 → {2 * turns:,}", *pair, goal=FLAT)


def load_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield the load of a session of 2,000 turns: 4,000 messages, 12,000 parts."""
    session, turns = ids.new_session_id(), bench.size(2_000)
    schema = bench.schema(conversation(session, turns, 1))
    pair = compare(
        schema,
        lambda store: store.messages(session),
        lambda connection: raw.read_messages(connection, session),
        bench.times(15),
    )
    yield Row(f"load {turns:,} turns", *pair, goal=2)


def usage_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield totals over 10⁴ sessions of 20 messages against a sum of the messages."""
    count = bench.size(100_000) // 10
    schema = bench.schema(answered_sessions(count, 20))
    for by in ("model", "day", "project"):
        pair = compare(
            schema,
            lambda store, by=by: store.usage(by=by),  # type: ignore[misc]
            lambda connection: raw.read(connection, SUM_OF_MESSAGES),
            bench.times(12),
        )
        yield Row(f"total by {by}: {count:,} sessions", *pair, goal=2)
