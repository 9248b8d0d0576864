"""Reads: a complete session, lists, the end of a long session, search.

Ours and its floor read one file through connections of the same pragmas; the
floor is our query, as it was recorded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgpack

from benchmarks.fixtures import (
    COMMON,
    PART,
    PIECE,
    RARE,
    answered_sessions,
    built,
    conversation,
    haystack,
    session_list,
    small,
)
from benchmarks.measure import Bench, Row, alternate, timed
from benchmarks.recording import Step, recorded, select
from sessiondb import ALL, Store, ids
from sessiondb.engine.search_words import MARK
from sessiondb.engine.sqlite.connection import connect

#: The limit of "flat": the larger file may cost this much more.
FLAT = 1.3
Read = Callable[[Store], object]


def _said(path: Path, read: Read, *wanted: tuple[str, ...]) -> list[Step]:
    """Return the queries that *read* makes, each named by pieces of its text."""
    with recorded() as log, Store.open(path, cwd=path.parent) as store:
        read(store)
    return [select(log, *pieces) for pieces in wanted]


def _transaction_of(path: Path, read: Read) -> list[Step]:
    """Return the queries of *read*, all of its only transaction."""
    with recorded() as log, Store.open(path, cwd=path.parent) as store:
        read(store)
    for steps in log:
        texts = [step.sql for step in steps]
        if "BEGIN" in texts:
            return steps[texts.index("BEGIN") + 1 : texts.index("ROLLBACK")]
    raise LookupError("the read has no transaction: it changed, so must this")


def _compare(
    path: Path, read: Read, floor: Callable[[sqlite3.Connection], object], times: int
) -> tuple[float, float]:
    with (
        Store.open(path, cwd=path.parent) as store,
        closing(connect(path)) as connection,
    ):
        return alternate(
            timed(lambda: read(store)), timed(lambda: floor(connection)), times, 3
        )


def _flat(small: Path, big: Path, read: Read, times: int) -> tuple[float, float]:
    with Store.open(small, cwd=small.parent) as a, Store.open(big, cwd=big.parent) as b:
        return alternate(timed(lambda: read(b)), timed(lambda: read(a)), times, 3)


def _queries(steps: list[Step]) -> Callable[[sqlite3.Connection], object]:
    def run(connection: sqlite3.Connection) -> None:
        for sql, params, _ in steps:
            connection.execute(sql, params).fetchall()

    return run


def load_rows(bench: Bench) -> Iterator[Row]:
    """Yield the load of a session of 2,000 turns: 4,000 messages, 12,000 parts."""
    session = ids.new_session_id()
    path = built(bench.folder / "load.db", conversation(session, 2000, 1))

    def read(store: Store) -> object:
        return store.messages(session)

    queries = _transaction_of(path, read)

    def floor(connection: sqlite3.Connection) -> None:
        for sql, params, _ in queries:
            cursor = connection.execute(sql, params)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            if "data" in names and "hash" not in names:
                data = names.index("data")
                for row in rows:
                    if row[data]:
                        msgpack.unpackb(row[data])

    yield Row("load 2,000 turns", *_compare(path, read, floor, bench.times(15)), goal=2)


def list_rows(bench: Bench) -> Iterator[Row]:
    """Yield the newest of 10⁵ sessions, 95 % of them subagents."""
    count = bench.size(100_000)
    folder = str(bench.folder.resolve())
    few = built(bench.folder / "list-small.db", session_list(1000, folder))
    big = built(bench.folder / "list-big.db", session_list(count, folder))

    times = bench.times(300)
    for name, read in LISTS.items():
        steps = _said(big, read, ("FROM session", "ORDER BY", "LIMIT"))
        pair = _compare(big, read, _queries(steps), times)
        yield Row(f"{name}: {count:,} sessions", *pair, goal=8)
        pair = _flat(few, big, read, times)
        yield Row(f"{name}: 1,000 → {count:,} sessions", *pair, goal=FLAT)


# Of 1,000 sessions 50 are listed, half of them in the project.
LISTS: dict[str, Read] = {
    "newest 50": lambda store: store.sessions(project=ALL),
    "newest 25 of this project": lambda store: store.sessions(limit=25),
    "newest 50, archived ones too": lambda store: store.sessions(
        project=ALL, archived=True
    ),
}


def usage_rows(bench: Bench) -> Iterator[Row]:
    """Yield totals over 10⁵ sessions, and over those of ten times the messages.

    The floor of the first is the sum over the messages by SQLite alone.
    """
    count = bench.size(100_000)
    few = built(bench.folder / "usage-few.db", answered_sessions(count, 2))
    many = built(bench.folder / "usage-many.db", answered_sessions(count, 20))

    times = bench.times(20)
    for by in ("model", "day", "project"):

        def read(store: Store, by: str = by) -> object:
            return store.usage(by=by)

        pair = _compare(many, read, _sum_messages, times)
        yield Row(f"total by {by}: {count:,} sessions", *pair, goal=0.5)
        pair = _flat(few, many, read, times)
        yield Row(f"total by {by}: 2 → 20 messages each", *pair, goal=FLAT)


SUM_OF_MESSAGES = (
    "SELECT m.model_id, count(*), count(DISTINCT s.rid), sum(m.cost), "
    "sum(m.tokens_input), sum(m.tokens_output) "
    "FROM message AS m JOIN session AS s ON s.id = m.session_id "
    "WHERE m.inherited = 0 AND m.cost IS NOT NULL AND s.time_deleted IS NULL "
    "GROUP BY m.model_id"
)


def _sum_messages(connection: sqlite3.Connection) -> None:
    connection.execute(SUM_OF_MESSAGES).fetchall()


def last_rows(bench: Bench) -> Iterator[Row]:
    """Yield the last 50 messages of a session of 20,000."""
    short, long = ids.new_session_id(), ids.new_session_id()
    fills = conversation(short, 500, 1, small), conversation(long, 10_000, 2, small)
    path = built(bench.folder / "last.db", *fills)

    def read(store: Store) -> object:
        return store.messages(long, last=50)

    times = bench.times(300)
    pair = _compare(path, read, _queries(_transaction_of(path, read)), times)
    yield Row("last 50 messages of 20,000", *pair, goal=8)
    with Store.open(path) as store:
        ours = timed(lambda: store.messages(long, last=50))
        floor = timed(lambda: store.messages(short, last=50))
        yield Row(
            "last 50 messages of 1,000 → 20,000",
            *alternate(ours, floor, times, 3),
            goal=FLAT,
        )


_BARE = (
    "SELECT rowid, snippet(part_search, -1, '', '', '…', 16) FROM part_search "
    "WHERE part_search MATCH ? ORDER BY rowid DESC LIMIT 20"
)
_SESSIONS = (
    "SELECT f.rowid, p.session_id FROM part_search AS f CROSS JOIN part AS p ON p.rid = f.rowid "
    "WHERE f.part_search MATCH ? ORDER BY f.rowid DESC LIMIT ?"
)


#: What is searched for, its share of all parts, and the query for the index alone.
_SEARCHES = (
    (RARE, "word in 1 %", f'"{RARE}"'),
    (COMMON, "word in 50 %", f'"{COMMON}"'),
    (PART, "part of a name in 1 %", f'"{MARK}{PART}"'),
    (PIECE, "piece of a run in 1 %", f'"{MARK}字符" AND "{MARK}符集"'),
)


def search_rows(bench: Bench) -> Iterator[Row]:
    """Yield the newest 20 hits among 10⁶ parts, for a rare word and for one of every second.

    Also for a part of an identifier and a piece of a script without spaces.
    One hit for each session is more than the bare query can do; there the floor also
    reads as many matches, with their sessions, as it takes to see 20 sessions.
    """
    count, small_count = bench.size(1_000_000), 10_000
    few = built(bench.folder / "search-small.db", haystack(small_count))
    big = built(bench.folder / "search-big.db", haystack(count))
    times = bench.times(300)
    for word, what, match in _SEARCHES:
        bare = Step(_BARE, (match,))
        needed = Step(_SESSIONS, (match, _matches_of_20_sessions(big, match)))
        for how, floor in (("all hits", [bare]), ("by session", [needed, bare])):

            def read(
                store: Store, word: str = word, all_hits: bool = how == "all hits"
            ) -> object:
                return store.search(word, all_hits=all_hits)

            name = f"search, {how}, {what}"
            pair = _compare(big, read, _queries(floor), times)
            yield Row(f"{name}: {count:,} parts", *pair, goal=3)
            pair = _flat(few, big, read, times)
            yield Row(f"{name}: {small_count:,} → {count:,} parts", *pair, goal=FLAT)


#: The newest 2,000 matches, scored by SQLite, of which the best 20 are shown.
_RANKED = (
    "SELECT rowid, snippet(part_search, -1, '', '', '…', 16) FROM part_search "
    "WHERE part_search MATCH ? AND rowid >= (SELECT min(rowid) FROM (SELECT rowid "
    "FROM part_search WHERE part_search MATCH ? ORDER BY rowid DESC LIMIT 2000)) "
    "ORDER BY bm25(part_search) LIMIT 20"
)


def rank_rows(bench: Bench) -> Iterator[Row]:
    """Yield the best, and the latest, of the newest 2,000 matches among 10⁶ parts.

    The floor of both is bm25 alone over the same window.
    """
    count = bench.size(1_000_000)
    path = built(bench.folder / "rank.db", haystack(count))
    for word, what, match in _SEARCHES:
        floor = _queries([Step(_RANKED, (match, match))])
        for order in ("rank", "time"):

            def read(store: Store, word: str = word, order: str = order) -> object:
                return store.search(word, order=order)

            pair = _compare(path, read, floor, bench.times(60))
            yield Row(f"search by {order}, {what}: {count:,} parts", *pair, goal=3)


def _matches_of_20_sessions(path: Path, match: str) -> int:
    seen = set()
    with closing(connect(path)) as connection:
        matches = connection.execute(_SESSIONS, (match, -1))
        for number, (_, session) in enumerate(matches, 1):
            seen.add(session)
            if len(seen) == 20:
                return number
    raise LookupError(f"{match} is in {len(seen)} sessions only")
