"""The write-ahead log stays small: emptied above 8 MB, when idle, and at the end."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sessiondb import AsyncStore, Store, file, user
from sessiondb.engine.default import ENGINE, target_at
from sessiondb.engine.sqlite.write_ahead_log import write_room
from sessiondb.writer.connection import LOG_BYTES

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def _size(path: Path) -> int:
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def _until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_the_log_stays_bounded_while_much_is_written(path: Path) -> None:
    largest = 0
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        for _ in range(60):
            store.append(session, user(os.urandom(250_000).hex()))
            largest = max(largest, _size(path))
    assert path.stat().st_size > 30 * MEGABYTE
    assert largest <= 2 * LOG_BYTES + MEGABYTE


def test_who_commits_shortens_a_log_that_no_other_thread_does(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        for _ in range(40):
            store.append(session, user(os.urandom(250_000).hex()))
            assert _size(path) <= 2 * LOG_BYTES + MEGABYTE


def test_a_reader_in_an_old_snapshot_delays_it_and_breaks_nothing(path: Path) -> None:
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        store.append(session, user("first"))
        with store.connection() as reading:
            reading.exec_driver_sql("BEGIN")
            before = reading.exec_driver_sql("SELECT count(*) FROM message").scalar()
            for _ in range(24):
                store.append(session, user(os.urandom(250_000).hex()))
            assert (
                reading.exec_driver_sql("SELECT count(*) FROM message").scalar()
                == before
            )
            assert _size(path) > LOG_BYTES
        _until(lambda: _size(path) == 0)


def test_the_log_of_a_busy_writer_is_overwritten_and_survives_a_crash(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a loaded machine it would be idle in between.
    monkeypatch.setattr("sessiondb.writer.service.IDLE_SECONDS", 60)
    crashed = tmp_path / "crashed.db"
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        while _size(path) != LOG_BYTES or target_at(path).log_reaches(MEGABYTE):
            store.append(session, user(file(content=os.urandom(200_000))))
        for number in range(4):
            store.append(session, user(f"acknowledged {number}"))
        assert _size(path) == LOG_BYTES
        for suffix in ("", "-wal"):
            subprocess.run(["cp", f"{path}{suffix}", f"{crashed}{suffix}"], check=True)
    with Store.open(crashed) as store:
        newest = [message.text for message in store.messages(session.id, last=4)]
    assert newest == [f"acknowledged {number}" for number in range(4)]


def test_a_log_of_few_large_commits_gets_no_room(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.writer.service.IDLE_SECONDS", 60)
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        for _ in range(6):
            store.append(session, user(file(content=os.urandom(1_500_000))))
        _until(lambda: _size(path) == 0)


def test_a_commit_succeeds_although_no_file_descriptor_is_left(path: Path) -> None:
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        while _size(path) != LOG_BYTES:
            store.append(session, user(file(content=os.urandom(200_000))))

        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = [os.open(os.devnull, os.O_RDONLY)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 8, limits[1]))
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.dup(taken[0]))
            assert not target_at(path).log_reaches(0)
            handle = store.append(session, user("acknowledged"))
        finally:
            for descriptor in taken:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert store.message(session, handle).text == "acknowledged"


def test_a_log_that_began_again_has_only_its_new_frames(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (zeroblob(300000))")
        assert target_at(path).log_reaches(300_000)
        assert not target_at(path).log_reaches(400_000)
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
        assert _size(path) > 300_000
        assert target_at(path).log_reaches(100_000)
        assert not target_at(path).log_reaches(200_000)


def test_nothing_is_written_over_a_log_that_others_began(path: Path) -> None:
    with Store.open(path) as store:
        session = store.create_session()
    with closing(target_at(path).connect_writer()) as connection:
        connection.execute("UPDATE session SET title = 'kept'")
        size = _size(path)
        write_room(connection, MEGABYTE)
        assert _size(path) == size
        assert connection.execute("SELECT title FROM session").fetchone() == ("kept",)
        assert ENGINE.checkpoint(connection, room=MEGABYTE)
        assert _size(path) == MEGABYTE
        connection.execute("UPDATE session SET title = 'kept, too'")
    with Store.open(path) as store:
        assert store.session(session.id).title == "kept, too"


def test_a_store_that_is_left_alone_empties_it(path: Path) -> None:
    with Store.open(path) as store:
        store.append(store.create_session(), user("Hello"))
        assert _size(path) > 0
        _until(lambda: _size(path) == 0)
        store.create_session()
        assert _size(path) > 0
        _until(lambda: _size(path) == 0)


async def test_an_async_store_that_is_left_alone_empties_it(path: Path) -> None:
    async with AsyncStore.open(path) as store:
        await store.append(await store.create_session(), user("Hello"))
        assert _size(path) > 0
        _until(lambda: _size(path) == 0)


def test_nothing_but_the_database_and_its_lock_remains_after_the_last_one_closed(
    path: Path,
) -> None:
    with Store.open(path) as one, Store.open(path) as two:
        one.append(two.create_session(), user("Hello"))
    assert {file.name for file in path.parent.iterdir()} == {
        "sessions.db",
        "sessions.db.lock",
    }


def test_commits_left_in_the_wal_by_a_crash_are_read_at_the_next_start(
    path: Path, tmp_path: Path
) -> None:
    crashed = tmp_path / "crashed.db"
    with Store.open(path) as store:
        session = store.create_session()
        store.append(session, user("acknowledged"))
        for suffix in ("", "-wal"):
            subprocess.run(["cp", f"{path}{suffix}", f"{crashed}{suffix}"], check=True)
    assert _size(crashed) > 0
    with Store.open(crashed) as store:
        assert [message.text for message in store.messages(session.id)] == [
            "acknowledged"
        ]


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_and_the_other_settings_are_what_was_asked_for(
    path: Path, durability: str, level: int
) -> None:
    with Store.open(path, durability=durability) as store:
        store.create_session()
        connection = store._core.writer.connection.inner
        assert connection is not None

        def pragma(name: str) -> object:
            return connection.execute(f"PRAGMA {name}").fetchone()[0]

        assert pragma("synchronous") == level
        assert (pragma("journal_mode"), pragma("foreign_keys")) == ("wal", 1)
        # It waits by itself: SQLite's own waiting starves a process among several.
        assert (pragma("busy_timeout"), pragma("mmap_size")) == (0, 0)
        assert pragma("journal_size_limit") == 16 * MEGABYTE
        with store.effects(durability="full") as unit:
            unit.create_session()
        assert pragma("synchronous") == 2, "the strictest of a batch wins"


def test_a_database_in_wal_mode_stays_one_for_plain_sqlite3(path: Path) -> None:
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
