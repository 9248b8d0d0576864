"""SQL that users type: it can only read, whatever its text."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sessiondb.codec import json_of_data
from sessiondb.engine.sqlite.connection import connect
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.views import VIEW_NAMES
from sessiondb.engine.upkeep import Shell
from sessiondb.errors import (
    CodecError,
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    abridged,
)

#: The actions that a statement may take. All others (ATTACH, VACUUM INTO) can write.
_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
#: How a virtual table such as the search index is set up when it is first used.
_DECLARED = (sqlite3.SQLITE_UPDATE, "sqlite_master")
_PRAGMAS = frozenset(
    "application_id collation_list compile_options data_version encoding "
    "foreign_key_check foreign_key_list freelist_count function_list index_info "
    "index_list index_xinfo integrity_check journal_mode page_count page_size "
    "pragma_list quick_check table_info table_list table_xinfo user_version".split()
)
#: Of these, the pragmas whose argument would be a new value.
_SETTINGS = frozenset(
    ("application_id", "encoding", "journal_mode", "page_size", "user_version")
)


@contextmanager
def query(path: Path, sql: str) -> Iterator[sqlite3.Cursor]:
    """Run one statement, for a ``with`` block that reads its rows.

    Raises `ReadOnlyError` for a statement that writes, `InvalidInputError` for one that
    is not SQL, and the errors of `translate`.
    """
    with closing(connect(path, mode="ro")) as connection:
        connection.set_authorizer(_authorize_action)
        unreadable = _add_data_json(connection)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            yield connection.execute(sql)
        except (sqlite3.Error, sqlite3.Warning) as error:
            if unreadable:
                raise _explain_data(unreadable[0]) from error
            raise _explain_error(error) from error


def shell(path: Path) -> Shell:
    """Return the command of the sqlite3 shell; raises `NotFoundError` without one."""
    program = shutil.which("sqlite3")
    if program is None:
        raise NotFoundError("no sqlite3 on PATH", hint="install it, or give a QUERY")
    return Shell([program, "-readonly", str(path)], {})


def _add_data_json(connection: sqlite3.Connection) -> list[CodecError]:
    """Add the function ``data_json(data)``; return where it puts what it cannot read.

    SQLite reports no more of an exception than that a function raised one.
    """
    unreadable: list[CodecError] = []

    def data_json(data: object) -> str | None:
        if data is None:
            return None
        if not isinstance(data, bytes):
            unreadable.append(CodecError(f"{abridged(data)} is not a value of data"))
            raise unreadable[-1]
        try:
            return json_of_data(data)
        except CodecError as error:
            unreadable.append(error)
            raise

    connection.create_function("data_json", 1, data_json, deterministic=True)
    return unreadable


def _explain_data(error: CodecError) -> InvalidInputError:
    return InvalidInputError(
        f"SQL: data_json: {error}",
        hint="its argument is the column data of session, message or part",
    )


def _authorize_action(
    action: int, first: str | None, second: str | None, *_: object
) -> int:
    allowed = action in _ALLOWED or (action, first) == _DECLARED
    if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS:
        allowed = not second or first not in _SETTINGS
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _explain_error(error: sqlite3.Error | sqlite3.Warning) -> SessionDBError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY):
        return ReadOnlyError(
            f"sql only reads ({error})",
            hint="write with other commands of sessiondb, "
            "which keep the database consistent",
        )

    if code == sqlite3.SQLITE_ERROR:
        return InvalidInputError(
            f"SQL: {error}", hint=f"views made for reading: {', '.join(VIEW_NAMES)}"
        )
    if isinstance(error, sqlite3.Warning):
        return SessionDBError(str(error))
    return translate(error)
