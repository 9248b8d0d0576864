"""Databases that can be read and not written: by request, by mode, by place.

Root may write everywhere, so these tests become another user in a forked child.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessiondb import ALL, AsyncStore, Store, user
from sessiondb.errors import (
    NotADatabaseError,
    NotFoundError,
    ReadOnlyError,
    SchemaVersionError,
    SessionDBError,
    StorageError,
)

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that other users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def path(folder: Path) -> Path:
    path = folder / "sessions.db"
    with Store.open(path) as store:
        store.append(store.create_session(title="kept"), user("words to find"))
    return path


def _unprivileged(work: Callable[[], object], *owned: Path) -> None:
    """Run *work* as a user subject to file modes; *owned* are files of that user."""
    if os.geteuid() != 0:
        work()
        return
    for file in owned:
        os.chown(file, NOBODY, NOBODY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
        except BaseException:  # noqa: BLE001  it must not continue as a second pytest
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, (
        "see the output of the child"
    )


def _reads(store: Store) -> None:
    session = store.sessions(project=ALL).items[0]
    assert session.title == "kept"
    assert store.messages(session)[0].text == "words to find"
    assert store.search("find").items
    assert list(store.walk(session))
    assert store.usage(by=("source",)) == []


def _writes() -> list[Callable[[Store], object]]:
    def streamed(store: Store) -> None:
        with store.stream(store.sessions(project=ALL).items[0]):
            raise AssertionError("nothing can be streamed")

    def queued(store: Store) -> None:
        with store.effects() as unit:
            unit.create_session()

    return [
        lambda store: store.create_session(),
        lambda store: store.append(store.sessions(project=ALL).items[0], user("no")),
        lambda store: store.fork(store.sessions(project=ALL).items[0]),
        lambda store: store.delete(store.sessions(project=ALL).items[0]),
        lambda store: store.recover(store.sessions(project=ALL).items[0]),
        lambda store: store.reap(),
        streamed,
        queued,
    ]


def test_a_store_opened_for_reading_reads_and_never_writes(path: Path) -> None:
    before = path.read_bytes()
    with Store.open(path, read_only=True) as store:
        _reads(store)
        for write in _writes():
            with pytest.raises(ReadOnlyError, match="read-only"):
                write(store)
        with (
            store.connection() as connection,
            pytest.raises(Exception, match="readonly"),
        ):
            connection.exec_driver_sql("DELETE FROM session")
    assert path.read_bytes() == before


async def test_a_read_only_async_store_reads_and_never_writes(path: Path) -> None:
    async with AsyncStore.open(path, read_only=True) as store:
        assert (await store.sessions(project=ALL)).items[0].title == "kept"
        with pytest.raises(ReadOnlyError):
            await store.create_session()
        with pytest.raises(ReadOnlyError):
            await store.reap()


def test_a_reader_sees_commits_of_others_while_it_is_open(path: Path) -> None:
    with Store.open(path) as writer, Store.open(path, read_only=True) as reader:
        session = writer.create_session(title="new")
        writer.append(session, user("committed"))
        assert [message.text for message in reader.messages(session)] == ["committed"]


def test_a_missing_file_is_not_made_for_reading(folder: Path) -> None:
    with pytest.raises(NotFoundError):
        Store.open(folder / "missing" / "sessions.db", read_only=True)
    with pytest.raises(NotFoundError):
        Store.open(folder / "missing.db", create=False)
    assert list(folder.iterdir()) == []


def test_an_empty_file_is_refused_and_left_empty_by_a_read_only_store(
    folder: Path,
) -> None:
    (folder / "empty.db").touch()
    with pytest.raises(NotADatabaseError):
        Store.open(folder / "empty.db", read_only=True)
    assert (folder / "empty.db").stat().st_size == 0


def test_an_older_file_is_refused_for_reading_and_left_as_it_is(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version=0")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match="older"):
        Store.open(path, read_only=True)
    assert path.read_bytes() == before


def test_a_file_of_mode_0400_is_read_and_says_so_when_written(path: Path) -> None:
    def work() -> None:
        with Store.open(path, read_only=True) as store:
            _reads(store)
        with pytest.raises(ReadOnlyError) as raised, Store.open(path) as store:
            store.create_session()
        assert raised.value.hint
        path.chmod(0o600)
        with Store.open(path) as store:
            store.append(store.create_session(title="again"), user("works again"))
            assert len(store.sessions(project=ALL).items) == 2

    path.chmod(0o400)
    path.parent.chmod(0o777)
    _unprivileged(work, path)


def test_in_a_folder_that_cannot_be_written_a_database_is_read_as_it_lies(
    path: Path,
) -> None:
    def work() -> None:
        with Store.open(path, read_only=True) as store:
            _reads(store)
        with pytest.raises(StorageError):
            Store.open(path.with_name("new.db"))
        with pytest.raises(SessionDBError), Store.open(path) as store:
            store.create_session()

    path.chmod(0o644)
    path.parent.chmod(0o555)
    before = path.read_bytes()
    _unprivileged(work)
    assert [file.name for file in path.parent.iterdir()] in (
        ["sessions.db"],
        ["sessions.db", "sessions.db.lock"],
        ["sessions.db.lock", "sessions.db"],
    )
    assert path.read_bytes() == before


def test_a_wal_in_a_read_only_folder_is_never_ignored(path: Path, folder: Path) -> None:
    place = folder / "place"
    place.mkdir()
    with Store.open(path) as store:
        store.append(store.create_session(title="newest"), user("only in the -wal"))
        for suffix in ("", "-wal"):
            subprocess.run(
                ["cp", f"{path}{suffix}", place / f"sessions.db{suffix}"], check=True
            )
            (place / f"sessions.db{suffix}").chmod(0o644)
    place.chmod(0o555)

    def work() -> None:
        with pytest.raises(ReadOnlyError, match="-wal") as raised:
            Store.open(place / "sessions.db", read_only=True)
        assert "copy" in (raised.value.hint or "")

    _unprivileged(work)
    place.chmod(0o755)
    with Store.open(place / "sessions.db", read_only=True) as store:
        assert {session.title for session in store.sessions(project=ALL)} == {
            "kept",
            "newest",
        }


def test_a_folder_that_cannot_be_entered_is_a_storage_error(path: Path) -> None:
    def work() -> None:
        for how in ({}, {"read_only": True}, {"create": False}):
            with pytest.raises(StorageError):
                Store.open(path, **how)  # type: ignore[arg-type]

    path.parent.chmod(0o000)
    _unprivileged(work)
