"""Verification that the schema of a file is the one that we made.

A database can come from a clone or a download, and a trigger planted in it runs
even with ``trusted_schema=OFF``. So our objects are compared by structure before the
first use. The user may add indexes, views and tables; another trigger, or a change of
one of our objects, is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from sessiondb.engine.sqlite import search_tables, views
from sessiondb.engine.sqlite.ddl import TRIGGERS, named, tidy
from sessiondb.errors import SchemaVersionError, UntrustedDatabaseError
from sessiondb.patterns import late_pattern
from sessiondb.schema.columns import TABLES
from sessiondb.schema.version import VERSION

# From the first letter of a word, which is never read again: every opening comes here.
_CALLED = late_pattern(r'\b(\w++)["`\]]?\s*+\(')
_ODD = late_pattern(r"generated|/\*|--")
_HARMLESS = set("json_valid check key unique in varchar and or not".split())
#: Schemas that are ours, to the letter: a process opens many files of the same schema.
_checked: set[tuple[int, tuple[object, ...]]] = set()
_KEPT = 8
_HINT = "if the file is yours, export its sessions with the release that wrote it"


def check_schema(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Compare the schema of the file at *path* with ours.

    A *version* above ours may have more columns and other views; its triggers
    must still be ours (a release that changes one raises ``min_reader``). Raises
    `UntrustedDatabaseError` for what may run or lie, and `SchemaVersionError` for a
    file that has other tables, or less than we make: of another state of sessiondb.
    """
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    ).fetchall()
    schema = version, tuple(rows)
    if schema in _checked:
        return

    derived: tuple[str, ...] = (*TRIGGERS, *search_tables.TABLES)
    if version == VERSION:
        derived += (*views.VIEWS, *search_tables.VIEWS)

    _check_triggers(connection, path, derived)
    _check_functions(connection, path)
    # Before the views: where tables differ, views do too, without being planted.
    _check_columns(connection, path, version)
    check_derived(connection, path, derived)

    if len(_checked) >= _KEPT:
        _checked.clear()
    _checked.add(schema)


def _check_triggers(
    connection: sqlite3.Connection, path: Path, derived: Iterable[str]
) -> None:
    """Refuse a trigger that is not among *derived*."""
    expected = {named(sql) for sql in derived}
    rows = connection.execute("SELECT type, name FROM sqlite_schema").fetchall()
    for kind, name in rows:
        if kind == "trigger" and (kind, name) not in expected:
            raise UntrustedDatabaseError(
                f"{path} has a trigger that is not ours: {name}", hint=_HINT
            )


def check_derived(
    connection: sqlite3.Connection, path: Path, derived: Iterable[str]
) -> None:
    """Compare views, search tables and triggers with the statements that make them.

    Raises `UntrustedDatabaseError` if one is changed or if there is another trigger,
    and `SchemaVersionError` if one is missing.
    """
    derived = tuple(derived)
    _check_triggers(connection, path, derived)
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    stored = {(kind, name): sql for kind, name, sql in rows}
    for sql in derived:
        kind, name = named(sql)
        if (kind, name) not in stored:
            raise _other_schema(path, f"it has no {kind} {name}")
        definition = stored[kind, name]
        if definition != sql and tidy(definition) != tidy(sql):
            raise UntrustedDatabaseError(
                f"{kind} {name} of {path} is changed", hint=_HINT
            )


def _other_schema(path: Path, difference: str) -> SchemaVersionError:
    return SchemaVersionError(
        f"{path} has another schema than this release: {difference}", hint=_HINT
    )


def _check_functions(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse functions that a CHECK, a default or an index would call on each write.

    Also in tables of extensions, from which rows are removed whoever made them.
    """
    tables = list(TABLES)
    marks = ", ".join("?" * len(tables))
    rows = connection.execute(
        "SELECT name, tbl_name, sql FROM sqlite_schema "
        "WHERE type IN ('table', 'index') AND sql IS NOT NULL "
        f"AND (tbl_name IN ({marks}) OR tbl_name GLOB 'ext_*')",
        tables,
    ).fetchall()  # a cursor in the traceback would keep the file open

    for name, table, sql in rows:
        if odd := _odd_words(sql).difference(tables, [table]):
            names = ", ".join(sorted(odd))
            raise UntrustedDatabaseError(f"{name} of {path} uses {names}", hint=_HINT)


# A process opens many files with the same statements.
@lru_cache(256)
def _odd_words(sql: str) -> frozenset[str]:
    """Return the words of a statement that may call a function."""
    called = {word.lower() for word in _CALLED.findall(sql)} - _HARMLESS
    # A comment could separate a function from its parenthesis.
    return frozenset(called.union(_ODD.findall(sql.lower())))


def _check_columns(connection: sqlite3.Connection, path: Path, version: int) -> None:
    rows = connection.execute(
        'SELECT m.name, c.name, c.type, c."notnull" FROM sqlite_schema AS m '
        "JOIN pragma_table_xinfo(m.name) AS c WHERE m.type = 'table' AND m.name IN "
        f"({', '.join(map(repr, TABLES))})"
    ).fetchall()
    stored: dict[str, dict[str, tuple[str, bool]]] = {}
    for table, column, kind, required in rows:
        stored.setdefault(table, {})[column] = (kind, required == 1)

    for table, our_columns in TABLES.items():
        columns = stored.get(table)
        if columns is None:
            raise _other_schema(path, f"it has no table {table}")
        for name, definition in our_columns.items():
            if columns.get(name) != definition:
                raise _other_schema(path, f"column {name} of {table} is not the same")
        # A newer schema may have further columns.
        further = sorted(columns.keys() - our_columns.keys())
        if further and version == VERSION:
            raise _other_schema(path, f"{table} has a column {further[0]}")
