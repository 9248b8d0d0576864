"""A fork of 2,000 messages and 6,000 parts: its time, and the bytes it adds."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.fixtures import built, conversation
from benchmarks.measure import Bench, Row, alternate, timed
from sessiondb import Store, ids
from sessiondb.engine.sqlite.connection import connect
from sessiondb.schema.tables import message, part, session


def rows(bench: Bench) -> Iterator[Row]:
    """Yield time against bare INSERT … SELECT of the same rows, and bytes against the original."""
    sid = ids.new_session_id()
    empty = _bytes(built(bench.folder / "fork-empty.db"))
    base = built(bench.folder / "fork.db", conversation(sid, 1000, 3))
    for level in ("full", "normal"):
        pair = _time(bench, base, sid, level)
        yield Row(f"fork 2,000 messages, {level}", *pair, goal=1.3)
    before = _bytes(base)
    path = bench.copy(base, "forked")
    with Store.open(path) as store:
        store.fork(sid)
    added = _bytes(path) - before
    yield Row(
        "fork 2,000 messages, bytes", before - empty, added, goal=0.35, unit="bytes"
    )


def _bytes(path: Path) -> int:
    with closing(connect(path)) as connection:
        sql = (
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
        )
        sql += "pragma_freelist_count, pragma_page_size"
        return int(connection.execute(sql).fetchone()[0])


def _time(bench: Bench, base: Path, sid: str, level: str) -> tuple[float, float]:
    ours_path, floor_path = bench.copy(base, "ours"), bench.copy(base, "floor")
    with (
        Store.open(ours_path, durability=level) as store,
        closing(connect(ours_path)) as ours_file,
        closing(connect(floor_path, durability=level)) as floor_file,
    ):

        def ours() -> float:
            took = timed(lambda: store.fork(sid))()
            _remove_forks(ours_file, sid)
            return took

        def floor() -> float:
            took = timed(lambda: _bare_fork(floor_file, sid, ids.new_session_id()))()
            _remove_forks(floor_file, sid)
            return took

        return alternate(ours, floor, bench.times(36))


def _remove_forks(connection: sqlite3.Connection, sid: str) -> None:
    connection.execute("DELETE FROM session WHERE parent_id = ?", (sid,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _bare_fork(connection: sqlite3.Connection, sid: str, new: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in copying_statements({"rid"}):
        connection.execute(statement, {"sid": sid, "new": new})
    connection.execute("COMMIT")


def copying_statements(own_columns: Collection[str]) -> Iterator[str]:
    """Yield the statements that copy the rows of session ``:sid`` to those of ``:new``.

    The rows are unchanged, except where the constraints of the schema require it.
    *own_columns* are those to which the database gives values.
    """
    own = {"id": ":new", "slug": ":new", "parent_id": ":sid", "relation": "'fork'"}
    copied = {"session_id": ":new", "inherited": "1"}
    for table, where, changed in (
        (session, "id", own),
        (message, "session_id", copied),
        (part, "session_id", {**copied, "indexed": "0"}),
    ):
        names = [
            column.name for column in table.columns if column.name not in own_columns
        ]
        values = [changed.get(name, name) for name in names]
        yield (
            f"INSERT INTO {table.name} ({', '.join(names)}) "
            f"SELECT {', '.join(values)} FROM {table.name} WHERE {where} = :sid"
        )
