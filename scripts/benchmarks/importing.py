"""The import of a synthetic OpenCode store against `json.loads` of its records.

Writing rows and search costs SQLite several times what parsing costs, so a second
row has the statements of the import, done raw, in its floor as well.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fixtures import START, built, large, small, words
from benchmarks.measure import Bench, Row, alternate, timed
from benchmarks.recording import open_floor, play, recorded, transactions
from sessiondb import Store
from sessiondb.formats import find

SESSIONS, TURNS = 20, 50
_NAME = "import of an OpenCode store"
_SCHEMA = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text,
  time_created integer NOT NULL, time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session ON message (session_id, time_created, id);
CREATE INDEX part_message ON part (message_id, id);
CREATE INDEX part_session ON part (session_id);
"""


def rows(bench: Bench) -> Iterator[Row]:
    """Yield the time of an import into a new file."""
    source = bench.folder / "opencode.db"
    _make(source)
    expected = SESSIONS * TURNS * 2

    def ours() -> float:
        path = bench.folder / "imported.db"
        for old in bench.folder.glob("imported.db*"):
            old.unlink()
        with Store.open(path) as store:
            took = timed(lambda: _ingest(store, source))()
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT count(*) FROM message").fetchone()[0]
        if found != expected:
            raise ValueError(f"{found} messages of {expected} were imported")
        return took

    statements, played = timed(_raw(bench, source)), []

    def floor() -> float:
        played.append(statements())
        return timed(lambda: _loads(source))()

    parsing, imported = alternate(ours, floor, bench.times(7), 1)
    yield Row(_NAME, parsing, imported, goal=6)
    yield Row(
        f"{_NAME}: and its statements", parsing + median(played), imported, goal=2
    )


def _raw(bench: Bench, source: Path) -> Callable[[], None]:
    empty = built(bench.folder / "import-empty.db")
    with recorded() as log, Store.open(bench.copy(empty, "import-recording")) as store:
        _ingest(store, source)
    steps = transactions(log)

    def play_all() -> None:
        path = bench.copy(empty, "import-floor")
        with closing(open_floor(path, "full")) as connection:
            for transaction in steps:
                play(connection, transaction)

    return play_all


def _ingest(store: Store, source: Path) -> None:
    for found in find(source):
        for _ in store.ingest(found.read()):
            pass


def _loads(source: Path) -> None:
    with closing(sqlite3.connect(source)) as connection:
        for table in ("message", "part"):
            for (data,) in connection.execute(f"SELECT data FROM {table}").fetchall():
                json.loads(data)


def _make(path: Path) -> None:
    rng = random.Random(5)  # noqa: S311  a fixture, nothing secret
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_SCHEMA)
        where = ("prj", "/home/dev/acme", "git", "acme", START, START, "[]")
        connection.execute("INSERT INTO project VALUES (?, ?, ?, ?, ?, ?, ?)", where)
        for number in range(SESSIONS):
            sid, when = f"ses_{number:026d}", START + number * 1_000_000
            title, slug = words(rng, 30), f"slug-{number}"
            row = (
                sid,
                "prj",
                None,
                slug,
                "/home/dev/acme",
                title,
                "1.18.0",
                when,
                when,
            )
            connection.execute(
                "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row
            )
            for turn in range(TURNS):
                _turn(connection, rng, sid, number * TURNS + turn, when + turn * 10_000)
        connection.commit()


def _turn(
    connection: sqlite3.Connection, rng: random.Random, sid: str, turn: int, when: int
) -> None:
    asked, answered = f"msg_{2 * turn:026d}", f"msg_{2 * turn + 1:026d}"
    model = {"providerID": "acme", "modelID": "acme-large"}
    tokens = {
        "input": 1876,
        "output": 27,
        "reasoning": 5,
        "cache": {"write": 0, "read": 5504},
    }
    prompt: dict[str, Any] = {
        "role": "user",
        "time": {"created": when},
        "agent": "build",
        "model": model,
    }
    answer: dict[str, Any] = {
        "role": "assistant", "parentID": asked, "mode": "build", "agent": "build", **model,
        "path": {"cwd": "/home/dev/acme", "root": "/home/dev/acme"}, "cost": 0.0080592,
        "tokens": tokens, "time": {"created": when + 1, "completed": when + 900}, "finish": "stop",
    }  # fmt: skip
    for mid, data in ((asked, prompt), (answered, answer)):
        message = (mid, sid, when, when, json.dumps(data))
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", message)
    said = [(asked, {"type": "text", "text": words(rng, small(rng))})]
    said += [(answered, data) for data in _answer(rng, turn, when, tokens)]
    for idx, (mid, data) in enumerate(said):
        part = (f"prt_{turn:022d}{idx:04d}", mid, sid, when, when, json.dumps(data))
        connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", part)


def _answer(
    rng: random.Random, turn: int, when: int, tokens: dict[str, Any]
) -> list[dict[str, Any]]:
    output, time = words(rng, large(rng)), {"start": when + 2, "end": when + 800}
    state = {
        "status": "completed", "input": {"command": words(rng, 120)}, "output": output,
        "title": words(rng, 30), "metadata": {"preview": output[:200], "exit": 0}, "time": time,
    }  # fmt: skip
    return [
        {"type": "step-start", "snapshot": f"{turn:040x}"},
        {"type": "reasoning", "text": words(rng, small(rng)), "time": time},
        {"type": "text", "text": words(rng, small(rng)), "time": time},
        {"type": "tool", "tool": "bash", "callID": f"call_{turn:024d}", "state": state},
        {"type": "step-finish", "reason": "stop", "snapshot": f"{turn:040x}", "tokens": tokens,
         "cost": 0.0080592},
    ]  # fmt: skip
