"""Making, recognising and migrating the file before its first use.

A current file needs one connection, four reads and no lock; if no process has it open,
that connection is the first reader of the store. Everything else (a new
file, the switch to WAL, a migration) is done under one lock between processes, because
the switch to WAL can fail as busy without waiting. A file that is not ours, too new or
damaged is refused and never written.
"""

from __future__ import annotations

import sqlite3
import sys
import warnings
from contextlib import closing
from pathlib import Path
from types import FrameType

from sessiondb.engine import disk
from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.admission import EMPTY, admit, schema_of
from sessiondb.engine.sqlite.connection import SQLiteConnection, connect
from sessiondb.engine.sqlite.ddl import statements
from sessiondb.engine.sqlite.failures import translated
from sessiondb.engine.sqlite.version import identity_of, stamp
from sessiondb.errors import (
    BusyError,
    NotADatabaseError,
    NotFoundError,
)
from sessiondb.hints import command
from sessiondb.schema.version import APPLICATION_ID, HEAD, VERSION

#: Seconds that the first look at a file waits, before it is repeated under the lock.
_FIRST_LOOK = 1.0


def ensure(
    path: Path,
    *,
    create: bool = True,
    read_only: bool = False,
    busy_timeout: float = 10.0,
    root: Path | None = None,
) -> SQLiteConnection | None:
    """Make sure that *path* is a current, verified database, and return a reader of it.

    It is made or migrated if that is permitted. None if it was, or is in use: then a
    reader has to be opened.
    Raises `NotFoundError` (missing and not to be made), `NotADatabaseError`,
    `UntrustedDatabaseError`, `SchemaVersionError`, `BusyError`, `CorruptionError`.
    Warns about a network file system, where WAL is not used.
    """
    if not create or read_only:
        if disk.identity(path) is None:
            hint = f"check the path, or create it: {command('--db', str(path), 'init')}"
            raise NotFoundError(f"no database at {path}", hint=hint)
        if files.is_empty(path):
            # It may belong to any program: a reader must not turn it into a database.
            raise NotADatabaseError(f"{path} is empty", hint="name another file")

    files.prepare(path, root=root, read_only=read_only)
    journal = "wal"
    if network := disk.network_filesystem(path):
        journal = "delete"
        message = f"{path} is on {network}: no WAL there; use one process at a time"
        warnings.warn(message, stacklevel=_depth_of_caller())

    first_look = min(busy_timeout, _FIRST_LOOK)
    try:
        is_current, reader = _look_at(path, first_look, read_only, journal)
        if reader is not None:
            reader.execute(f"PRAGMA busy_timeout={int(busy_timeout * 1000)}")
        if is_current:
            return reader
    except BusyError:
        # Another process is switching to WAL: wait for it at the lock.
        pass

    with files.creation_lock(path, busy_timeout):
        is_current, reader = _look_at(path, busy_timeout, read_only, journal)
        if not is_current:
            _bring_up(path, busy_timeout, journal)
    return reader


def _depth_of_caller() -> int:
    """Return the ``stacklevel`` of the caller of this package."""
    package = str(Path(__file__).parents[2])
    # What `inspect.currentframe` returns, without loading that.
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    depth = 0
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, depth = frame.f_back, depth + 1
    return depth


def _look_at(
    path: Path, busy_timeout: float, read_only: bool, journal: str
) -> tuple[bool, SQLiteConnection | None]:
    """Return whether the file needs nothing more before its use, and a reader of it.

    A file that needs more has none, nor has one in use. Raises the errors of `ensure`
    for a file that is refused.
    """
    # The last connection to close moves a -wal into the file; that of another program
    # is not ours to move, so it is only looked at.
    is_in_use = not read_only and files.has_wal(path)
    mode = "ro" if read_only or is_in_use else "reader"
    connection = connect(path, mode=mode, busy_timeout=busy_timeout)
    is_kept = False
    try:
        with translated(path):
            is_current = _is_current(connection, path, read_only, journal)
        is_kept = is_current and not is_in_use
        return is_current, connection if is_kept else None
    finally:
        if not is_kept:
            connection.close()


def _is_current(
    connection: sqlite3.Connection, path: Path, read_only: bool, journal: str
) -> bool:
    version = schema_of(connection, path)
    if version < VERSION and not read_only:
        return False
    admit(connection, path, version)
    journal_mode: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
    return read_only or journal_mode == journal


def verify(path: Path, busy_timeout: float = 10.0) -> None:
    """Raise what `ensure` would raise for the existing file; nothing is written.

    An older file passes if an opening may migrate it.
    """
    if files.is_empty(path):
        raise NotADatabaseError(f"{path} is empty", hint="name another file")
    mode = "ro" if files.has_wal(path) else "reader"
    with (
        closing(connect(path, mode=mode, busy_timeout=busy_timeout)) as connection,
        translated(path),
    ):
        version = schema_of(connection, path)
        if version == EMPTY or version >= VERSION:
            admit(connection, path, version)
            return

    from sessiondb.engine.sqlite.migrations import check_openable

    check_openable(path, busy_timeout)


def _bring_up(path: Path, busy_timeout: float, journal: str) -> None:
    connection = connect(path, busy_timeout=busy_timeout)
    with translated(path):
        try:
            application, version = identity_of(connection)
            if application == APPLICATION_ID and version < VERSION:
                connection.close()
                from sessiondb.engine.sqlite.migrations import upgrade_on_open

                # First of all: a file that needs `sessiondb migrate` is refused as is.
                upgrade_on_open(path, busy_timeout)
                connection = connect(path, busy_timeout=busy_timeout)
            connection.execute(f"PRAGMA journal_mode={journal}")
            if application != APPLICATION_ID:
                make(connection)
        finally:
            connection.close()


def make(connection: sqlite3.Connection) -> None:
    """Write the complete schema into an empty file, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements():
            connection.execute(statement)
        connection.execute(
            "INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,)
        )
        stamp(connection, VERSION)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
