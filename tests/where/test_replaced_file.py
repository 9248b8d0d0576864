"""Git (or a person) puts another file where the database was, while a store has it open.

SQLite does not notice, and a ``-wal`` that is left behind becomes part of the new file. So
a store reports it, writes nothing to the new file, and leaves nothing of its own beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run, said

from sessiondb import ALL, BEGINNING, AsyncStore, Store, user
from sessiondb.engine.sqlite.target import SQLiteFile
from sessiondb.errors import DatabaseReplacedError


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return another database, as git would check it out."""
    path = tmp_path / "elsewhere" / "sessions.db"
    with Store.open(path, parents=True) as store:
        store.append(store.create_session(title="other"), user("Hello from elsewhere"))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "sessions.db")
    store.append(store.create_session(title="mine"), user("Hello" * 1000))
    return store


def _titles(store: Store) -> list[str]:
    return [session.title for session in store.sessions(project=ALL)]


def test_nothing_is_written_to_the_file_that_replaced_ours(
    store: Store, other: Path
) -> None:
    replacement = other.read_bytes()
    os.replace(other, store.path)
    with pytest.raises(DatabaseReplacedError, match="replaced") as raised:
        store.create_session(title="lost")
    assert "open it again" in (raised.value.hint or "")
    with pytest.raises(DatabaseReplacedError):
        store.sessions(project=ALL)
    store.close()
    assert store.path.read_bytes() == replacement


def test_the_replacement_file_is_intact_when_it_is_opened_next(
    store: Store, other: Path
) -> None:
    os.replace(other, store.path)
    store.close()
    with Store.open(store.path) as again:
        assert _titles(again) == ["other"]
        again.create_session(title="more")
        again.append(again.sessions(project=ALL, empty=True).items[0], user("More"))
        assert _titles(again) == ["more", "other"]


def test_the_new_file_is_not_opened_beside_the_old_one(
    store: Store, other: Path
) -> None:
    replacement = other.read_bytes()
    os.replace(other, store.path)
    with pytest.raises(DatabaseReplacedError, match="replaced"):
        Store.open(store.path)
    assert store.path.read_bytes() == replacement
    store.close()
    with Store.open(store.path) as again:
        assert _titles(again) == ["other"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_file_that_is_replaced_while_a_read_opens_it_is_not_read(
    is_async: bool, store: Store, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader: Any = await AsyncStore.open(store.path) if is_async else store
    if not is_async:
        store._core.pause()
    connect = SQLiteFile.connect

    def connect_too_late(target: SQLiteFile, **options: Any) -> Any:
        # As if another process had done it between two of our system calls.
        os.replace(other, target.path)
        return connect(target, **options)

    monkeypatch.setattr(SQLiteFile, "connect", connect_too_late)
    with pytest.raises(DatabaseReplacedError, match="replaced"):
        result = reader.sessions(project=ALL)
        if is_async:
            await result
    monkeypatch.undo()
    if is_async:
        await reader.close()
    store.close()


@pytest.mark.slow
def test_another_process_finds_the_new_file_intact_after_our_write_was_refused(
    store: Store, other: Path
) -> None:
    os.replace(other, store.path)
    with pytest.raises(DatabaseReplacedError):
        store.create_session()
    code = """
        import sys
        from sessiondb import ALL, Store
        with Store.open(sys.argv[1]) as store:
            print([session.title for session in store.sessions(project=ALL)])
    """
    assert said(run(code, store.path)) == "['other']"
    store.close()


@pytest.mark.parametrize(
    "remove", [Path.unlink, lambda path: path.rename(path.with_suffix(".x"))]
)
def test_a_database_that_was_removed_is_not_made_again_behind_its_store(
    store: Store, remove: Callable[[Path], object]
) -> None:
    remove(store.path)
    with pytest.raises(DatabaseReplacedError):
        store.create_session()
    with pytest.raises(DatabaseReplacedError):
        store.sessions(project=ALL)
    store.close()
    assert not store.path.exists()
    with Store.open(store.path) as fresh:
        assert _titles(fresh) == []


def test_a_file_that_comes_back_is_used_again(store: Store, tmp_path: Path) -> None:
    store.path.rename(tmp_path / "aside")
    with pytest.raises(DatabaseReplacedError):
        store.create_session()
    (tmp_path / "aside").rename(store.path)
    store.append(store.create_session(title="again"), user("Hello"))
    assert _titles(store) == ["again", "mine"]
    store.close()


def test_streams_and_waiting_units_of_a_replaced_file_fail_and_do_not_hang(
    store: Store, other: Path
) -> None:
    session = store.sessions(project=ALL).items[0]
    with pytest.raises(DatabaseReplacedError), store.stream(session) as out:
        os.replace(other, store.path)
        out.text().add("never acknowledged")
        out.flush()
    store.close()


def test_a_feed_of_a_replaced_file_raises_at_the_next_poll(
    store: Store, other: Path
) -> None:
    feed = store.changes(since=BEGINNING, poll=0)
    assert next(feed).last_seq == 1
    os.replace(other, store.path)
    with pytest.raises(DatabaseReplacedError):
        next(feed)
    store.close()


async def test_an_async_store_reports_a_replaced_file(
    tmp_path: Path, other: Path
) -> None:
    replacement = other.read_bytes()
    async with AsyncStore.open(tmp_path / "sessions.db") as store:
        session = await store.create_session(title="mine")
        assert await store.session(session)
        os.replace(other, store.path)
        with pytest.raises(DatabaseReplacedError):
            await store.append(session, user("lost"))
        with pytest.raises(DatabaseReplacedError):
            await store.session(session)
    assert store.path.read_bytes() == replacement
