"""Connections and their pragmas.

``busy_timeout`` comes first: in any other order a cold start of several
processes fails with "database is locked" before the timeout is known.
Transactions are begun by hand (``isolation_level=None``): IMMEDIATE for writes,
so that a read that turns into a write can never fail half-way.

SQLite keeps its locks per process and file in memory. A child of fork(2) inherits
that memory and not the locks: what it opened on the same file would seem locked
and not be, and its acknowledged commits would go with the ``-wal`` that the parent
removes (seen). So connections are closed before a fork wherever they are idle;
what cannot be closed is never touched by the child, which may not open that file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from sessiondb.engine import disk
from sessiondb.engine.sqlite import files, search_query, search_waiting
from sessiondb.engine.sqlite.failures import base_code, translate, translated
from sessiondb.errors import (
    InvalidInputError,
    ReadOnlyError,
    StoreClosedError,
    abridged,
)
from sessiondb.living import LivingObjects

if TYPE_CHECKING:
    from sessiondb.engine.base import Engine

CACHE_KIB = 16_000
_INNOCUOUS = 0x200000
#: Codes of a place that cannot be written, where a file at rest can still be read.
_AT_REST = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
WAL_LIMIT_BYTES = 16 * 1024 * 1024
#: SQLite's message for a file that is shorter than its header says. SQLite refuses such
#: a file, except with ``writable_schema``, which lets a reader have the existing pages.
#: Not set on every connection, because it also hides damage of the schema.
_SHORT = "database disk image is malformed"
#: Seconds between two attempts to get a lock. A process that gets it from another one
#: reads all pages again that this one changed: with pauses of 50 µs to 1 ms four
#: processes wrote a sixth fewer turns, and the longest wait was 55 ms instead of 130.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 200e-6, 4e-3
#: ``PRAGMA synchronous`` for each of `DURABILITIES`.
SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}


# Looked up once: `super()` in `execute` would cost every statement more than the try.
_execute = sqlite3.Connection.execute


class SQLiteConnection(sqlite3.Connection):
    """A connection that is registered, for fork(2) and `open_files`."""

    path: Path
    file: disk.FileIdentity | None = None
    #: `engine.SQLITE`, which sets it: that module is made of this one.
    engine: ClassVar[Engine]

    def execute(self, sql: str, params: Any = (), /) -> sqlite3.Cursor:
        """Run a statement; raises `sqlite3.Error`, whatever the text of its message."""
        try:
            return _execute(self, sql, params)
        except UnicodeDecodeError as error:
            # SQLite quotes the schema in its messages, and Python decodes them as
            # UTF-8.
            damaged = sqlite3.DatabaseError(
                "the schema is damaged, and SQLite's message with it"
            )
            damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damaged from error

    def settle(self) -> None:
        """Do nothing: a statement has run when `execute` returns."""

    def close(self) -> None:
        """Close it, and forget it."""
        super().close()
        _living.discard(self)


_living: LivingObjects[SQLiteConnection] = LivingObjects()
#: Files that the parent of this process had open when it forked.
_inherited: set[disk.FileIdentity | None] = set()


def uri_of(path: Path, mode: str) -> str:
    """Return the SQLite URI of *path* with every special character escaped."""
    return f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"


def connect(
    path: Path,
    *,
    mode: str = "rw",
    busy_timeout: float = 10.0,
    durability: str = "full",
    one_thread: bool = False,
) -> SQLiteConnection:
    """Open *path*, which must exist, with the pragmas of this project.

    *mode* is ``rw``, ``ro``, or ``reader`` (rw, but only queries are allowed: a
    read-only handle could not keep the shared memory of the WAL alive).
    *busy_timeout* is in seconds. With *one_thread* only this thread may use and close
    it; without, one at a time. Raises the errors of `translate`.
    """
    if durability not in SYNCHRONOUS:
        raise InvalidInputError(
            f"durability is full or normal, not {abridged(durability)}"
        )

    uri = uri_of(path, "ro" if mode == "ro" else "rw")
    attempt = partial(
        _open_connection, path, mode=mode, busy_timeout=busy_timeout,
        durability=durability, one_thread=one_thread,
    )  # fmt: skip

    try:
        return attempt(uri)
    except sqlite3.Error as error:
        if mode != "ro" or base_code(error) not in _AT_REST:
            raise translate(error, path) from error
        _check_at_rest(path)

    with translated(path):
        return attempt(f"{uri}&immutable=1")


def _open_connection(
    path: Path,
    uri: str,
    *,
    mode: str,
    busy_timeout: float,
    durability: str,
    one_thread: bool,
) -> SQLiteConnection:
    file = disk.identity(path)
    if file in _inherited:
        raise StoreClosedError(
            f"{path} was in use when this process was forked, so it cannot be opened "
            "here",
            hint="close it before os.fork(), or start the process by spawn",
        )

    connection = sqlite3.connect(
        uri, uri=True, timeout=busy_timeout, isolation_level=None,
        check_same_thread=one_thread, cached_statements=256, factory=SQLiteConnection,
    )  # fmt: skip
    connection.path, connection.file = path, file
    _living.add(connection)

    try:
        try:
            set_pragmas(connection, mode, busy_timeout, durability)
            search_query.register(connection)
            search_waiting.register(connection)
        except sqlite3.DatabaseError as error:
            if mode == "rw" or str(error) != _SHORT:
                raise
            connection.execute("PRAGMA writable_schema=ON")
            set_pragmas(connection, mode, busy_timeout, durability)
    except BaseException:
        connection.close()
        raise

    return connection


def open_files() -> set[disk.FileIdentity]:
    """Return (st_dev, st_ino) of each open database and of the files beside it."""
    opened = {connection.file for connection in _living} | _inherited
    for path in {connection.path for connection in _living}:
        # None for a file that does not exist.
        opened |= {disk.identity(sibling) for sibling in files.siblings(path)}
    return {file for file in opened if file is not None}


def begin_write(
    connection: Any,
    busy_timeout: float = 0.0,
    *,
    is_alone: bool = True,  # noqa: ARG001  it always is
) -> None:
    """Begin a transaction with the write lock, waiting *busy_timeout* seconds for it.

    IMMEDIATE, because a read that turns into a write could fail half-way. SQLite itself
    waits in sleeps of up to 100 ms for a lock that is held for less than one: of four
    processes that write all the time, one waited for seconds.
    """
    for is_last in attempts(busy_timeout):
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if is_last or base_code(error) != sqlite3.SQLITE_BUSY:
                raise
        else:
            return


def attempts(busy_timeout: float) -> Iterator[bool]:
    """Yield whether this attempt is the last, and pause between two of them."""
    # Nearly always the first one succeeds: the clock is read after it.
    if busy_timeout > 0:
        yield False
    deadline = time.monotonic() + busy_timeout
    pause = _SHORTEST_PAUSE
    while time.monotonic() < deadline:
        time.sleep(pause)
        yield False
        pause = min(2 * pause, _LONGEST_PAUSE)
    yield True


def _check_at_rest(path: Path) -> None:
    """Refuse a file with a ``-wal``, which cannot be read without a ``-shm``."""
    if files.has_wal(path):
        raise ReadOnlyError(
            f"{path} has a -wal, which cannot be read in a read-only place",
            hint="copy the file and its -wal to a writable place, and open them there",
        )


def _leave_to_parent() -> None:
    """In a forked child, never close what it inherited.

    That would disturb the parent, also at exit.
    """
    import ctypes

    for connection in _living:
        _inherited.add(connection.file)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _living.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def set_pragmas(
    connection: sqlite3.Connection, mode: str, busy_timeout: float, durability: str
) -> None:
    """Apply the pragmas; each has its reason here.

    * ``trusted_schema=OFF``, ``cell_size_check``: the file may be another person's;
    * ``cache_size`` 16 MB: twelve times faster first reads of a large file than 2 MB;
    * ``journal_size_limit``: the WAL shrinks again after a burst;
    * ``secure_delete`` FAST: some systems build SQLite to overwrite every freed page
      with zeros, and the search index frees pages all the time; a vacuum removes them;
    * no ``mmap_size``: no gain, and it has turned a WAL defect into corruption.
    """
    statements = [
        f"PRAGMA busy_timeout={int(busy_timeout * 1000)}",
        f"PRAGMA trusted_schema={'OFF' if json_is_innocuous() else 'ON'}",
        "PRAGMA cell_size_check=ON",
        "PRAGMA foreign_keys=ON",
        f"PRAGMA cache_size=-{CACHE_KIB}",
        f"PRAGMA synchronous={SYNCHRONOUS[durability]}",
        f"PRAGMA journal_size_limit={WAL_LIMIT_BYTES}",
        "PRAGMA secure_delete=FAST",
    ]
    if mode != "rw":
        statements.append("PRAGMA query_only=ON")
    for statement in statements:
        connection.execute(statement)


@cache
def json_is_innocuous() -> bool:
    """Return whether this SQLite lets an untrusted schema call json_valid().

    3.40 does not: with ``trusted_schema=OFF`` it cannot even read a schema whose
    CHECK constraints use it. There `fingerprint.check_schema`, which finds every
    trigger, view and function of the schema to be ours before first use, has to do.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        sql = "SELECT max(flags) FROM pragma_function_list WHERE name = 'json_valid'"
        return bool((connection.execute(sql).fetchone()[0] or 0) & _INNOCUOUS)
