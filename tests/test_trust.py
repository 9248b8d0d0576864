"""A cloned repository must not decide where transcripts are stored."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sessiondb.engine.sqlite.files import prepare
from sessiondb.errors import (
    InvalidInputError,
    NotADatabaseError,
    NotFoundError,
    StorageError,
    UntrustedDatabaseError,
)
from sessiondb.location import (
    Database,
    find_local,
    init_local,
    resolve,
    state_directory,
    trust,
)

LOCAL = Path(".sessiondb", "sessions.db")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def git_in(folder: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path, git: str) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    subprocess.run([git, "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def foreign(project: Path) -> Path:
    """A project whose database came with the clone."""
    (project / ".sessiondb").mkdir()
    (project / LOCAL).write_bytes(b"")
    return project


def test_a_database_that_came_with_a_clone_is_not_used_and_one_line_says_so(
    foreign: Path,
) -> None:
    found = resolve(cwd=foreign / "src")
    assert (found.kind, found.root) == ("global", None)
    assert found.notice is not None
    assert str(foreign / LOCAL) in found.notice
    assert "\n" not in found.notice
    with pytest.raises(NotFoundError) as caught:
        resolve(scope="local", cwd=foreign)
    assert caught.value.hint == f"`sessiondb trust {foreign}` accepts it"
    with pytest.raises(UntrustedDatabaseError):
        init_local(foreign)
    assert resolve(foreign / LOCAL).kind == "explicit"


def test_an_accepted_database_is_private_and_used_until_revoked(foreign: Path) -> None:
    found = find_local(foreign / "src")
    assert found == foreign / LOCAL
    trust.accept(found)
    assert (mode(found), mode(found.parent)) == (0o600, 0o700)
    assert resolve(cwd=foreign) == Database(found, "local", foreign)
    assert trust.revoke(found)
    assert not trust.revoke(found)
    assert resolve(cwd=foreign).kind == "global"


def test_an_unaccepted_folder_between_does_not_hide_the_accepted_one(
    project: Path,
) -> None:
    init_local(project)
    (project / "src" / ".sessiondb").mkdir()
    (project / "src" / LOCAL).touch()
    found = resolve(cwd=project / "src")
    assert found.path == project / LOCAL
    assert str(project / "src" / LOCAL) in str(found.notice)


def test_a_notice_is_one_line_whatever_the_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "a\n\x1b[2Jb"
    (folder / ".sessiondb").mkdir(parents=True)
    (folder / LOCAL).touch()
    assert str(resolve(cwd=folder).notice).isprintable()


def test_a_moved_project_must_be_accepted_again_and_a_copy_inherits_nothing(
    project: Path,
) -> None:
    init_local(project)
    prepare(project / LOCAL)
    shutil.copytree(project, project.parent / "copy")
    moved = project.rename(project.parent / "moved")
    assert (
        resolve(cwd=moved).kind == resolve(cwd=moved.parent / "copy").kind == "global"
    )
    trust.accept(moved / LOCAL)
    assert resolve(cwd=moved).root == moved


def test_a_database_that_git_put_in_its_place_does_not_inherit_trust(
    project: Path,
) -> None:
    upstream = project.parent / "upstream"
    git_in(project, "commit", "-q", "--allow-empty", "-m", "first")
    git_in(project.parent, "clone", "-q", str(project), str(upstream))
    init_local(project)
    prepare(project / LOCAL)
    assert resolve(cwd=project).kind == "local"
    (upstream / ".sessiondb").mkdir()
    (upstream / LOCAL).write_bytes(b"planted")
    git_in(upstream, "add", "-f", ".")
    git_in(upstream, "commit", "-q", "-m", "yours is mine")
    git_in(project, "pull", "-q", str(upstream))
    assert (project / LOCAL).read_bytes() == b"planted"
    assert resolve(cwd=project).kind == "global"


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_replaced_file_is_noticed_under_every_umask(
    project: Path, umask: int
) -> None:
    init_local(project)
    prepare(project / LOCAL)
    assert trust.is_accepted(project / LOCAL)
    old = os.umask(umask)
    try:
        (project / "other").write_text("planted")
        (project / "other").replace(project / LOCAL)
    finally:
        os.umask(old)
    assert not trust.is_accepted(project / LOCAL)


def test_a_file_that_others_may_read_is_not_what_was_made_here(project: Path) -> None:
    init_local(project)
    (project / LOCAL).touch(0o644)
    assert resolve(cwd=project).kind == "global"


def test_a_new_clone_at_the_same_path_is_another_project(project: Path) -> None:
    init_local(project)
    prepare(project / LOCAL)
    project.rename(project.parent / "old")
    (project / ".sessiondb").mkdir(parents=True)
    assert not trust.is_accepted(project / LOCAL)
    (project / LOCAL).touch(0o600)
    assert not trust.is_accepted(project / LOCAL)


def test_a_database_removed_by_hand_may_be_made_again(project: Path) -> None:
    init_local(project)
    for _ in range(3):
        prepare(project / LOCAL)
        assert resolve(cwd=project).kind == "local"
        (project / LOCAL).unlink()
        assert resolve(cwd=project).kind == "local"


def test_links_and_paths_other_than_a_local_database_cannot_be_accepted(
    project: Path,
) -> None:
    real = project / "real"
    real.mkdir()
    (project / ".sessiondb").symlink_to(real)
    with pytest.raises(NotADatabaseError):
        trust.accept(project / LOCAL)
    with pytest.raises(NotADatabaseError):
        init_local(project)
    (project / ".sessiondb").unlink()
    with pytest.raises(NotFoundError):
        trust.accept(project / LOCAL)
    (project / ".sessiondb").mkdir()
    (project / LOCAL).symlink_to(real / "x.db")
    with pytest.raises(NotADatabaseError):
        trust.accept(project / LOCAL)
    with pytest.raises(InvalidInputError):
        trust.accept(project / "x.db")
    assert mode(project) != 0o700


def test_the_record_is_private_under_any_umask_and_a_torn_one_means_no(
    project: Path,
) -> None:
    old = os.umask(0)
    try:
        init_local(project)
    finally:
        os.umask(old)
    folder = state_directory() / "trust"
    (record,) = folder.iterdir()
    assert (mode(folder), mode(folder.parent), mode(record)) == (0o700, 0o700, 0o600)
    for torn in ("", "[]", "{}", '{"path": 1, "folder": 2, "file": 3}'):
        record.write_text(torn)
        assert not trust.is_accepted(project / LOCAL)


def test_a_state_directory_that_cannot_be_written_is_a_storage_error(
    project: Path,
) -> None:
    state_directory().parent.mkdir(parents=True)
    state_directory().touch()
    with pytest.raises(StorageError):
        init_local(project)


@pytest.mark.slow
def test_processes_that_accept_at_once_lose_no_record(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from sessiondb.location import init_local, trust
for name in range(40):
    own = Path(sys.argv[1], f"{sys.argv[2]}-{name}")
    own.mkdir()
    for folder in (own, Path(sys.argv[1])):
        assert trust.is_accepted(init_local(folder).path)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait(60) for process in running] == [0, 0]
    folders = [tmp_path, *tmp_path.glob("?-*")]
    assert len(folders) == 81
    assert all(trust.is_accepted(folder / LOCAL) for folder in folders)
    assert len(list((state_directory() / "trust").iterdir())) == 81
