"""A disk without space: a typed error, nothing acknowledged is lost, writes work again later."""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
import subprocess
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiondb import ALL, AsyncStore, Store, assistant, tool, user
from sessiondb.engine.sqlite import migrations
from sessiondb.errors import StorageError, StorageFullError
from sessiondb.maintenance import backup, check
from sessiondb.model import Imported, SourceMessage, SourceSession

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations" / "versions"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def _fill(disk: Path, spare: int = 0) -> None:
    """Leave *spare* bytes of the disk."""
    with (
        (disk / "filler").open("ab", buffering=0) as file,
        contextlib.suppress(OSError),
    ):
        while True:
            file.write(bytes(4096))
    size = (disk / "filler").stat().st_size
    os.truncate(disk / "filler", max(0, size - spare))


def _empty(disk: Path) -> None:
    (disk / "filler").unlink()


def _assert_intact(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with Store.open(path) as store:
        assert check(store) == []


@pytest.fixture
def store(disk: Path) -> Iterator[Store]:
    with Store.open(disk / "sessions.db") as store:
        for number in range(4):
            session = store.create_session(title=f"session {number}")
            with store.effects() as unit:
                for turn in range(20):
                    unit.append(session, user(f"question {turn}"))
                    unit.append(
                        session,
                        assistant(
                            tool("sh", {"n": turn}, output=os.urandom(600).hex())
                        ),
                    )
        yield store
    _assert_intact(store.path)


def _texts(store: Store, session: Any) -> list[str | None]:
    return [message.text for message in store.messages(session)]


def test_appends_fail_with_a_typed_error_and_work_again_once_there_is_space(
    disk: Path, store: Store
) -> None:
    session = store.create_session(title="written until it is full")
    acknowledged = []
    _fill(disk, spare=200_000)
    with pytest.raises(StorageError) as raised:
        for number in range(1000):
            text = f"{number} {os.urandom(2000).hex()}"
            store.append(session, user(text))
            acknowledged.append(text)
    error = raised.value
    assert isinstance(error, StorageFullError | StorageError)
    assert isinstance(error, OSError)
    assert (error.exit_code, error.retryable) == (1, True)
    assert "space" in (error.hint or "")
    assert acknowledged
    assert _texts(store, session) == acknowledged, "reading needs no space"
    _empty(disk)
    store.append(session, user("space again"))
    assert _texts(store, session) == [*acknowledged, "space again"]


def _streamed(store: Store, session: Any) -> None:
    with store.stream(session) as out:
        part = out.text()
        for _ in range(40):
            part.add(os.urandom(4000).hex())
            out.flush()


def _imported(store: Store, _: Any) -> None:
    draft = user("a large file\n" + os.urandom(MEGABYTE).hex(), id="m1")
    found = SourceSession(
        "elsewhere", "s1", "/nowhere/log", "digest", (SourceMessage(draft),)
    )
    assert [item for item in store.ingest([found]) if isinstance(item, Imported)]


_WRITES: dict[str, Callable[[Store, object], object]] = {
    "create": lambda store, _: store.create_session(
        metadata={"large": os.urandom(MEGABYTE).hex()}
    ),
    "fork": lambda store, session: [store.fork(session) for _ in range(200)],
    "stream": _streamed,
    "import": _imported,
    "delete": lambda store, _: [
        (store.delete(session), store.reap()) for session in store.sessions(project=ALL)
    ],
    "backup": lambda store, _: backup(store, store.path.with_name("copy.db")),
    "unit": lambda store, session: store.append(
        session, user(os.urandom(MEGABYTE).hex())
    ),
}


@pytest.mark.parametrize("what", _WRITES)
def test_every_write_is_refused_completely_and_works_once_there_is_space(
    disk: Path, store: Store, what: str
) -> None:
    session = store.sessions(project=ALL).items[0]
    before = {s.id: _texts(store, s)[:40] for s in store.sessions(project=ALL)}
    _fill(disk)
    with pytest.raises(StorageError):
        _WRITES[what](store, session)
    _empty(disk)
    if what != "delete":
        after = {
            s.id: _texts(store, s)[:40]
            for s in store.sessions(project=ALL, subagents=True)
        }
        assert {sid: after[sid] for sid in before} == before
    if what == "fork":
        store.fork(session)
    elif what == "stream":
        store.append(session, user("goes on"))
    else:
        _WRITES[what](store, session)


async def test_of_units_that_wait_together_each_gets_its_own_answer(disk: Path) -> None:
    import asyncio

    async with AsyncStore.open(disk / "sessions.db") as store:
        session = await store.create_session()
        await store.append(session, user("first"))
        _fill(disk, spare=120_000)
        texts = [f"{n} {os.urandom(20_000).hex()}" for n in range(20)]
        calls = (store.append(session, user(text)) for text in texts)
        results = await asyncio.gather(*calls, return_exceptions=True)
        failed = [result for result in results if isinstance(result, BaseException)]
        assert failed
        assert all(isinstance(error, StorageError) for error in failed)
        written = [
            text
            for text, result in zip(texts, results, strict=True)
            if result not in failed
        ]
        found = [message.text for message in await store.messages(session)]
        assert sorted(map(str, found)) == sorted(["first", *written])
        _empty(disk)
        await store.append(session, user("space again"))
    _assert_intact(disk / "sessions.db")


def test_a_database_that_cannot_be_made_is_made_when_there_is_space(disk: Path) -> None:
    for spare in (0, 4096, 20_000, 100_000):
        path = disk / str(spare) / "sessions.db"
        _fill(disk, spare=spare)
        with pytest.raises(StorageError):
            Store.open(path, parents=True)
        _empty(disk)
        with Store.open(path, parents=True) as store:
            store.append(store.create_session(), user("Hello"))
        _assert_intact(path)


def test_a_migration_without_space_leaves_the_file_at_its_version(
    disk: Path, store: Store
) -> None:
    path = store.path
    store.close()
    before = path.read_bytes()
    _fill(disk, spare=4096)
    with pytest.raises(StorageError):
        migrations.upgrade(path, versions=[MIGRATIONS])
    assert path.read_bytes() == before
    assert sorted(f.name for f in disk.iterdir() if not f.name.endswith(("-wal", "-shm"))) == [
        "filler", "sessions.db", "sessions.db.lock",
    ]  # fmt: skip
    _empty(disk)
    with Store.open(path) as again:
        assert len(again.sessions(project=ALL).items) == 4


# -- without being root: a limit on the size of a file ------------------------------


def _limited(work: Callable[[], object], bytes_: int) -> None:
    """Run *work* in a forked child that may make no file larger than that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, resource.RLIM_INFINITY))
            work()
        except BaseException:  # noqa: BLE001  it must not continue as a second pytest
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, (
        "see the output of the child"
    )


def test_a_limit_on_the_size_of_files_is_a_storage_error_too(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"

    def work() -> None:
        store = Store.open(path)
        session = store.create_session()
        acknowledged: list[str | None] = []
        with pytest.raises(StorageError):
            for number in range(1000):
                text = f"{number} {os.urandom(20_000).hex()}"
                store.append(session, user(text))
                acknowledged.append(text)
        assert acknowledged
        assert _texts(store, session) == acknowledged
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        store.append(session, user("space again"))
        assert _texts(store, session) == [*acknowledged, "space again"]

    _limited(work, MEGABYTE)
    _assert_intact(path)


def test_an_opening_that_hits_the_size_limit_leaves_no_incomplete_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"

    def work() -> None:
        with pytest.raises(StorageError):
            Store.open(path)

    _limited(work, 50_000)
    with Store.open(path) as store:
        store.append(store.create_session(), user("Hello"))
    _assert_intact(path)
