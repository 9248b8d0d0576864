"""The database as a file: private, plain, and never opened by us."""

from __future__ import annotations

import errno
import gc
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessiondb.engine.disk import (
    filesystem_of,
    free_bytes,
    identity,
    network_filesystem,
    translated,
)
from sessiondb.engine.sqlite.files import (
    TemporaryDatabase,
    creation_lock,
    exposed,
    prepare,
)
from sessiondb.errors import (
    InvalidInputError,
    NotADatabaseError,
    ReadOnlyError,
    StorageError,
    StorageFullError,
    UnavailableError,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def no_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


@pytest.mark.usefixtures("no_umask")
def test_a_new_database_and_every_new_folder_above_it_are_private(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a" / "b" / "sessions.db"
    assert prepare(path)
    assert not prepare(path)
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (
        0o600,
        0o700,
        0o700,
    )
    assert path.stat().st_size == 0


@pytest.mark.usefixtures("no_umask")
def test_side_files_written_by_sqlite_are_private_too(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    prepare(path)
    code = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("CREATE TABLE t (x)")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    with creation_lock(path, 1):
        pass
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "sessions.db",
        "sessions.db-shm",
        "sessions.db-wal",
        "sessions.db.lock",
    ]
    assert exposed(path) == []
    (tmp_path / "sessions.db-wal").chmod(0o640)
    assert exposed(path) == [tmp_path / "sessions.db-wal"]


def test_an_existing_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(b"content")
    path.chmod(0o640)
    assert not prepare(path)
    assert (path.read_bytes(), mode(path)) == (b"content", 0o640)


def test_preparing_opens_no_descriptor_of_the_database(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux makes a file without opening it")
    path = tmp_path / "sessions.db"
    code = """
import sys
from pathlib import Path
from sessiondb.engine.disk import identity
from sessiondb.engine.sqlite.files import prepare
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
path = Path(sys.argv[1])
prepare(path), prepare(path), identity(path)
print(*(name for name in opened if str(name).startswith(sys.argv[1])))
"""
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    assert path.exists()


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe", "device"])
def test_only_a_plain_file_can_be_the_database(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "sessions.db", tmp_path / "target"
    if kind == "link":
        target.touch()
        path.symlink_to(target)
    elif kind == "dangling link":
        path.symlink_to(target)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = Path("/dev/null")
    with pytest.raises(NotADatabaseError) as caught:
        prepare(path)
    assert caught.value.hint
    assert target.exists() == (kind == "link")


def test_inside_of_a_project_no_link_leads_out(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / ".sessiondb").symlink_to(outside)
    path = project / ".sessiondb" / "sessions.db"
    with pytest.raises(NotADatabaseError):
        prepare(path, root=project)
    assert list(outside.iterdir()) == []
    assert prepare(path)
    with pytest.raises(InvalidInputError):
        prepare(outside / "x.db", root=project)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", ".lock"])
def test_a_link_beside_the_database_is_refused(tmp_path: Path, suffix: str) -> None:
    path, precious = tmp_path / "sessions.db", tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / f"sessions.db{suffix}").symlink_to(precious)
    with pytest.raises(NotADatabaseError):
        prepare(path)
    assert not path.exists()
    assert precious.read_text() == "precious"


def test_the_database_of_another_user_may_only_be_read(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.touch()
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)
    with pytest.raises(ReadOnlyError):
        prepare(path)
    assert not prepare(path, read_only=True)


def test_nothing_is_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(ReadOnlyError):
        prepare(tmp_path / "sub" / "sessions.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "a.db", tmp_path / "file" / "sub" / "a.db"):
        with pytest.raises(StorageError):
            prepare(path)
        assert identity(path) is None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ReadOnlyError, match=str(tmp_path)):
            prepare(tmp_path / "sessions.db")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.ESTALE, UnavailableError),
        (errno.ENOTCONN, UnavailableError),
        (errno.EROFS, ReadOnlyError),
        (errno.EACCES, ReadOnlyError),
        (errno.ELOOP, NotADatabaseError),
        (errno.EIO, StorageError),
    ],
)
def test_every_refusal_of_the_system_has_its_type(
    number: int, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught, translated(Path("x.db")):
        raise OSError(number, os.strerror(number))
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, OSError)


def test_identity_changes_when_the_file_is_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    assert identity(path) is None
    path.touch()
    other.touch()
    before = identity(path)
    other.replace(path)
    assert identity(path) not in (None, before)


def test_processes_that_start_at_once_make_one_file_between_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / "sessions.db"
    code = """
import sys
from pathlib import Path
from sessiondb.engine.sqlite.files import prepare
sys.stdin.readline()
print(prepare(Path(sys.argv[1])))
"""
    command = [sys.executable, "-c", code, str(path)]
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)
    ]
    for process in running:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].strip() for process in running]
    assert sorted(answers) == ["False", "False", "False", "True"]


MOUNTS = r"""
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw
31 30 0:41 / /home/ada/my\040disk rw - fuse.sshfs host: rw
32 21 0:42 / /mnt/c rw,noatime - 9p C:\134 rw
33 21 0:43 / /data rw master:1 propagate_from:2 - virtiofs data rw
34 33 0:44 / /data rw - tmpfs tmpfs rw
short line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homes/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/x.db", "nfs4"),
        ("/home/ada/my disk/x.db", "fuse.sshfs"),
        ("/mnt/c/x.db", "9p"),
        ("/data/x.db", "tmpfs"),
    ],
)
def test_the_longest_and_latest_mount_point_decides(path: str, kind: str) -> None:
    assert filesystem_of(path, MOUNTS) == kind


def test_without_mounts_nothing_is_known() -> None:
    assert filesystem_of("/x", "") is None


def test_a_file_that_is_not_there_yet_has_a_file_system(tmp_path: Path) -> None:
    assert network_filesystem(tmp_path / "a" / "b.db") == network_filesystem(tmp_path)
    assert network_filesystem(Path("/proc/self/x.db")) is None


def test_free_space_is_known_before_the_folder_is_made(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b.db") > 0


@pytest.mark.slow
def test_a_temporary_database_has_a_private_folder_and_leaves_nothing() -> None:
    temporary = TemporaryDatabase()
    folder = temporary.path.parent
    assert prepare(temporary.path)
    assert mode(folder) == 0o700
    temporary.remove()
    temporary.remove()
    assert not folder.exists()
    forgotten = TemporaryDatabase().path.parent
    gc.collect()
    assert not forgotten.exists()


def test_the_parent_and_not_its_fork_removes_a_temporary_database_at_exit() -> None:
    code = """
import os, sys
from sessiondb.engine.sqlite.files import TemporaryDatabase
temporary = TemporaryDatabase()
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
assert temporary.path.parent.exists()
print(temporary.path.parent)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).exists()
