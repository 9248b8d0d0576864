"""A path in a folder that does not exist is more often mistyped than meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sessiondb import AsyncStore, NotFoundError, StorageError, Store


def made_in(folder: Path) -> list[Path]:
    """Return what is in a folder, however deep."""
    return sorted(folder.rglob("*"))


async def test_a_path_in_a_folder_that_does_not_exist_makes_nothing(
    tmp_path: Path,
) -> None:
    for path in (tmp_path / "no" / "s.db", tmp_path / "no" / "such" / "s.db"):
        for where in (path, str(path), f"sqlite:///{path}"):
            for use in (Store, Store.open):
                with pytest.raises(NotFoundError, match="there is no folder") as caught:
                    use(where)
                assert "parents=True" in (caught.value.hint or "")
            with pytest.raises(NotFoundError, match="there is no folder"):
                await AsyncStore.open(where)
    with pytest.raises(NotFoundError, match="there is no folder"):
        Store.open("no/s.db", cwd=tmp_path)
    with pytest.raises(NotFoundError, match="there is no folder"):
        Store.open(tmp_path / "project" / ".sessiondb" / "sessions.db")
    assert made_in(tmp_path) == []


async def test_folders_are_made_for_a_caller_who_says_so(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a" / "b" / "s.db", parents=True) as store:
        assert store.projects() == []
    async with AsyncStore.open(tmp_path / "c" / "s.db", parents=True) as later:
        assert await later.projects() == []


def test_a_project_needs_no_folder_for_its_own_database(tmp_path: Path) -> None:
    with Store.open(tmp_path / ".sessiondb" / "sessions.db") as store:
        assert store.location.root == tmp_path.resolve()


def test_default_places_and_that_of_the_environment_have_their_folders_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "a" / "b" / "s.db"))
    with Store.open() as store:
        assert store.path == tmp_path / "a" / "b" / "s.db"
    monkeypatch.delenv("SESSIONDB_PATH")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with Store.open(scope="global") as store:
        assert store.path is not None
        assert store.path.is_relative_to(tmp_path / "data")


def test_a_file_in_place_of_a_folder_is_an_error_of_the_storage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    with pytest.raises(StorageError):
        Store.open(tmp_path / "file" / "s.db")


@pytest.mark.slow
def test_a_command_makes_the_folders_of_a_new_database_only_with_init(
    tmp_path: Path,
) -> None:
    def sessiondb(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sessiondb", "--db", str(path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    path = tmp_path / "no" / "s.db"
    source = tmp_path / "log.jsonl"
    source.write_text("")
    done = sessiondb("import", str(source))
    assert (done.returncode, path.parent.exists()) == (3, False)
    assert "there is no folder" in done.stderr
    assert f"--db {path} init" in done.stderr
    assert sessiondb("init").returncode == 0
    assert path.exists()
