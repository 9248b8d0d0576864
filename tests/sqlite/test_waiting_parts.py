"""How many parts wait for the index of a file, and what a shell and a backup have of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sessiondb import Store, user
from sessiondb.maintenance import backup


@contextmanager
def shell(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of the sqlite3 module as it is, without anything of ours."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def count_waiting(path: Path) -> int:
    with shell(path) as connection:
        return count_waiting_in(connection)


def count_waiting_in(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM part_search_waiting").fetchone()
    return int(row[0])


def test_a_part_waits_until_there_is_much_text(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.writer.service.IDLE_SECONDS", 60)
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        store.append(session, user("one"))
        assert count_waiting(path) == 1
        store.append(session, user("word " * 60_000))
        assert count_waiting(path) == 0


def test_a_number_of_a_part_that_waited_and_was_deleted_is_not_given_again(
    store: Store,
) -> None:
    session = store.create_session()
    for number in range(3):
        store.append(session, user(f"needle {number}"))
    with shell(store.path) as connection:
        connection.execute("DELETE FROM part WHERE rid = (SELECT max(rid) FROM part)")
        assert connection.execute("SELECT max(rid) FROM part").fetchone() == (2,)
    store.append(session, user("needle 3"))
    with shell(store.path) as connection:
        assert connection.execute("SELECT max(rid) FROM part").fetchone() == (4,)
    assert len(store.search("needle", all_hits=True)) == 3


def test_text_that_waits_and_is_not_utf_8_does_not_keep_the_rest_from_being_found(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, user("first needle"))
    store.append(session, user("second needle"))
    with shell(store.path) as connection:
        connection.execute(
            "UPDATE part SET text = CAST(x'ff6e6565646c65ff' AS TEXT) WHERE rid = 1"
        )
    assert [hit.seq for hit in store.search("second")] == [2]


def test_a_backup_and_a_closed_database_have_all_in_the_index(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    with Store.open(path) as store:
        store.append(store.create_session(), user("needle"))
        assert count_waiting(path) == 1
        backup(store, copy)
        assert count_waiting(copy) == 0
    assert count_waiting(path) == 0
    for file in (path, copy):
        with shell(file) as connection:
            sql = "SELECT rowid FROM part_search WHERE part_search MATCH 'needle'"
            assert connection.execute(sql).fetchall() == [(1,)]
