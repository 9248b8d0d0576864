"""File system calls whose errors are ours."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from sessiondb.errors import (
    NotADatabaseError,
    ReadOnlyError,
    SessionDBError,
    StorageError,
    StorageFullError,
    UnavailableError,
)

FileIdentity = tuple[int, int]

_MOUNTINFO = Path("/proc/self/mountinfo")
# File systems that other machines (or a host behind a virtual machine) write to as
# well: the WAL's shared memory is not shared with those. Most FUSE file systems are
# local.
_NETWORK = frozenset(
    "nfs nfs4 cifs smbfs smb3 9p virtiofs afs ceph lustre glusterfs beegfs gpfs gfs2 "
    "ocfs2 vboxsf vmhgfs prl_fs drvfs davfs fuse.sshfs fuse.smbnetfs fuse.glusterfs "
    "fuse.ceph fuse.ceph-fuse fuse.davfs fuse.davfs2 fuse.s3fs fuse.gcsfuse "
    "fuse.rclone fuse.juicefs fuse.vmhgfs-fuse fuse.grpcfuse fuse.osxfs "
    "fakeowner".split()
)

_OWNER_AND_MODE = "check the owner and the mode of the file and its directory"
#: Our error → the system's errors and the hint. Any other one is a `StorageError`.
_REFUSALS: dict[type[SessionDBError], tuple[str, str]] = {
    NotADatabaseError: ("ELOOP", "links are not followed here"),
    StorageFullError: ("ENOSPC EDQUOT", "free some disk space and try again"),
    ReadOnlyError: ("EACCES EPERM EROFS", _OWNER_AND_MODE),
    # A network file system that does not answer, or a disk that was taken away.
    UnavailableError: (
        "ESTALE ENOTCONN EHOSTDOWN EHOSTUNREACH ENETDOWN ENETUNREACH ETIMEDOUT "
        "EREMOTEIO ENODEV ENXIO",
        "check the network and the mount, and try again",
    ),
}
#: The same by errno; not every system has all of these.
_BY_NUMBER = {
    getattr(errno, name): (kind, hint)
    for kind, (names, hint) in _REFUSALS.items()
    for name in names.split()
    if hasattr(errno, name)
}


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise the system's error about *path* as one of ours."""
    try:
        yield
    except SessionDBError:
        raise
    except OSError as error:
        kind, hint = _BY_NUMBER.get(error.errno, (StorageError, None))
        raise kind(f"{path}: {error.strerror}", hint=hint) from error


def identity(path: Path) -> FileIdentity | None:
    """Return (st_dev, st_ino) of the file at *path*; None without one.

    Raises `StorageError`.
    """
    try:
        facts = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # Not around the call: each commit calls this twice, and a context costs more.
        with translated(path):
            raise
    return facts.st_dev, facts.st_ino


def make_folder(folder: Path) -> None:
    """Make *folder* and those above it that are missing, each with mode 0700.

    Raises OSError.
    """
    # Not makedirs(): it gives its mode to the last folder only.
    if not folder.is_dir():
        make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)


def free_bytes(path: Path) -> int:
    """Return the bytes that this user can still write where *path* is or would be."""
    import shutil

    with translated(path):
        for folder in (path, *path.parents):
            if folder.exists():
                return shutil.disk_usage(folder).free

    raise StorageError(f"nothing is at {path}")


def network_filesystem(path: Path) -> str | None:
    """Return the type of the network file system of *path*, None if not on one.

    None also if the type is unknown.
    """
    try:
        mounts = os.fsdecode(_MOUNTINFO.read_bytes())
    except OSError:
        return None
    kind = filesystem_of(os.path.realpath(path), mounts)
    return kind if kind in _NETWORK else None


def filesystem_of(path: str, mountinfo: str) -> str | None:
    """Return the file system type of the longest mount point above the real *path*."""
    longest, kind = "", None
    for line in mountinfo.split("\n"):
        mount, separator, source = line.partition(" - ")
        fields = mount.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        # Of two mounts on one point the later covers the earlier.
        if is_above and len(point) >= len(longest):
            longest, kind = point, source.split(" ")[0]

    return kind
