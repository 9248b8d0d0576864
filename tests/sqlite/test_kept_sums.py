"""The sums of usage that a file keeps: what enters them, and what a shell does to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from sessiondb import Store, assistant
from sessiondb.maintenance import backup, check, repair

START = int(datetime.fromisoformat("2026-10-20T00:00+00:00").timestamp() * 1000)
HOUR = 3_600_000


@contextmanager
def shell(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of the sqlite3 module as it is, without anything of ours."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def count_rows(path: Path, table: str) -> int:
    with shell(path) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_an_answer_that_was_open_is_added_to_the_sums_of_its_session(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, assistant("a"), model="m", cost=1.0, time=START)
    handle = store.append(session, assistant("b"), model="m", open=True, time=START)
    store._core.writer.idle()
    store.finish(session, handle, cost=2.0, tokens={"input": 5})
    # Nothing of the session is summed up again for it.
    assert count_rows(store.path, "usage_waiting") == 0
    with shell(store.path) as connection:
        cells = connection.execute(
            "SELECT messages, cost, tokens_input FROM usage_hour"
        ).fetchall()
    assert cells == [(2, 3.0, 5)]
    (row,) = store.usage(by=())
    assert (row.messages, row.cost, row.tokens.input) == (2, 3.0, 5)


def test_the_number_of_a_message_that_is_given_again_is_summed_up(store: Store) -> None:
    session = store.create_session()
    kept = store.append(session, assistant("a"), cost=1.0)
    store.append(session, assistant("b"), cost=2.0)
    store._core.writer.idle()
    store.truncate(session, after=kept)
    store.append(session, assistant("c"), cost=4.0)
    assert [row.cost for row in store.usage(by=())] == [5.0]
    store._core.writer.idle()
    assert [row.cost for row in store.usage(by=())] == [5.0]
    assert count_rows(store.path, "usage_waiting") == 0


@pytest.mark.parametrize("order", [(2, 3), (3, 2), (3,), (1, 2, 3), (3, 1)])
def test_numbers_are_summed_up_again_whatever_the_order_in_which_they_were_deleted(
    store: Store, order: tuple[int, ...]
) -> None:
    session = store.create_session()
    for number in range(3):
        store.append(session, assistant("a"), cost=1.0)
        if number == 1:
            store._core.writer.idle()
    with shell(store.path) as connection:
        for rid in order:
            connection.execute("DELETE FROM message WHERE rid = ?", (rid,))
    other = store.create_session()
    for _ in range(2):
        store.append(other, assistant("b"), cost=2.0)
    assert [row.cost for row in store.usage(by=())] == [7.0 - len(order)]


def test_a_total_costs_the_same_for_ten_times_the_messages(tmp_path: Path) -> None:
    steps = []
    for name, count in (("few", 20), ("many", 200)):
        with Store.open(tmp_path / f"{name}.db", durability="normal") as store:
            for _ in range(5):
                session = store.create_session()
                with store.effects() as fx:
                    for number in range(count):
                        fx.append(
                            session, assistant("a"), cost=1.0, time=START + number
                        )
            store._core.writer.idle()
            steps.append(
                [count_steps(store, by) for by in (("day", "model"), ("project",), ())]
            )
    few, many = steps
    for one, other in zip(few, many, strict=True):
        assert other <= one + 1


def count_steps(store: Store, by: tuple[str, ...]) -> int:
    """Return hundreds of steps that SQLite takes for a total."""
    taken: list[int] = []
    connection = store._core.readers.checkout()
    connection.set_progress_handler(lambda: taken.append(1), 100)
    store._core.readers.give_back(connection)
    assert store.usage(by=by)
    connection.set_progress_handler(None, 100)
    return len(taken)


def test_a_backup_and_a_closed_database_have_all_in_the_sums(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    with Store.open(path) as store:
        store.append(store.create_session(), assistant("a"), cost=1.0)
        assert count_rows(path, "usage_hour") == 0
        backup(store, copy)
        assert count_rows(copy, "usage_hour") == 1
    assert count_rows(path, "usage_hour") == 1


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM usage_hour", "DELETE FROM meta WHERE key = 'usage_to'",
     "UPDATE meta SET value = '1' WHERE key = 'usage_to'", "DELETE FROM usage_model",
     "INSERT INTO usage_hour SELECT NULL, session_rid, hour + 1, model_rid, hidden, project_rid, "
     "1, 1.0, 1, 1, 1, 1, 1, 1 FROM usage_hour"],
)  # fmt: skip
def test_sums_that_a_shell_changed_are_found_and_made_again(
    store: Store, change: str
) -> None:
    for number in range(3):
        session = store.create_session()
        store.append(session, assistant("a"), cost=1.0, time=START + number * HOUR)
        store.append(session, assistant("b"), tokens={"input": 3}, time=START)
    store._core.writer.idle()
    with shell(store.path) as connection:
        connection.execute(change)
    assert "usage" in [found.check for found in check(store)]
    assert repair(store).left == []
    (row,) = store.usage(by=())
    assert (row.sessions, row.messages, row.cost, row.tokens.input) == (3, 6, 3.0, 9)
    assert count_rows(store.path, "usage_hour") == 6
