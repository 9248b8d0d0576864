"""Connections and their pragmas.

``busy_timeout`` comes first: in any other order a cold start of several
processes fails with "database is locked" before the timeout is known.
Transactions are begun by hand (``isolation_level=None``): IMMEDIATE for writes,
so that a read that turns into a write can never fail half-way.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from urllib.parse import quote

from sessiondb.engine.failures import translate
from sessiondb.errors import InvalidInputError

CACHE_KIB = 16_000
_INNOCUOUS = 0x200000
WAL_LIMIT_BYTES = 16 * 1024 * 1024
DURABILITY = {"full": "FULL", "normal": "NORMAL"}


def uri_of(path: Path, mode: str) -> str:
    """Return the SQLite URI of *path* with every special character escaped."""
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def connect(
    path: Path, *, mode: str = "rw", busy_timeout: float = 10.0, durability: str = "full"
) -> sqlite3.Connection:
    """Open *path*, which must exist, with the pragmas of this project.

    *mode* is ``rw``, ``ro``, or ``reader`` (rw, but only queries are allowed: a
    read-only handle could not keep the shared memory of the WAL alive).
    *busy_timeout* is in seconds. Raises the errors of `translate`.
    """
    if durability not in DURABILITY:
        raise InvalidInputError(f"durability is full or normal, not {durability!r}")
    try:
        connection = sqlite3.connect(
            uri_of(path, "ro" if mode == "ro" else "rw"),
            uri=True,
            timeout=busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    except sqlite3.Error as error:
        raise translate(error) from error
    try:
        set_pragmas(connection, mode, busy_timeout, durability)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error) from error
    return connection


def set_pragmas(
    connection: sqlite3.Connection, mode: str, busy_timeout: float, durability: str
) -> None:
    """Apply the pragmas; each has its reason here.

    * ``trusted_schema=OFF``, ``cell_size_check``: the file may come from somebody else;
    * ``cache_size`` 16 MB: twelve times faster first reads of a large file than 2 MB;
    * ``journal_size_limit``: the WAL shrinks again after a burst;
    * no ``mmap_size``: no gain, and it has turned a WAL defect into corruption.
    """
    statements = [
        f"PRAGMA busy_timeout={int(busy_timeout * 1000)}",
        f"PRAGMA trusted_schema={'OFF' if json_is_innocuous() else 'ON'}",
        "PRAGMA cell_size_check=ON",
        "PRAGMA foreign_keys=ON",
        f"PRAGMA cache_size=-{CACHE_KIB}",
        f"PRAGMA synchronous={DURABILITY[durability]}",
        f"PRAGMA journal_size_limit={WAL_LIMIT_BYTES}",
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
