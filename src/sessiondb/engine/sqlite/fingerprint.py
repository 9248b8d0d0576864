"""Verification that the schema of a file is the one that we made.

A database can come from a clone or a download, and a trigger planted in it runs
even with ``trusted_schema=OFF``. So our objects are compared by structure before the
first use. The user may add indexes, views and tables; another trigger, or a change of
one of our objects, is refused.
"""

from __future__ import annotations

import operator
import re
import sqlite3
from collections.abc import Iterable
from functools import cache, lru_cache

from sqlalchemy import Integer, LargeBinary, Text

from sessiondb.engine.sqlite import search
from sessiondb.engine.sqlite.ddl import TRIGGERS, named, tidy
from sessiondb.errors import UntrustedDatabaseError
from sessiondb.schema import views
from sessiondb.schema.tables import metadata
from sessiondb.schema.version import VERSION

# From the first letter of a word, which is never read again: every opening comes here.
_CALLED = re.compile(r'\b(\w++)["`\]]?\s*+\(')
_ODD = re.compile(r"generated|/\*|--")
_HARMLESS = set("json_valid check key unique in varchar and or not".split())
#: Schemas that are ours, to the letter: a process opens many files of the same schema.
_checked: set[tuple[int, tuple[object, ...]]] = set()
_KEPT = 8
_HINT = "if the file is yours, export its sessions with the release that wrote it"


def _type_of(column_type: object) -> str:
    if isinstance(column_type, Integer):
        return "INTEGER"
    if isinstance(column_type, LargeBinary):
        return "BLOB"
    return "TEXT" if isinstance(column_type, Text) else "REAL"


def check_schema(connection: sqlite3.Connection, version: int) -> None:
    """Compare the schema of a file with ours; raises `UntrustedDatabaseError`.

    A *version* above ours may have more columns and other views; its triggers
    must still be ours (a release that changes one raises ``min_reader``).
    """
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    ).fetchall()
    schema = version, tuple(rows)
    if schema in _checked:
        return

    derived: tuple[str, ...] = (*TRIGGERS, *search.TABLES)
    if version == VERSION:
        derived += (*views.VIEWS, search.CONTENT)

    check_derived(connection, derived)
    _check_functions(connection)
    _check_columns(connection, version)

    if len(_checked) >= _KEPT:
        _checked.clear()
    _checked.add(schema)


def check_derived(connection: sqlite3.Connection, derived: Iterable[str]) -> None:
    """Compare views, search tables and triggers with the statements that make them.

    Raises `UntrustedDatabaseError` if one is changed or missing, or if there is another
    trigger.
    """
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    found = {(kind, name): sql for kind, name, sql in rows}
    expected = {named(sql): sql for sql in derived}
    for kind, name in found.keys() - expected.keys():
        if kind == "trigger":
            raise UntrustedDatabaseError(
                f"the file has a trigger that is not ours: {name}", hint=_HINT
            )

    for (kind, name), sql in expected.items():
        there = found.get((kind, name), "")
        if there != sql and tidy(there) != tidy(sql):
            state = "changed" if there else "missing"
            raise UntrustedDatabaseError(
                f"{kind} {name} of the schema is {state}", hint=_HINT
            )


def _check_functions(connection: sqlite3.Connection) -> None:
    """Refuse functions that a CHECK, a default or an index would call on each write."""
    tables = list(metadata.tables)
    marks = ", ".join("?" * len(tables))
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'index') "
        f"AND sql IS NOT NULL AND tbl_name IN ({marks})",
        tables,
    ).fetchall()  # a cursor in the traceback would keep the file open

    for name, sql in rows:
        if odd := _odd_words(sql).difference(tables):
            what = ", ".join(sorted(odd))
            raise UntrustedDatabaseError(
                f"{name} of the schema uses {what}", hint=_HINT
            )


# A process opens many files with the same statements.
@lru_cache(256)
def _odd_words(sql: str) -> frozenset[str]:
    """Return the words of a statement that may call a function."""
    called = {word.lower() for word in _CALLED.findall(sql)} - _HARMLESS
    # A comment could separate a function from its parenthesis.
    return frozenset(called.union(_ODD.findall(sql.lower())))


@cache
def _our_columns() -> dict[str, dict[str, tuple[str, int]]]:
    """Return (type, required) of each column of our tables."""
    return {
        table.name: {c.name: (_type_of(c.type), int(not c.nullable)) for c in table.c}
        for table in metadata.tables.values()
    }


def _check_columns(connection: sqlite3.Connection, version: int) -> None:
    rows = connection.execute(
        'SELECT m.name, c.name, c.type, c."notnull" FROM sqlite_schema AS m '
        "JOIN pragma_table_xinfo(m.name) AS c WHERE m.type = 'table' AND m.name IN "
        f"({', '.join(map(repr, metadata.tables))})"
    ).fetchall()
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for table, column, kind, required in rows:
        found.setdefault(table, {})[column] = (kind, required)
    # A newer schema may have further columns.
    agrees = operator.eq if version == VERSION else operator.ge
    for table, ours in _our_columns().items():
        if not agrees(found.get(table, {}).items(), ours.items()):
            raise UntrustedDatabaseError(
                f"table {table} is not as we made it", hint=_HINT
            )
