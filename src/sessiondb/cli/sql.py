"""``sql``: SQL that can only read, or the shell of the engine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store
from sessiondb.errors import InvalidInputError, abridged

if TYPE_CHECKING:
    from sessiondb.engine.base import Cursor, Target

#: Rows that a table on a terminal is measured by.
_MEASURED = 200


@click.command("sql")
@click.argument("query", required=False)
@shared.as_json
@click.pass_obj
def sql_command(options: Options, *, query: str | None, as_json: bool) -> int:
    """Query with SQL, read-only; without QUERY open the sqlite3 shell, read-only.

    Made for reading are the views session_list, transcript, tool_call,
    changed_file, context_source, usage, usage_by_day, usage_by_model and
    session_tree. A pipe gets tab-separated lines without a header.

    In QUERY, data_json(data) is the column data of session, message or part as JSON;
    the sqlite3 shell does not have it.
    """
    from sessiondb.location.database import database_of

    with open_store(options) as store:
        database = database_of(store)
        if query is not None:
            _run_query(database, query, as_json)
            return 0
    shell = database.shell()
    environment = os.environ | shell.environment
    ended = subprocess.run(shell.command, env=environment, check=False)  # noqa: S603
    return ended.returncode


def _run_query(database: Target, query: str, as_json: bool) -> None:
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"QUERY is not valid Unicode: {abridged(query)}"
        ) from error

    with database.query(query) as cursor:
        _write_rows(cursor, as_json)


def _write_rows(cursor: Cursor, as_json: bool) -> None:
    names = _column_names(cursor)
    if as_json:
        output.write_array(dict(zip(names, row, strict=True)) for row in cursor)
    elif output.screen().terminal and names:
        output.page(_query_table(names, iter(cursor)))
    else:
        for row in cursor:
            output.write_tsv(*row)


def _column_names(cursor: Cursor) -> list[str]:
    """Return the names of the columns; a repeated one gets a number."""
    names: list[str] = []
    for name, *_ in cursor.description or ():
        unique, number = name, 1
        while unique in names:
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    return names


def _query_table(names: list[str], rows: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    """Yield an aligned table for each `_MEASURED` rows: there may be any number."""
    while measured := list(islice(rows, _MEASURED)):
        yield from output.table(
            names, [list(map(_shown_value, row)) for row in measured]
        )


def _shown_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bytes):
        return f"x'{value[:32].hex()}'"
    return str(value)
