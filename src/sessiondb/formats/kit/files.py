"""Files and folders of other programs: unreadable ones, links and fifos included.

A check of a path never raises: anything inaccessible counts as missing. Reading
raises `OddRecordError`, whose message ends a sentence about the file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from sessiondb.formats.kit.json import OddRecordError

#: A file beside a record is left out above this size, in bytes.
MAX_FILE = 64 << 20
#: Endings that programs give to SQLite databases whose names are not fixed.
DATABASES = frozenset({".db", ".sqlite", ".sqlite3"})
#: Bytes of a file that is read in one piece; the largest value that can be stored fits.
MAX_RECORD = 1 << 30
# No symlink, and no waiting for the writer of a fifo; Windows knows only the last.
_NO_TRICKS: int = sum(
    getattr(os, f, 0) for f in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)
_EFFECTIVE = os.access in os.supports_effective_ids


def is_folder(path: Path) -> bool:
    """Return whether a directory is at *path*; False if that cannot be known."""
    return os.path.isdir(path)


def is_file(path: Path) -> bool:
    """Return whether a regular file is at *path*; False if that cannot be known."""
    return os.path.isfile(path)  # noqa: PTH113  pathlib raises on some errors


def current_directory() -> Path | None:
    """Return the current directory; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def locations_function(
    configured: Iterable[str], below_home: Iterable[str]
) -> Callable[[Mapping[str, str]], list[Path]]:
    """Return a function for `Format.default_locations`.

    *configured* are the variables of the environment that name a folder, *below_home*
    the folders in the home of the user.
    """

    def locations_in(env: Mapping[str, str]) -> list[Path]:
        folders = [env.get(variable) for variable in configured]
        paths = [Path(folder).expanduser() for folder in folders if folder]
        home = env.get("HOME")
        if home:
            paths += [Path(home, folder) for folder in below_home]
        return paths

    return locations_in


def ancestor_named(path: Path, name: str) -> Path | None:
    """Return the nearest folder above *path* with that *name*, or None."""
    for folder in path.parents:
        if folder.name == name:
            return folder
    return None


def is_link(path: Path) -> bool:
    """Return whether a symlink is at *path*; False if that cannot be known."""
    return os.path.islink(path)  # noqa: PTH114  pathlib raises on some errors


def may_read(path: Path) -> bool:
    """Return whether this process may read *path*; nothing is opened for it."""
    return os.access(path, os.R_OK, effective_ids=_EFFECTIVE)


def may_write(path: Path) -> bool:
    """Return whether this process may write to *path*, or add files to a folder."""
    return os.access(path, os.W_OK, effective_ids=_EFFECTIVE)


def may_search(folder: Path) -> bool:
    """Return whether this process may access the entries of *folder*."""
    return os.access(folder, os.X_OK, effective_ids=_EFFECTIVE)


def device_and_inode(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Return size and modification time (ns) of a file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def read_file(path: Path) -> bytes | None:
    """Return the content of a regular file, no symlink; None if there is none.

    Raises `OddRecordError` when it cannot be read.
    """
    try:
        status = path.lstat()

        if not stat.S_ISREG(status.st_mode):
            raise OddRecordError("is not a regular file")
        if status.st_size > MAX_RECORD:
            raise OddRecordError(f"is larger than {MAX_RECORD} bytes")

        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable_error(error) from None


def read_small(path: Path) -> bytes | None:
    """Return the content of a regular file of at most `MAX_FILE` bytes, else None."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _NO_TRICKS), "rb") as file:
            status = os.fstat(file.fileno())

            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE:
                return None
            return file.read(MAX_FILE)
    except OSError:
        return None


def sorted_entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a directory, sorted by name; none if there is no directory.

    Raises `OddRecordError` for one that cannot be read.
    """
    try:
        with os.scandir(folder) as listing:
            ordered = sorted(listing, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise unreadable_error(error) from None
    yield from ordered


def unreadable_error(error: OSError) -> OddRecordError:
    """Return the error of a file or folder that cannot be read."""
    return OddRecordError(f"cannot be read ({error.strerror or error})")
