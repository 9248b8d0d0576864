"""SQLite's errors as ours, by extended result code and never by the text of a message.

A first SQLITE_CORRUPT is not taken as proof: a failed read of the disk looks
the same, so callers reopen and check before they call a file damaged.
"""

from __future__ import annotations

import sqlite3
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
_BY_CODE: dict[int, type[SessionDBError]] = {
    sqlite3.SQLITE_BUSY: BusyError,
    sqlite3.SQLITE_LOCKED: BusyError,
    sqlite3.SQLITE_PROTOCOL: BusyError,
    sqlite3.SQLITE_FULL: StorageFullError,
    sqlite3.SQLITE_READONLY: ReadOnlyError,
    sqlite3.SQLITE_PERM: ReadOnlyError,
    sqlite3.SQLITE_CORRUPT: CorruptionError,
    sqlite3.SQLITE_NOTADB: NotADatabaseError,
    sqlite3.SQLITE_IOERR: StorageError,
    sqlite3.SQLITE_CANTOPEN: StorageError,
    sqlite3.SQLITE_NOLFS: StorageError,
    sqlite3.SQLITE_TOOBIG: InvalidInputError,
}
_CONSTRAINTS: dict[int, tuple[type[SessionDBError], str]] = {
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: (
        NotFoundError,
        "it refers to something that is not here",
    ),
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: (ConflictError, "it is here already"),
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: (ConflictError, "it is here already"),
}


def translate(error: Exception, path: Path | None = None) -> SessionDBError:
    """Return our error for a driver error; raise it ``from`` the original.

    *path* is the file that was opened, if the caller knows it.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        if (
            isinstance(error, sqlite3.ProgrammingError)
            and "closed" in str(error).lower()
        ):
            return StoreClosedError("the store is closed")
        return SessionDBError(f"SQLite refused: {error}")

    if code in _CONSTRAINTS:
        kind, meaning = _CONSTRAINTS[code]
        return kind(f"{meaning} ({error})")

    base = code & 0xFF
    if base == sqlite3.SQLITE_CONSTRAINT:
        return InvalidInputError(f"the database refused a value: {error}")
    kind = _BY_CODE.get(base, SessionDBError)
    if kind is NotADatabaseError and path is not None:
        return kind(f"{path} is not a sessiondb database", hint=_HINTS[kind])
    return kind(f"{(kind.__doc__ or '').rstrip('.')}: {error}", hint=_HINTS.get(kind))
