"""The files that are databases or belong to one, and are never overwritten.

A database is recognised without a descriptor of our own: to close that would drop
every POSIX lock that this process holds on the file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.connection import open_files, uri_of
from sessiondb.engine.sqlite.failures import base_code
from sessiondb.errors import StorageError

_MAGIC = b"SQLite format 3\0"
#: The smallest file that SQLite can have written: one page.
_SMALLEST_PAGE = 512
#: Files beside a database that is in use, or was when its program ended.
_IN_USE = ("-wal", "-shm", "-journal")
_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")
#: Codes of a file that SQLite is not permitted to read.
_UNREADABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def reserved_ending(path: Path) -> str | None:
    """Return the ending of a name that SQLite or sessiondb uses beside a database.

    SQLite deletes or reads such a file whenever a database with the rest of the name
    is opened, even if there is none now.
    """
    name = path.name.lower()
    return next((ending for ending in files.SIBLINGS if name.endswith(ending)), None)


def owns(path: Path, facts: os.stat_result | None) -> bool:
    """Return whether *path* is a database, or has the files of one beside it."""
    if any(os.path.lexists(f"{path}{side}") for side in _IN_USE):
        return True
    if facts is None:
        return False
    if (facts.st_dev, facts.st_ino) in open_files():
        return True
    if facts.st_size == 0:
        # Until a new database has its first page, only its lock identifies it.
        return os.path.lexists(f"{path}.lock")

    return facts.st_size >= _SMALLEST_PAGE and _has_pages(path, facts)


def _has_pages(path: Path, facts: os.stat_result) -> bool:
    """Return whether a file begins like a database.

    Raises `StorageError` if unknown.
    """
    for descriptor in _descriptors_of(facts):
        # This process has it open as something else: its descriptor reads without harm.
        with contextlib.suppress(OSError):
            return os.pread(descriptor, len(_MAGIC), 0) == _MAGIC
        raise StorageError(
            f"{path} is being written by this process", hint="name a file of its own"
        )

    try:
        # By SQLite, which keeps the locks that another thread may take by now.
        uri = f"{uri_of(path, 'ro')}&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        code = base_code(error)
        if code in _UNREADABLE:
            raise StorageError(
                f"{path} cannot be read, so it is not replaced"
            ) from error
        return code != sqlite3.SQLITE_NOTADB

    return True


def _descriptors_of(facts: os.stat_result) -> list[int]:
    """Return the descriptors that this process has on a file.

    ``[]`` if that is unknown.
    """
    for folder in _DESCRIPTORS:
        with contextlib.suppress(OSError):
            numbers = map(int, os.listdir(folder))
            return [number for number in numbers if _is_of(number, facts)]
    return []


def _is_of(descriptor: int, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), facts)
    except OSError:
        return False
