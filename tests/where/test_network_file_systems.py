"""WAL needs memory that all its users share, which a network file system cannot give."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pytest

from sessiondb import ALL, AsyncStore, Store, user
from sessiondb.engine import disk


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that says what is mounted where; at first all is local."""
    table = tmp_path / "mountinfo"
    table.write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    monkeypatch.setattr(disk, "_MOUNTINFO", table)
    return table


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


def _mount(mounts: Path, share: Path, kind: str) -> None:
    line = f"99 22 0:50 / {share} rw,relatime shared:7 - {kind} server:/export rw\n"
    mounts.write_text(mounts.read_text() + line)


def _journal(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        mode: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return mode


def _use(path: Path) -> None:
    with Store.open(path) as store:
        session = store.create_session(title="mine")
        store.append(session, user("Hello"))
        with store.stream(session) as out:
            out.text().add("streamed")
        assert [message.text for message in store.messages(session)] == [
            "Hello",
            "streamed",
        ]
        assert not path.with_name(f"{path.name}-wal").exists()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs"])
def test_on_a_network_file_system_there_is_a_warning_and_no_wal(
    mounts: Path, share: Path, kind: str
) -> None:
    _mount(mounts, share, kind)
    for _ in range(2):
        with pytest.warns(UserWarning, match=f"is on {kind}: no WAL") as warned:
            _use(share / "sessions.db")
        assert [warning.filename for warning in warned] == [__file__]
    assert _journal(share / "sessions.db") == "delete"


async def test_an_async_store_warns_of_a_network_file_system(
    mounts: Path, share: Path
) -> None:
    _mount(mounts, share, "nfs4")
    with pytest.warns(UserWarning, match="no WAL"):
        async with AsyncStore.open(share / "sessions.db") as store:
            await store.append(await store.create_session(), user("Hello"))
    assert _journal(share / "sessions.db") == "delete"


def test_a_database_that_was_copied_there_gives_up_its_wal(
    mounts: Path, share: Path
) -> None:
    path = share / "sessions.db"
    with Store.open(path) as store:
        store.append(store.create_session(title="local"), user("Hello"))
    assert _journal(path) == "wal"
    _mount(mounts, share, "nfs4")
    with pytest.warns(UserWarning, match="no WAL"):
        _use(path)
    assert _journal(path) == "delete"


def test_a_database_copied_back_to_a_local_disk_uses_wal_again(
    mounts: Path, share: Path
) -> None:
    path = share / "sessions.db"
    _mount(mounts, share, "nfs4")
    with pytest.warns(UserWarning):
        _use(path)
    mounts.write_text(mounts.read_text().replace("nfs4", "ext4"))
    with Store.open(path) as store:
        assert len(store.sessions(project=ALL).items) == 1
    assert _journal(path) == "wal"


def test_a_local_one_on_the_way_to_a_share_is_left_alone(
    mounts: Path, share: Path
) -> None:
    _mount(mounts, share.with_name("share-of-others"), "nfs4")
    _mount(mounts, share, "nfs4")
    (share / "local").mkdir()
    _mount(mounts, share / "local", "fuse.gocryptfs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Store.open(share / "local" / "sessions.db").close()
    assert _journal(share / "local" / "sessions.db") == "wal"


def test_where_mounts_cannot_be_known_wal_is_used(mounts: Path, share: Path) -> None:
    mounts.unlink()
    Store.open(share / "sessions.db").close()
    assert _journal(share / "sessions.db") == "wal"
