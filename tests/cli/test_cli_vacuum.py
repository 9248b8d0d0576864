"""Returning space to the disk while other processes have the database open."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command_line import Run, Story

from sessiondb import Store, user
from sessiondb.errors import BusyError, StorageFullError
from sessiondb.maintenance import check, plan_vacuum, vacuum

pytestmark = pytest.mark.slow


@pytest.fixture
def large(store: Store) -> str:
    """A session of two megabytes."""
    session = store.create_session(title="Large")
    with store.effects() as fx:
        for _ in range(20):
            fx.append(session, user(os.urandom(50_000).hex()))
    return session.id


def test_the_file_shrinks_after_a_large_session_was_removed(
    sessiondb: Run, story: Story, large: str, store: Store, database: Path
) -> None:
    store.close()
    before = database.stat().st_size
    assert before > 2_000_000
    assert sessiondb("rm", large, "--yes").code == 0
    assert database.stat().st_size >= before
    ran = sessiondb("vacuum", "--json")
    assert ran.code == 0
    assert database.stat().st_size == ran.json["bytes_after"] < before / 4
    assert ran.json["bytes_before"] >= before
    assert (ran.json["truncated"], ran.json["dry_run"]) == (True, False)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len(sessiondb("list", "-a", "--json").json["sessions"]) == 3
    assert sessiondb("search", "-a", "generator", "--json").json["hits"]
    assert sessiondb("check").code == 0


def test_rows_of_a_removed_session_go_first(
    store: Store, large: str, story: Story
) -> None:
    store.delete(large)
    assert plan_vacuum(store).deleted_sessions == 1
    done = vacuum(store)
    assert done.bytes_after < done.bytes_before / 4
    assert store.path.stat().st_size == done.bytes_after
    assert (
        not os.path.exists(f"{store.path}-wal")
        or not os.stat(f"{store.path}-wal").st_size
    )
    assert plan_vacuum(store).bytes_free == 0
    assert check(store) == []


def test_a_dry_run_changes_nothing(sessiondb: Run, large: str, store: Store) -> None:
    store.delete(large)
    store.reap()
    before = plan_vacuum(store)
    ran = sessiondb("vacuum", "--dry-run")
    assert ran.code == 0
    assert "of it free; at most" in ran.out
    assert "the vacuum needs" in ran.out
    planned = sessiondb("vacuum", "--dry-run", "--json").json
    assert (planned["bytes_before"], planned["dry_run"]) == (before.bytes_before, True)
    assert plan_vacuum(store).bytes_free == before.bytes_free > 2_000_000


def test_vacuum_runs_beside_a_writer_and_an_open_store(
    store: Store, large: str
) -> None:
    session = store.create_session(title="Another")
    store.delete(large)
    stop = threading.Event()

    def write() -> None:
        # With pauses: what is written while the vacuum waits counts below, too.
        while not stop.wait(0.002):
            store.append(session, user("more"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Store.open(store.path) as other:
            assert vacuum(other).bytes_after < 1_000_000
    finally:
        stop.set()
        writer.join()
    assert store.session(session).message_count > 0
    assert check(store) == []


def test_a_reader_in_another_process_keeps_its_state_and_the_file_its_size(
    store: Store, large: str
) -> None:
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN'); print(c.execute('SELECT count(*) FROM message').fetchone()[0])\n"
        "sys.stdout.flush(); sys.stdin.read()\n"
        "print(c.execute('SELECT count(*) FROM message').fetchone()[0])"
    )
    command = [sys.executable, "-c", code, str(store.path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "20\n"
        store.delete(large)
        done = vacuum(store, busy_timeout=0.1)
        assert done.truncated is False
        assert reader.communicate()[0] == "20\n"
    assert vacuum(store).truncated
    assert store.path.stat().st_size < 1_000_000


def test_a_vacuum_behind_a_long_write_is_busy(
    sessiondb: Run, large: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Store.open
    monkeypatch.setattr(
        Store, "open", lambda *a, **k: patience(*a, busy_timeout=0.05, **k)
    )
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = sessiondb("vacuum")
        with Store.open(store.path) as own, pytest.raises(BusyError):
            vacuum(own, busy_timeout=0.05)
    assert (ran.code, ran.out) == (5, "")
    assert len(ran.err.splitlines()) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if (
        os.getuid()
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_vacuum_without_space_is_reported_and_loses_nothing(
    small_disk: Path,
    sessiondb: Run,
    large: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (small_disk / "filler").write_bytes(bytes(5_000_000))
    monkeypatch.setenv("SQLITE_TMPDIR", str(small_disk))
    with pytest.raises(StorageFullError, match=str(small_disk)):
        vacuum(store)
    ran = sessiondb("vacuum")
    assert ran.code == 1
    failed, hint = ran.err.splitlines()[-2:]
    assert failed.startswith("sessiondb: a vacuum needs ")
    assert "SQLITE_TMPDIR" in hint
    assert store.session(large).message_count == 20


def test_a_database_that_is_missing_is_not_made(sessiondb: Run, database: Path) -> None:
    assert sessiondb("vacuum").code == 3
    assert not database.exists()


def test_a_terminal_prompts_and_a_pipe_does_not(
    terminal: Run, sessiondb: Run, story: Story, store: Store
) -> None:
    ran = terminal("vacuum", typed="no\n")
    assert "Type yes to vacuum: " in ran.out
    assert ran.code == 1
    assert terminal("vacuum", typed="yes\n").code == 0
    assert terminal("vacuum --yes").code == 0
    assert sessiondb("vacuum").code == 0
