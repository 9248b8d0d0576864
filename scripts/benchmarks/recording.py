"""The statements that sessiondb sends to SQLite, recorded and replayed by hand.

While `recorded` is active every new connection notes its statements with their
parameters. Played on a copy of the file in the state in which the recording began,
they are the floor: the same work, without sessiondb.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from sessiondb.engine.sqlite.connection import connect


class Step(NamedTuple):
    """One call of execute or, with *many*, executemany."""

    sql: str
    params: Any = ()
    many: bool = False


Steps = list[Step]


class _Cursor(sqlite3.Cursor):
    def execute(self, sql: str, params: Any = ()) -> _Cursor:
        self.connection.steps.append(Step(sql, params))  # type: ignore[attr-defined]
        super().execute(sql, params)
        return self

    def executemany(self, sql: str, rows: Iterable[Any]) -> _Cursor:
        rows = list(rows)
        self.connection.steps.append(Step(sql, rows, many=True))  # type: ignore[attr-defined]
        super().executemany(sql, rows)
        return self


class _Noting:
    """A mixin that records the statements of a connection class."""

    steps: Steps

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)  # type: ignore[misc]

    def execute(self, sql: str, params: Any = ()) -> Any:
        return self.cursor().execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Any]) -> Any:
        return self.cursor().executemany(sql, rows)

    def commit(self) -> None:
        self.execute("COMMIT")


@contextmanager
def recorded() -> Generator[list[Steps]]:
    """Record all connections that are made inside; yields one list of steps for each."""
    log: list[Steps] = []
    connect_as_ever = sqlite3.connect

    def connect_and_note(
        *args: Any, factory: Any = sqlite3.Connection, **more: Any
    ) -> Any:
        noting = type("Noting", (_Noting, factory), {"steps": []})
        log.append(noting.steps)  # type: ignore[attr-defined]
        return connect_as_ever(*args, factory=noting, **more)

    with patch("sqlite3.connect", connect_and_note):
        yield log


#: What units write, and the completion of the search index does not.
_OF_UNITS = ("INSERT INTO session", "UPDATE session", "INSERT INTO message")


def transactions(log: list[Steps]) -> list[Steps]:
    """Return the transactions of units in *log*; steps between two belong to the second."""
    found: list[Steps] = []
    for steps in log:
        current: Steps = []
        for step in steps:
            current.append(step)
            if step.sql == "COMMIT":
                if any(s.sql.startswith(_OF_UNITS) for s in current):
                    found.append(current)
                current = []
    return found


def select(log: list[Steps], *pieces: str) -> Step:
    """Return the last recorded query whose text has all *pieces*."""
    every: Steps = [step for steps in log for step in steps]
    for step in every[::-1]:
        if step.sql.startswith("SELECT") and all(piece in step.sql for piece in pieces):
            return step
    raise LookupError(
        f"no recorded query has {pieces}: the statements changed, so must this"
    )


def open_floor(path: Path, durability: str) -> sqlite3.Connection:
    """Return a connection with the pragmas of sessiondb's own writer."""
    connection = connect(path, durability=durability)
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    return connection


def play(connection: sqlite3.Connection, steps: Steps) -> None:
    """Do recorded steps."""
    for sql, params, many in steps:
        if many:
            connection.executemany(sql, params)
        else:
            connection.execute(sql, params).fetchall()


_NEXT, _PART = "SELECT max(coalesce((SELECT max(rid) FROM part)", "INSERT INTO part ("


class Replay:
    """A recorded transaction that takes its row numbers from the file, as ours does.

    Several processes that write one file need it; their recordings were made apart.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        inserts = [step for step in steps if step.sql.startswith(_PART)]
        if not inserts or not any(step.sql.startswith(_NEXT) for step in steps):
            raise LookupError(
                "no row numbers of parts: the statements changed, so must this"
            )
        self._first = int(inserts[0].params[0])

    def play(self, connection: sqlite3.Connection) -> None:
        """Do the steps with the row numbers that are free now."""
        moved = 0
        for sql, params, many in self._steps:
            if many:
                connection.executemany(sql, params)
            elif sql.startswith(_NEXT):
                last, _ = connection.execute(sql, params).fetchone()
                moved = last + 1 - self._first
            else:
                connection.execute(sql, self._moved(sql, params, moved)).fetchall()

    @staticmethod
    def _moved(sql: str, params: Any, moved: int) -> Any:
        if sql.startswith(_PART):
            return (params[0] + moved, *params[1:])
        if "json_each(:rids)" in sql:
            return {**params, "rids": _shift(params["rids"], moved)}
        return params


def _shift(rids: str, moved: int) -> str:
    return json.dumps([rid + moved for rid in json.loads(rids)])
