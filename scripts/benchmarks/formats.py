"""The import of each format beside the parsing of its records, and its memory.

The floor reads every record of a store and parses it, nothing else: `json.loads` for
lines and for JSON in databases, MessagePack where a program writes that, lines where it
writes text. Most of an import is writing rows and the search index (see `importing`).
Times are those of the processor.
"""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgpack

from benchmarks.measure import Bench, Row, medians, worked
from benchmarks.stores import STORES, Talk
from sessiondb import Store
from sessiondb.formats import find
from sessiondb.model import Imported, SourceSession

SESSIONS, TURNS = 10, 40
#: Characters of each tool output of a large store, and its turns.
PIECE, FEW, TIMES = 64 << 10, 50, 20
#: Goals: what each costs at most against the parsing of the records.
READING, IMPORT, AGAIN, FLAT = 10, 30, 3, 1.25
#: Megabytes of a full transaction, and of the places of 20,000 messages.
UNIT = 8


def rows(bench: Bench) -> Iterator[Row]:
    """Yield reading, import, second import and memory of every format."""
    turns = TURNS // 2 if bench.quick else TURNS
    for name, write in STORES.items():
        folder = bench.folder / name
        write(folder, [Talk(number, turns) for number in range(1, SESSIONS + 1)])
        once = partial(_once, bench, name)
        parsing, reading, imported, again = medians(once, bench.times(5), 1)
        yield Row(f"{name}: reading", parsing, reading, goal=READING)
        yield Row(f"{name}: import", parsing, imported, goal=IMPORT)
        yield Row(f"{name}: import, nothing new", parsing, again, goal=AGAIN)
        yield _memory(bench, name, write)


def _once(bench: Bench, name: str, turn: int) -> tuple[float, float, float, float]:
    del turn
    folder, path = bench.folder / name, bench.folder / f"{name}.db"
    for old in bench.folder.glob(f"{path.name}*"):
        old.unlink()
    parsing = worked(lambda: _parse(folder))
    reading = worked(lambda: _drain(folder))
    with Store.open(path) as store:
        imported = worked(lambda: _import(store, folder, "imported"))
        again = worked(lambda: _import(store, folder, "unchanged"))
    return parsing, reading, imported, again


def _import(store: Store, folder: Path, outcome: str, sessions: int = SESSIONS) -> None:
    results = [item for found in find(folder) for item in store.ingest(found.read())]
    outcomes = [item.outcome for item in results if isinstance(item, Imported)]
    if outcomes != [outcome] * sessions or len(results) > sessions:
        raise ValueError(f"{folder.name}: {results}")


def _drain(folder: Path) -> None:
    for found in find(folder):
        for item in found.read():
            if not isinstance(item, SourceSession):
                raise ValueError(f"{folder.name}: {item}")  # noqa: TRY004
            # Most readers read no more than the head of a session before it is needed.
            session = item.complete() if item.complete else item
            if not sum(1 for _ in session.messages):
                raise ValueError(f"{folder.name}: {item.source_id} has no messages")


# -- the floor -----------------------------------------------------------------


def _parse(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.suffix == ".db":
            _parse_rows(path)
        elif path.is_file():
            parse: Callable[[Any], Any] = json.loads if path.suffix == ".jsonl" else str
            with path.open(encoding="utf-8") as file:
                deque(map(parse, file), maxlen=0)


def _parse_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        for (table,) in connection.execute(tables).fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):
                _parse_cells(row)


def _parse_cells(row: Iterable[Any]) -> None:
    for value in row:
        if isinstance(value, bytes):
            msgpack.unpackb(value)
        elif isinstance(value, str) and value[:1] in ("{", "["):
            json.loads(value)


# -- memory --------------------------------------------------------------------


def _memory(bench: Bench, name: str, write: Callable[..., None]) -> Row:
    few = FEW // 2 if bench.quick else FEW
    peaks = []
    for turns in (few, few * TIMES):
        folder = bench.folder / f"{name}-{turns}"
        write(folder, [Talk(1, turns, PIECE)])
        peaks.append(_peak(folder))
        rmtree(folder)
    of_small, of_large = peaks
    return Row(
        f"{name}: memory, {TIMES} times as large", of_small, of_large, goal=FLAT,
        unit="MB", allowance=UNIT,
    )  # fmt: skip


def _peak(folder: Path) -> float:
    """Return the megabytes that Python allocates at most during an import."""
    with Store.open(folder.with_suffix(".db"), durability="normal") as store:
        tracemalloc.start()
        try:
            _import(store, folder, "imported", 1)
            return tracemalloc.get_traced_memory()[1] / (1 << 20)
        finally:
            tracemalloc.stop()
