"""Making, recognising and migrating the file before its first use.

A current file takes the short way: one connection, four reads, no lock. All
else (a fresh file, the switch to WAL, a migration) happens under one lock
between processes, because the switch to WAL can fail as busy without waiting.
A file that is not ours, too new or damaged is refused and never written.
"""

from __future__ import annotations

import inspect
import sqlite3
import warnings
from pathlib import Path

from sessiondb.engine import disk
from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.connection import connect
from sessiondb.engine.sqlite.ddl import statements
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.fingerprint import check_schema
from sessiondb.engine.sqlite.version import check_newer, identity_of, refuse, stamp
from sessiondb.errors import (
    BusyError,
    NotADatabaseError,
    NotFoundError,
)
from sessiondb.hints import command
from sessiondb.schema.version import APPLICATION_ID, HEAD, VERSION

#: Seconds that the look at a file waits before it is repeated under the lock.
_FIRST_LOOK = 1.0


def ensure(
    path: Path,
    *,
    create: bool = True,
    read_only: bool = False,
    busy_timeout: float = 10.0,
    root: Path | None = None,
) -> None:
    """Leave a current, checked database at *path*.

    It is made or migrated if that is allowed.
    Raises `NotFoundError` (missing and not to be made), `NotADatabaseError`,
    `UntrustedDatabaseError`, `SchemaVersionError`, `BusyError`, `CorruptionError`.
    Warns about a network file system, where WAL is not used.
    """
    if not create or read_only:
        if disk.identity(path) is None:
            hint = f"check the path, or create it: {command('--db', str(path), 'init')}"
            raise NotFoundError(f"no database at {path}", hint=hint)
        if files.is_empty(path):
            # It may belong to any program: a reader must not make a database of it.
            raise NotADatabaseError(f"{path} is empty", hint="name another file")

    files.prepare(path, root=root, read_only=read_only)
    network = disk.network_filesystem(path)
    if network is not None:
        message = f"{path} is on {network}: no WAL there; use one process at a time"
        warnings.warn(message, stacklevel=_depth_of_caller())

    journal = "wal" if network is None else "delete"

    try:
        if _is_current(path, min(busy_timeout, _FIRST_LOOK), read_only, journal):
            return
    except BusyError:
        # Another process is inside the switch to WAL: wait for it at the lock.
        pass

    with files.creation_lock(path, busy_timeout):
        if not _is_current(path, busy_timeout, read_only, journal):
            _bring_up(path, busy_timeout, journal)


def _depth_of_caller() -> int:
    """Return the ``stacklevel`` of the caller of this package."""
    own = str(Path(__file__).parents[2])
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame, depth = frame.f_back, depth + 1
    return depth


def _is_current(path: Path, busy_timeout: float, read_only: bool, journal: str) -> bool:
    # The last to close a -wal moves it into the file; that of another program is not
    # ours to move.
    looking = read_only or files.has_wal(path)
    connection = connect(
        path, mode="ro" if looking else "reader", busy_timeout=busy_timeout
    )

    try:
        version = _version(connection, path)
        if version is None and read_only:
            raise _foreign(path)
        if version is None:
            return False

        if version < VERSION:
            if read_only:
                refuse(path, version, "older")
            return False
        if version > VERSION:
            check_newer(connection, path, version, writing=False)
        check_schema(connection, version)
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return bool(read_only or mode == journal)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    finally:
        connection.close()


def _version(connection: sqlite3.Connection, path: Path) -> int | None:
    """Return the schema of a database of ours; None if the file is empty.

    Raises `NotADatabaseError` for anything else.
    """
    application, version = identity_of(connection)
    if application == APPLICATION_ID:
        return version

    is_empty = _is_empty(connection)
    # Another process may have filled the file in the meantime. It does so in one
    # transaction, so a file that has content by now has its identity, too.
    application, version = identity_of(connection)
    if application == APPLICATION_ID:
        return version
    if not is_empty:
        raise _foreign(path)
    return None


def _foreign(path: Path) -> NotADatabaseError:
    return NotADatabaseError(
        f"{path} is not a sessiondb database", hint="name another file"
    )


def _is_empty(connection: sqlite3.Connection) -> bool:
    row = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    # Texts are stored as blobs too, and read back by SQL in the encoding of the file.
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    return bool(
        row[0] == 0 and identity_of(connection) == (0, 0) and encoding == "UTF-8"
    )


def _bring_up(path: Path, busy_timeout: float, journal: str) -> None:
    connection = connect(path, busy_timeout=busy_timeout)
    try:
        application, version = identity_of(connection)
        if application == APPLICATION_ID and version < VERSION:
            connection.close()
            from sessiondb.engine.sqlite.migrations import upgrade_on_open

            # First of all: a file that needs `sessiondb migrate` is refused as it is.
            upgrade_on_open(path, busy_timeout)
            connection = connect(path, busy_timeout=busy_timeout)
        connection.execute(f"PRAGMA journal_mode={journal}")
        if application != APPLICATION_ID:
            make(connection)
    except sqlite3.Error as error:
        raise translate(error, path) from error
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
