"""Much at once: an import, a fork, and the copy of a file to a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.append import LEVELS
from benchmarks.fixtures import built, conversation
from benchmarks.forking import copying_statements
from benchmarks.importing import ingest, parse_records, write_source
from benchmarks.measure import Row, alternate, medians, timed
from benchmarks.server import raw
from benchmarks.server.place import Schema, ServerBench
from sessiondb import Store, ids
from sessiondb.maintenance.copying import copy

_ROUTE = (
    "INSERT INTO route SELECT %(new)s, family FROM route WHERE session_id = %(sid)s"
)
_OWN_COLUMNS = {"rid", "hidden"}


def import_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield an import into empty tables.

    The floor parses the records, and inserts the rows that come of them.
    """
    source = write_source(bench)
    path = bench.folder / "imported.db"
    with Store.open(path, durability="normal") as store:
        ingest(store, source)

    def ours() -> float:
        with Store.open(bench.schema().url) as store:
            return timed(lambda: ingest(store, source))()

    def floor() -> float:
        with closing(raw.connect(bench.schema().url)) as connection:

            def write() -> None:
                parse_records(source)
                raw.insert_file(connection, path)

            return timed(write)()

    pair = alternate(ours, floor, bench.times(3), 1)
    yield Row("import of an OpenCode store: parsing, and its rows", *pair, goal=2)


def fork_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield a fork of 2,000 messages against bare INSERT … SELECT of the same rows."""
    session, turns = ids.new_session_id(), bench.size(1_000)
    schema = bench.schema(conversation(session, turns, 3))
    for level in LEVELS:
        pair = _time_forks(bench, schema, session, level)
        yield Row(f"fork {2 * turns:,} messages, {level}", *pair, goal=1.3)


def _time_forks(
    bench: ServerBench, schema: Schema, session: str, level: str
) -> tuple[float, float]:
    with (
        Store.open(schema.url, durability=level) as store,
        closing(raw.connect(schema.url, level)) as connection,
    ):

        def forked(fork: Callable[[], object]) -> float:
            took = timed(fork)()
            connection.execute("DELETE FROM session WHERE parent_id = %s", [session])
            return took

        return alternate(
            lambda: forked(lambda: store.fork(session)),
            lambda: forked(lambda: _bare_fork(connection, session)),
            bench.times(12),
        )


def _bare_fork(connection: raw.Raw, session: str) -> None:
    values = {"sid": session, "new": ids.new_session_id()}
    with connection.transaction():
        connection.execute(_ROUTE, values)
        for statement in copying_statements(_OWN_COLUMNS):
            sql = statement.replace(":sid", "%(sid)s").replace(":new", "%(new)s")
            sql = sql.replace(" (", " (family, ", 1).replace(
                "SELECT ", "SELECT family, "
            )
            connection.execute(sql, values)


def copy_rows(bench: ServerBench) -> Iterator[Row]:
    """Yield the megabytes of a file that are copied in a second.

    Ours compares both sides in the end, and makes the search index.
    """
    sessions, turns = bench.size(10), bench.size(100)
    fills = [
        conversation(ids.new_session_id(), turns, number) for number in range(sessions)
    ]
    path = built(bench.folder / "copied.db", *fills)
    megabytes = path.stat().st_size / 1e6

    def measure(turn: int) -> tuple[float, float, float]:
        del turn
        return (
            _time_plainly(bench, partial(raw.insert_file, path=path)),
            _time_plainly(bench, partial(raw.copy_file, path=path)),
            _time_copy(bench, path),
        )

    by_insert, by_copy, ours = (
        1000 * megabytes / took for took in medians(measure, bench.times(3), 0)
    )
    yield Row("copy of a file, beside INSERT", by_insert, ours, None, "MB/s")
    yield Row("copy of a file, beside COPY", by_copy, ours, None, "MB/s")


def _time_plainly(bench: ServerBench, fill: partial[None]) -> float:
    with closing(raw.connect(bench.schema().url)) as connection:
        return timed(lambda: fill(connection))()


def _time_copy(bench: ServerBench, path: Path) -> float:
    with (
        Store.open(path, read_only=True) as source,
        Store.open(bench.schema().url) as target,
    ):
        return timed(lambda: copy(source, target))()
