"""``sql``: SQL that can only read, or the sqlite3 shell."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import click

from sessiondb.arguments import file_of
from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    abridged,
)

#: Actions allowed to a statement; any other, as ATTACH or VACUUM INTO, writes somewhere.
_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
#: How a virtual table such as the search index is set up when it is first used.
_DECLARED = (sqlite3.SQLITE_UPDATE, "sqlite_master")
_PRAGMAS = frozenset(
    "application_id collation_list compile_options data_version encoding foreign_key_check "
    "foreign_key_list freelist_count function_list index_info index_list index_xinfo "
    "integrity_check journal_mode page_count page_size pragma_list quick_check table_info "
    "table_list table_xinfo user_version".split()
)
_VIEWS = (
    "session_list, transcript, tool_call, usage_by_day, usage_by_model, session_tree"
)
#: Pragmas that set something if they have a value; for others it names what to look at.
_SETTINGS = frozenset(
    ("application_id", "encoding", "journal_mode", "page_size", "user_version")
)
#: Rows that a table on a terminal is measured by.
_MEASURED = 200


@click.command("sql")
@click.argument("query", required=False)
@shared.as_json
@click.pass_obj
def sql_command(options: Options, *, query: str | None, as_json: bool) -> int:
    """Query with SQL, read-only; without QUERY open the sqlite3 shell, read-only.

    Made for reading are the views session_list, transcript, tool_call,
    usage_by_day, usage_by_model and session_tree. A pipe gets tab-separated
    lines without a header.
    """
    with open_store(options) as store:
        path = file_of(store)
        if query is not None:
            _query(path, query, as_json)
            return 0
    return _shell(path)


def _shell(path: Path) -> int:
    program = shutil.which("sqlite3")
    if program is None:
        raise NotFoundError("no sqlite3 on PATH", hint="install it, or give a QUERY")
    return subprocess.run([program, "-readonly", str(path)], check=False).returncode  # noqa: S603


def _query(path: Path, query: str, as_json: bool) -> None:
    from sessiondb.engine.sqlite.connection import connect

    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"QUERY is not valid Unicode: {abridged(query)}"
        ) from error

    with closing(connect(path, mode="ro")) as connection:
        connection.set_authorizer(_authorize)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            _write(connection.execute(query), as_json)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _error(error) from error


def _authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
    allowed = action in _ALLOWED or (action, first) == _DECLARED
    if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS:
        allowed = not second or first not in _SETTINGS
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _error(error: sqlite3.Error | sqlite3.Warning) -> SessionDBError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY):
        return ReadOnlyError(
            f"sql only reads ({error})",
            hint="write with other commands of sessiondb, "
            "which keep the database consistent",
        )
    if code == sqlite3.SQLITE_ERROR:
        return InvalidInputError(
            f"SQL: {error}", hint=f"views made for reading: {_VIEWS}"
        )
    if isinstance(error, sqlite3.Warning):
        return SessionDBError(str(error))

    from sessiondb.engine.sqlite.failures import translate

    return translate(error)


def _write(cursor: sqlite3.Cursor, as_json: bool) -> None:
    names = _names(cursor)
    if as_json:
        output.write_array(dict(zip(names, row, strict=True)) for row in cursor)
    elif output.screen().terminal and names:
        output.page(_table(names, cursor))
    else:
        for row in cursor:
            output.write_tsv(*row)


def _names(cursor: sqlite3.Cursor) -> list[str]:
    """Return the names of the columns; a repeated one gets a number, to lose no value."""
    names: list[str] = []
    for name, *_ in cursor.description or ():
        unique, number = name, 1
        while unique in names:
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    return names


def _table(names: list[str], rows: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    """Yield an aligned table for each `_MEASURED` rows, so that any number can be shown."""
    while measured := list(islice(rows, _MEASURED)):
        yield from output.table(names, [list(map(_shown, row)) for row in measured])


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bytes):
        return f"x'{value[:32].hex()}'"
    return str(value)
