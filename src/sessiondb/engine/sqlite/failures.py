"""SQLite's errors as ours, by extended result code and never by the text of a message.

A first SQLITE_CORRUPT is not taken as proof, because a failed read of the disk looks
the same: callers open the file again and verify it before they call it damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sessiondb.errors import (
    BusyError,
    ConflictError,
    CorruptionError,
    InvalidInputError,
    NotADatabaseError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    StorageError,
    StorageFullError,
    StoreClosedError,
)
from sessiondb.hints import command

_HINTS: dict[type[SessionDBError], str] = {
    BusyError: "another process is writing; try again, or raise busy_timeout",
    StorageFullError: "free some disk space and try again",
    ReadOnlyError: "check the owner and the mode of the file and its directory",
    CorruptionError: f"{command('check')} lists the damage; restore a backup, "
    "or save what can be read: "
    f"{command('export', '-a', '--to', 'jsonl', '-o', 'saved.jsonl')}",
    NotADatabaseError: "name another file, or restore a backup of it; it was not "
    "changed",
}
#: Extended or base code → our error and its text; without a text, that of its class.
_BY_CODE: dict[int, tuple[type[SessionDBError], str | None]] = {
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: (
        NotFoundError,
        "it refers to something that does not exist",
    ),
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: (ConflictError, "it already exists"),
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: (ConflictError, "it already exists"),
    sqlite3.SQLITE_CONSTRAINT: (InvalidInputError, "the database refused a value"),
    sqlite3.SQLITE_BUSY: (BusyError, None),
    sqlite3.SQLITE_LOCKED: (BusyError, None),
    sqlite3.SQLITE_PROTOCOL: (BusyError, None),
    sqlite3.SQLITE_FULL: (StorageFullError, None),
    sqlite3.SQLITE_READONLY: (ReadOnlyError, None),
    sqlite3.SQLITE_PERM: (ReadOnlyError, None),
    sqlite3.SQLITE_CORRUPT: (CorruptionError, None),
    sqlite3.SQLITE_NOTADB: (NotADatabaseError, None),
    sqlite3.SQLITE_IOERR: (StorageError, None),
    sqlite3.SQLITE_CANTOPEN: (StorageError, None),
    sqlite3.SQLITE_NOLFS: (StorageError, None),
    sqlite3.SQLITE_TOOBIG: (InvalidInputError, None),
}


def base_code(error: Exception) -> int:
    """Return the primary result code of a driver error; 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def translate(error: Exception, path: Path | None = None) -> SessionDBError:
    """Return our error for a driver error; raise it ``from`` the original.

    *path* is the file that was opened, if the caller knows it.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return _of_the_binding(error)

    by_base = _BY_CODE.get(base_code(error), (SessionDBError, None))
    kind, text = _BY_CODE.get(code, by_base)
    if kind is NotADatabaseError and path is not None:
        return kind(f"{path} is not a sessiondb database", hint=_HINTS[kind])

    text = text or (kind.__doc__ or "").rstrip(".")
    return kind(f"{text}: {error}", hint=_HINTS.get(kind))


def _of_the_binding(error: Exception) -> SessionDBError:
    """Return our error for one that Python's binding raises by itself."""
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error).lower():
        return StoreClosedError("the store is closed")
    # One damaged value: it concerns its session and no other.
    if "Could not decode to UTF-8" in str(error):
        return CorruptionError(
            f"a stored text is not UTF-8: {error}", hint=_HINTS[CorruptionError]
        )
    return SessionDBError(f"SQLite refused: {error}")


@contextmanager
def translated(path: Path | None = None) -> Iterator[None]:
    """Raise errors of the driver as ours; see `translate`."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
