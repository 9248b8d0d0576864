"""The reported size of a session, against the space that a vacuum frees after its removal."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, Index, Integer, MetaData, Table, Text
from sqlalchemy import text as sql

from sessiondb import SessionHandle, Store, assistant, text, tool, user
from sessiondb.engine.sqlite.session_sizes import bytes_of_row
from sessiondb.maintenance import vacuum

pytestmark = pytest.mark.slow

RANDOM = random.Random(7)
WORDS = [
    "".join(RANDOM.choices("etaoinshrdlu", k=RANDOM.randint(2, 10)))
    for _ in range(5_000)
]
WEIGHTS = [1 / rank for rank in range(1, 5_001)]


def prose(characters: int) -> str:
    return " ".join(RANDOM.choices(WORDS, WEIGHTS, k=characters // 6))


def small_rows(store: Store, session: SessionHandle) -> None:
    with store.effects() as fx:
        for number in range(300):
            fx.append(session, user(f"ok {number}"))
            fx.append(
                session,
                assistant("done"),
                model="large",
                cost=0.01,
                tokens={"input": 9},
            )


def texts(store: Store, session: SessionHandle) -> None:
    with store.effects() as fx:
        for _ in range(100):
            fx.append(session, user(prose(900)))
            call = tool("bash", {"command": prose(100)}, output=prose(600))
            fx.append(session, assistant(text(prose(800)), call))


def blobs(store: Store, session: SessionHandle) -> None:
    with store.effects() as fx:
        for _ in range(50):
            output = prose(RANDOM.randint(3_000, 40_000))
            fx.append(
                session, assistant(tool("bash", {"command": "ls"}, output=output))
            )


def records(store: Store, session: SessionHandle) -> None:
    with store.effects() as fx:
        for _ in range(50):
            fx.append(session, user("raw", record=prose(RANDOM.randint(3_000, 40_000))))


KINDS = [small_rows, texts, blobs, records]


@pytest.mark.parametrize(
    "kinds", [*([kind] for kind in KINDS), KINDS], ids=lambda k: k[0].__name__
)
def test_a_plan_estimates_the_bytes_that_a_removal_frees(
    tmp_path: Path, kinds: list[Callable[[Store, SessionHandle], None]]
) -> None:
    with Store.open(tmp_path / "sizes.db", durability="normal") as store:
        sessions = []
        for kind in kinds:
            for _ in range(2):
                sessions.append(store.create_session(title=kind.__name__))
                kind(store, sessions[-1])
        vacuum(store)
        for session in sessions[:-1]:
            said = store.plan_delete(session).bytes
            before = store.path.stat().st_size
            store.delete(session)
            vacuum(store)
            freed = before - store.path.stat().st_size
            assert 0.8 <= said / freed <= 1.2, (session, said, freed)


@pytest.mark.parametrize("kind", [texts, blobs], ids=lambda kind: kind.__name__)
def test_search_entries_taken_over_by_a_remaining_fork_are_not_freed(
    tmp_path: Path, kind: Callable[[Store, SessionHandle], None]
) -> None:
    with Store.open(tmp_path / "sizes.db", durability="normal") as store:
        session = store.create_session()
        kind(store, session)
        first, second = store.fork(session), store.fork(session)
        store.fork(first)
        vacuum(store)
        said = store.plan_delete(session, keep_forks=True).bytes
        together = store.freed_bytes([session, first, second])
        before = store.path.stat().st_size
        store.delete(session, keep_forks=True)
        vacuum(store)
        freed = before - store.path.stat().st_size
        assert abs(said - freed) <= 0.2 * freed + 4 * 4096, (
            said,
            freed,
        )  # pages of few rows
        assert together > said + freed


def test_a_new_column_and_a_new_index_weigh() -> None:
    def weight(*, length: int, is_indexed: bool) -> int:
        table = Table("t", MetaData(), Column("rid", Integer, primary_key=True))
        table.append_column(Column("tone", Text))
        if is_indexed:
            Index("ix_tone", table.c.tone, sqlite_where=sql("tone IS NOT NULL"))
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE TABLE t (rid INTEGER PRIMARY KEY, tone TEXT)")
            db.execute("INSERT INTO t (tone) VALUES (?)", ("x" * length or None,))
            (size,) = db.execute(f"SELECT {bytes_of_row(table)} FROM t").fetchone()
        return int(size)

    assert (
        weight(length=100, is_indexed=False) - weight(length=0, is_indexed=False) == 100
    )
    assert (
        weight(length=100, is_indexed=True) - weight(length=100, is_indexed=False) > 100
    )
    assert weight(length=0, is_indexed=True) == weight(length=0, is_indexed=False)
