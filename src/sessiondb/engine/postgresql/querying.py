"""SQL that users type: it can only read, whatever its text.

It is the query of a cursor, which can be nothing but a SELECT, in a transaction that
cannot write. Its values are read as the server shows them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.base import Cursor
from sessiondb.engine.postgresql.connecting import connect_driver
from sessiondb.engine.postgresql.connection import BEGIN_READ, lock_timeout
from sessiondb.engine.postgresql.failures import translate
from sessiondb.engine.postgresql.parameters import parameters_of
from sessiondb.engine.postgresql.views import VIEW_NAMES
from sessiondb.engine.upkeep import Shell
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
)
from sessiondb.patterns import late_pattern

#: Rows that the server is asked for at once.
_ROWS_AT_ONCE = 1_000
#: Seconds to wait for a lock.
_PATIENCE = 10.0
_READS = late_pattern(
    r"(?is)\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(select|with|values|table)\b"
)


@contextmanager
def query(address: ServerAddress, sql: str) -> Iterator[Cursor]:
    """Run one statement, for a ``with`` block that reads its rows.

    Raises `ReadOnlyError` for a statement that is not a query or writes,
    `InvalidInputError` for one that is not SQL, and the errors of `translate`.
    """
    if _READS.match(sql) is None:
        raise _only_reads("it is not a SELECT")
    with closing(connect_driver(address, mode="ro")) as driver:
        cursor: Any = driver.cursor(name="query")
        cursor.itersize = _ROWS_AT_ONCE
        try:
            driver.execute(f"{BEGIN_READ}; {lock_timeout(_PATIENCE)}".encode())
            with cursor:
                yield cursor.execute(sql.rstrip().removesuffix(";").encode())
        except psycopg.Error as error:
            raise _explain_error(error) from error


def _only_reads(reason: str) -> ReadOnlyError:
    return ReadOnlyError(
        f"sql only reads ({reason})",
        hint="write with other commands of sessiondb, which keep the database "
        "consistent, or use psql",
    )


def _explain_error(error: psycopg.Error) -> SessionDBError:
    state = error.sqlstate or ""
    message = error.diag.message_primary or str(error)
    if state == "25006":
        return _only_reads(message)
    # What is not SQL, or names something that is not there.
    if state.startswith(("42", "22", "0A")) and state != "42501":
        return InvalidInputError(
            f"SQL: {message}", hint=f"views made for reading: {', '.join(VIEW_NAMES)}"
        )
    return translate(error)


def shell(address: ServerAddress) -> Shell:
    """Return the command of psql; raises `NotFoundError` without it.

    Its session cannot write unless that is permitted in it. It gets the password in the
    environment.
    """
    program = shutil.which("psql")
    if program is None:
        raise NotFoundError("no psql on PATH", hint="install it, or give a QUERY")
    parameters = parameters_of(address)
    options = parameters.by_name(**parameters.of_session(may_write=False))
    password = options.pop("password", None)
    environment = {} if password is None else {"PGPASSWORD": password}
    # The password of a certificate's key: psql asks for it.
    options.pop("sslpassword", None)
    return Shell([program, make_conninfo(**options)], environment)
