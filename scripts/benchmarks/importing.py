"""The import of a synthetic OpenCode store against `json.loads` of its records.

Writing rows and search costs SQLite several times what parsing costs, so a second
row has the statements of the import, done raw, in its floor as well.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.fixtures import built
from benchmarks.measure import Bench, Row, alternate, timed
from benchmarks.recording import open_floor, play, recorded, transactions
from benchmarks.stores import Talk, opencode
from sessiondb import Store
from sessiondb.formats import find

SESSIONS, TURNS = 20, 50
_NAME = "import of an OpenCode store"


def rows(bench: Bench) -> Iterator[Row]:
    """Yield the time of an import into a new file."""
    source = write_source(bench)
    expected = SESSIONS * TURNS * 2

    def ours() -> float:
        path = bench.folder / "imported.db"
        for old in bench.folder.glob("imported.db*"):
            old.unlink()
        with Store.open(path) as store:
            took = timed(lambda: ingest(store, source))()
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT count(*) FROM message").fetchone()[0]
        if found != expected:
            raise ValueError(f"{found} messages of {expected} were imported")
        return took

    statements, played = timed(_raw(bench, source)), []

    def floor() -> float:
        played.append(statements())
        return timed(lambda: parse_records(source))()

    parsing, imported = alternate(ours, floor, bench.times(7), 1)
    yield Row(_NAME, parsing, imported, goal=6)
    yield Row(
        f"{_NAME}: and its statements", parsing + median(played), imported, goal=2
    )


def write_source(bench: Bench) -> Path:
    """Write the store that is imported; return its path."""
    opencode(bench.folder, [Talk(n, TURNS) for n in range(1, SESSIONS + 1)])
    return bench.folder / "opencode.db"


def _raw(bench: Bench, source: Path) -> Callable[[], None]:
    empty = built(bench.folder / "import-empty.db")
    with recorded() as log, Store.open(bench.copy(empty, "import-recording")) as store:
        ingest(store, source)
    steps = transactions(log)

    def play_all() -> None:
        path = bench.copy(empty, "import-floor")
        with closing(open_floor(path, "full")) as connection:
            for transaction in steps:
                play(connection, transaction)

    return play_all


def ingest(store: Store, source: Path) -> None:
    """Import the store at *source*."""
    for found in find(source):
        for _ in store.ingest(found.read()):
            pass


def parse_records(source: Path) -> None:
    """Parse each record of the store at *source*, nothing else."""
    with closing(sqlite3.connect(source)) as connection:
        for table in ("message", "part"):
            for (data,) in connection.execute(f"SELECT data FROM {table}").fetchall():
                json.loads(data)
