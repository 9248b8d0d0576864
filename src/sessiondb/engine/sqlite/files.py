"""The database as a file: made private, checked, and never opened here.

POSIX drops every lock that a process holds on a file when it closes *any*
descriptor of it, so opening the database outside SQLite would let another
process write into a running transaction. All functions here work by path.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from sessiondb.engine import disk
from sessiondb.errors import (
    BusyError,
    InvalidInputError,
    NotADatabaseError,
    ReadOnlyError,
)

SIBLINGS = ("-wal", "-shm", "-journal", ".lock")

_POSIX = os.name == "posix"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_BLOCK = getattr(os, "O_NONBLOCK", 0)


def prepare(path: Path, *, root: Path | None = None, read_only: bool = False) -> bool:
    """Make *path* ready for SQLite; return whether it is new (and empty).

    Missing folders are made with mode 0700 and the file with 0600, whatever the
    umask; ``-wal`` and ``-shm`` inherit it. With *root* (a project) nothing
    between it and the file may be a link. Raises `NotADatabaseError` if it is not a
    regular file, `ReadOnlyError` for a file of another user (unless *read_only*)
    and without permission, `StorageFullError`, `StorageError`.
    """
    if path.name.lower().endswith(SIBLINGS):
        raise NotADatabaseError(
            f"{path} is a name for a file beside a database",
            hint="choose another name",
        )

    _check_links(path, root)
    if _file_exists(path, read_only):
        return False
    if read_only:
        raise ReadOnlyError(f"no database at {path}, and none is made for reading")
    with disk.translated(path):
        disk.make_folder(path.parent)
        try:
            _make_file(path)
        except FileExistsError:
            _file_exists(path, read_only)
            return False

    return True


def is_empty(path: Path) -> bool:
    """Return whether *path* is a regular file without a byte.

    Raises `StorageError`.
    """
    with disk.translated(path):
        facts = path.stat()
    return stat.S_ISREG(facts.st_mode) and facts.st_size == 0


def wal_bytes(path: Path) -> int:
    """Return the size of the ``-wal`` beside *path*; 0 without one."""
    # Asked for after every commit: a string, which `Path` would be made of.
    try:
        return os.stat(f"{path}-wal").st_size
    except OSError:
        return 0


def has_wal(path: Path) -> bool:
    """Return whether there is a ``-wal`` beside *path* that is not empty."""
    return wal_bytes(path) > 0


@contextlib.contextmanager
def creation_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of *path*, for up to *timeout* seconds of waiting.

    The lock file ``<path>.lock`` stays: removing it would let two holders in.
    Raises `BusyError` after the timeout, and the errors of `prepare`.
    """
    lock = path.with_name(path.name + ".lock")
    with disk.translated(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | _NO_BLOCK | _NO_LINK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotADatabaseError(f"{lock} is not a file", hint="remove it")
        _wait_for(descriptor, lock, timeout)
        try:
            yield
        finally:
            # Not left to close(): a child forked in between shares the lock.
            _unlock_descriptor(descriptor)
    finally:
        os.close(descriptor)


def exposed(path: Path) -> list[Path]:
    """Return those of the database and its side files that others may read or write."""
    paths: list[Path] = []
    for file in (path, *siblings(path)) if _POSIX else ():
        with contextlib.suppress(OSError):
            if stat.S_IMODE(os.lstat(file).st_mode) & 0o077:
                paths.append(file)
    return paths


class TemporaryDatabase:
    """A place in a private folder, removed by `remove` or at exit.

    A child of ``os.fork`` never removes it.
    """

    def __init__(self) -> None:
        import tempfile

        folder = tempfile.mkdtemp(prefix="sessiondb-")
        self.path = Path(folder, "sessions.db")
        self._finalizer = weakref.finalize(self, _remove_folder, folder, os.getpid())

    def remove(self) -> None:
        """Remove the folder with everything in it; idempotent."""
        self._finalizer()


def _remove_folder(folder: str, owner: int) -> None:
    import shutil

    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def siblings(path: Path) -> Iterator[Path]:
    """Yield the names that are used beside a database."""
    return (path.with_name(path.name + suffix) for suffix in SIBLINGS)


def _check_links(path: Path, root: Path | None) -> None:
    """Refuse links that SQLite would follow to wherever they point."""
    suspects = list(siblings(path))
    if root is not None:
        if root not in path.parents:
            raise InvalidInputError(f"{path} is not inside of {root}")
        suspects += [folder for folder in path.parents if root in folder.parents]

    for suspect in suspects:
        if os.path.islink(suspect):  # noqa: PTH114  False also without permission
            raise NotADatabaseError(
                f"{suspect} is a link", hint="links are not followed here"
            )


def _file_exists(path: Path, read_only: bool) -> bool:
    with disk.translated(path):
        try:
            facts = os.lstat(path)
        except FileNotFoundError:
            return False

    if not stat.S_ISREG(facts.st_mode):
        kind = "a link" if stat.S_ISLNK(facts.st_mode) else "not a file"
        raise NotADatabaseError(
            f"{path} is {kind}", hint="name the database file itself"
        )

    if facts.st_size == 1:
        # SQLite takes it for an empty one.
        raise NotADatabaseError(f"{path} is not a database", hint="choose another path")
    if read_only or not _POSIX:
        return True
    if facts.st_uid != os.geteuid():
        # SQLite would leave a -wal that the owner cannot write.
        raise ReadOnlyError(
            f"{path} belongs to another user", hint="use it as that user"
        )

    _align_modes(path, facts)
    return True


def _align_modes(path: Path, facts: os.stat_result) -> None:
    """Give the files beside the database its mode.

    A reader of a 0400 file leaves them read-only.
    """
    for side in ("-wal", "-shm"):
        with contextlib.suppress(OSError):
            facts_beside = os.lstat(f"{path}{side}")
            if (
                stat.S_ISREG(facts_beside.st_mode)
                and facts_beside.st_mode != facts.st_mode
            ):
                Path(f"{path}{side}").chmod(stat.S_IMODE(facts.st_mode))


def _make_file(path: Path) -> None:
    try:
        # Makes the file without a descriptor, so that none can be closed on another
        # thread's lock.
        os.mknod(path, 0o600 | stat.S_IFREG)
    except FileExistsError:
        raise
    except (OSError, AttributeError):
        # Not every system has it, and macOS reserves it for root.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600))


def _wait_for(descriptor: int, lock: Path, timeout: float) -> None:
    deadline, pause = time.monotonic() + timeout, 0.001
    while not _try_lock(descriptor, lock):
        if time.monotonic() >= deadline:
            raise BusyError(
                f"{lock} is held: another process is making or migrating the database",
                hint="wait for it to end and try again",
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int, lock: Path) -> bool:  # noqa: ARG001
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock_descriptor(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int, lock: Path) -> bool:
        with disk.translated(lock):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def _unlock_descriptor(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
