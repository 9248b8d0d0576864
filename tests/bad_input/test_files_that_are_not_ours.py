"""A path that holds something else, something newer or something broken: refused, never written."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sessiondb import ALL, AsyncStore, Store, assistant, tool, user
from sessiondb.cli.app import app
from sessiondb.engine.sqlite import migrations
from sessiondb.errors import (
    CorruptionError,
    NotADatabaseError,
    SchemaVersionError,
    SessionDBError,
    StorageError,
)
from sessiondb.maintenance import backup, check


@pytest.fixture(scope="module")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "sessions.db"
    with Store.open(path, durability="normal") as store:
        for number in range(8):
            session = store.create_session(title=f"session {number}")
            with store.effects() as unit:
                for turn in range(25):
                    unit.append(session, user(f"question {turn} " * 20))
                    call = tool(
                        "bash", {"command": f"ls {turn}"}, output=f"file {turn}\n" * 30
                    )
                    unit.append(session, assistant("answer", call), cost=0.01)
    return path


@pytest.fixture
def path(tmp_path: Path, _filled: Path) -> Path:
    """Return a database with enough in it to be worth a page of each kind."""
    return shutil.copy(_filled, tmp_path / "sessions.db")


def _all_files(path: Path) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()
    }


def _kept(path: Path) -> dict[str, bytes]:
    """Return the files that must stay: all but the empty ones that SQLite or we may leave."""
    left = (".lock", "-shm")
    files = _all_files(path).items()
    return {
        n: d for n, d in files if not n.endswith(left) and (d or not n.endswith("-wal"))
    }


_OPENINGS: list[Callable[[Path], object]] = [
    lambda path: Store.open(path),
    lambda path: Store.open(path, create=False),
    lambda path: Store.open(path, read_only=True),
    lambda path: migrations.upgrade(path),
]
_HOW = ["open", "open existing", "read", "migrate"]


# -- not ours ------------------------------------------------------------------


def _another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE session (id TEXT PRIMARY KEY, title TEXT)")
        connection.execute("INSERT INTO session VALUES ('ses_1', 'precious')")
        connection.commit()


def _with_application_id(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id=0x46464646")


_STRANGERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("my notes\n"),
    "one byte": lambda path: path.write_bytes(b"x"),
    "random bytes": lambda path: path.write_bytes(random.Random(1).randbytes(100_000)),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "half a header": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(30)),
    "another program": _another_program,
    "an application id": _with_application_id,
}


@pytest.mark.parametrize("opening", _OPENINGS, ids=_HOW)
@pytest.mark.parametrize("stranger", _STRANGERS)
def test_a_file_that_is_not_ours_is_refused_and_left_as_it_is(
    tmp_path: Path, stranger: str, opening: Callable[[Path], object]
) -> None:
    path = tmp_path / "sessions.db"
    _STRANGERS[stranger](path)
    before = _kept(path)
    with pytest.raises((NotADatabaseError, CorruptionError)) as raised:
        opening(path)
    assert raised.value.exit_code in (1, 4)
    assert raised.value.hint
    assert _kept(path) == before


def test_the_log_of_another_program_that_crashed_stays_in_its_log(
    tmp_path: Path,
) -> None:
    live, path = tmp_path / "live.db", tmp_path / "crashed" / "agent.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(live)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE session (id TEXT)")
        for suffix in ("", "-wal"):
            subprocess.run(["cp", f"{live}{suffix}", f"{path}{suffix}"], check=True)
    before = _kept(path)
    assert len(before["agent.db-wal"]) > 0
    with pytest.raises(NotADatabaseError):
        Store.open(path)
    assert _kept(path) == before


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    Store.open(path.with_name("real.db")).close()
    path.symlink_to(path.with_name("real.db"))


def _dangling(path: Path) -> None:
    path.symlink_to(path.with_name("missing.db"))


@pytest.mark.parametrize("opening", _OPENINGS, ids=_HOW)
@pytest.mark.parametrize("make", [_folder, _pipe, _link, _dangling])
def test_a_path_to_anything_but_a_regular_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], opening: Callable[[Path], object]
) -> None:
    path = tmp_path / "sessions.db"
    make(path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SessionDBError):
        opening(path)
    assert sorted(tmp_path.iterdir()) == before


def test_a_device_is_not_a_database() -> None:
    with pytest.raises(NotADatabaseError, match="not a file"):
        Store.open("/dev/null")


# -- newer -----------------------------------------------------------------------


def _newer(path: Path, reader: str, writer: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=99")
        for key, value in (("min_reader", reader), ("min_writer", writer)):
            connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
        connection.commit()


@pytest.mark.parametrize("opening", _OPENINGS, ids=_HOW)
def test_a_file_too_new_is_refused_with_nothing_written(
    path: Path, opening: Callable[[Path], object]
) -> None:
    _newer(path, "99.0.0", "99.0.0")
    before = _kept(path)
    with pytest.raises(SchemaVersionError) as raised:
        opening(path)
    assert (raised.value.exit_code, raised.value.retryable) == (6, False)
    assert "newer" in (raised.value.hint or "")
    assert _kept(path) == before


def test_a_newer_file_that_allows_it_is_read_and_not_written(path: Path) -> None:
    _newer(path, "0.1.0", "99.0.0")
    before = path.read_bytes()
    with Store.open(path) as store:
        assert len(store.sessions(project=ALL).items) == 8
        for write in (
            store.create_session,
            lambda: store.fork(store.sessions(project=ALL).items[0]),
        ):
            with pytest.raises(SchemaVersionError):
                write()
        with pytest.raises(SchemaVersionError), store.effects() as unit:
            unit.create_session()
    assert path.read_bytes() == before


def test_a_migration_by_another_process_is_noticed_by_the_next_commit(
    path: Path,
) -> None:
    with Store.open(path) as store:
        store.create_session(title="before")
        _newer(path, "99.0.0", "99.0.0")
        with pytest.raises(SchemaVersionError):
            store.create_session(title="after")
    with closing(sqlite3.connect(path)) as connection:
        titles = {title for (title,) in connection.execute("SELECT title FROM session")}
    assert "before" in titles
    assert "after" not in titles


@pytest.mark.parametrize(
    "words", [["list"], ["check"], ["migrate"], ["sql", "SELECT 1"]]
)
def test_commands_on_a_newer_file_end_with_code_6(path: Path, words: list[str]) -> None:
    _newer(path, "99.0.0", "99.0.0")
    ran = CliRunner().invoke(app, ["--db", str(path), *words])
    if words[0] == "sql":
        assert ran.exit_code in (0, 6), "plain SQL needs no schema of ours"
    else:
        assert ran.exit_code == 6, ran.stderr
        assert "newer" in ran.stderr


# -- damaged ---------------------------------------------------------------------


def _use(path: Path) -> None:
    with Store.open(path) as store:
        for session in store.sessions(project=ALL, empty=True):
            store.messages(session, branches=True)
            store.context(session)
        store.search("question", all_hits=True, limit=200)
        store.usage()
        session = store.create_session(title="new")
        store.append(session, user("written into a damaged file"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_flipped_pages_give_a_typed_error_or_true_answers_and_no_crash(
    path: Path, seed: int
) -> None:
    chance, data = random.Random(seed), bytearray(path.read_bytes())
    pages = len(data) // 4096
    for page in {
        0 if seed == 0 else chance.randrange(pages) for _ in range(1 + pages // 8)
    }:
        start = page * 4096 + (100 if page == 0 else 0)
        data[start : page * 4096 + 4096] = chance.randbytes(page * 4096 + 4096 - start)
    path.write_bytes(data)
    with pytest.raises(SessionDBError) as raised:
        _use(path)
    assert isinstance(raised.value, CorruptionError | NotADatabaseError), raised.value
    findings: list[Any] = []
    with pytest.raises(SessionDBError):
        with Store.open(path) as store:
            findings = check(store)
        raise CorruptionError if findings else AssertionError("check found nothing")


@pytest.mark.parametrize("keep", [0.3, 0.7])
def test_a_truncated_file_is_reported_as_damaged_and_never_shortened_further(
    path: Path, keep: float
) -> None:
    size = int(path.stat().st_size * keep) // 4096 * 4096
    os.truncate(path, size)
    with pytest.raises(CorruptionError) as raised:
        _use(path)
    assert raised.value.exit_code == 4
    assert "check" in (raised.value.hint or "")
    assert path.stat().st_size >= size


def _copied_while_open(path: Path, to: Path) -> str:
    """Write a session into the -wal and copy the files as a crash would leave them."""
    with Store.open(path) as store:
        session = store.create_session(title="in the log")
        for number in range(20):
            store.append(session, user(f"line {number}"))
        for suffix in ("", "-wal"):
            subprocess.run(["cp", f"{path}{suffix}", f"{to}{suffix}"], check=True)
    return session.id


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 1000, 4096 * 5])
def test_a_torn_log_keeps_every_complete_commit_before_the_tear(
    path: Path, tmp_path: Path, cut: int
) -> None:
    copy = tmp_path / "copy.db"
    session = _copied_while_open(path, copy)
    wal = Path(f"{copy}-wal")
    os.truncate(wal, wal.stat().st_size - cut)
    with Store.open(copy) as store:
        texts = [message.text for message in store.messages(session)]
        assert texts == [f"line {number}" for number in range(len(texts))]
        assert 10 < len(texts) < 20
        assert check(store) == []
        store.append(session, user("goes on"))


@pytest.mark.slow
def test_a_log_with_a_flipped_byte_ends_there(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    session = _copied_while_open(path, copy)
    wal = Path(f"{copy}-wal")
    data = bytearray(wal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    wal.write_bytes(data)
    with Store.open(copy) as store:
        texts = [message.text for message in store.messages(session)]
        assert texts == [f"line {number}" for number in range(len(texts))]
        assert len(texts) < 20
        assert check(store) == []


async def test_an_async_store_raises_the_same_errors_for_bad_files(
    path: Path, tmp_path: Path
) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(CorruptionError):
        async with AsyncStore.open(path) as store:
            for session in await store.sessions(project=ALL):
                await store.messages(session)
    (tmp_path / "notes.txt").write_text("my notes")
    with pytest.raises(NotADatabaseError):
        await AsyncStore.open(tmp_path / "notes.txt")


def test_one_damaged_session_does_not_hide_the_others(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        sid, rid = connection.execute(
            "SELECT p.session_id, p.rid FROM part AS p WHERE p.input IS NOT NULL LIMIT 1"
        ).fetchone()
        connection.execute("UPDATE part SET data = x'c1' WHERE rid = ?", (rid,))
        connection.commit()
    with Store.open(path) as store:
        with pytest.raises(SessionDBError, match="decoded"):
            store.messages(sid)
        others = [item for item in store.sessions(project=ALL) if item.id != sid]
        assert len(others) == 7
        assert all(store.messages(item) for item in others)


def test_a_backup_never_replaces_a_file_that_is_not_one(
    path: Path, tmp_path: Path
) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("my notes")
    with Store.open(path) as store, pytest.raises((SessionDBError, FileExistsError)):
        backup(store, target)
    assert target.read_text() == "my notes"


def test_a_store_can_be_opened_where_a_refused_file_was_put_right(path: Path) -> None:
    good = path.with_name("good.db")
    shutil.copyfile(path, good)
    path.write_bytes(b"broken" * 1000)
    with pytest.raises(NotADatabaseError):
        Store.open(path)
    os.replace(good, path)
    _use(path)
    with pytest.raises(StorageError):
        Store.open(path / "below.db")
