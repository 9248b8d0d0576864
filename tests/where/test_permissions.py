"""Sessions are private: under any umask, no other user can read them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessiondb import Store, user
from sessiondb.location import init_local
from sessiondb.maintenance import backup


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: _mode(path) for path in folder.iterdir() if path.is_file()}


@pytest.mark.usefixtures("umask")
def test_everything_that_a_store_makes_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "below"
    with Store.open(folder / "sessions.db", parents=True) as store:
        store.append(store.create_session(), user("Hello"))
        made = _modes(folder)
        assert made.keys() > {"sessions.db", "sessions.db-wal", "sessions.db-shm"}
        assert set(made.values()) == {0o600}
        assert _mode(folder) == _mode(folder.parent) == 0o700


@pytest.mark.usefixtures("umask")
def test_the_database_of_this_machine_is_private_with_all_folders_above_it(
    home: Path,
) -> None:
    with Store.open(scope="global") as store:
        store.create_session()
        assert home in store.path.parents
        assert set(_modes(store.path.parent).values()) == {0o600}
        above = [folder for folder in store.path.parents if home in folder.parents]
        assert {_mode(folder) for folder in above} == {0o700}


@pytest.mark.usefixtures("umask")
def test_a_project_local_database_is_private(tmp_path: Path) -> None:
    init_local(tmp_path)
    with Store.open(scope="local", cwd=tmp_path) as store:
        store.create_session()
        files = _modes(store.path.parent)
        assert {
            mode for name, mode in files.items() if name.startswith("sessions.db")
        } == {0o600}
        assert _mode(store.path.parent) == 0o700


@pytest.mark.usefixtures("umask")
def test_a_backup_is_private(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        store.append(store.create_session(), user("Hello"))
        backup(store, tmp_path / "copies" / "copy.db")
    assert _modes(tmp_path / "copies") == {"copy.db": 0o600}
    assert _mode(tmp_path / "copies") == 0o700


@pytest.mark.usefixtures("umask")
def test_a_database_in_memory_is_a_private_file(tmp_path: Path) -> None:
    with Store.open(":memory:") as store:
        store.append(store.create_session(), user("Hello"))
        folder = store.path.parent
        assert set(_modes(folder).values()) == {0o600}
        assert _mode(folder) == 0o700
    assert not folder.exists()


def test_permissions_of_an_existing_file_are_a_persons_choice(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    Store.open(path).close()
    path.chmod(0o640)
    with Store.open(path) as store:
        store.create_session()
        assert _mode(path) == _mode(Path(f"{path}-wal")) == 0o640
