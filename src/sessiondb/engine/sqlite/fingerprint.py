"""Whether a file's schema is the one we made.

A database can come from a clone or a download, and a trigger planted in it runs
even with ``trusted_schema=OFF``. So before first use our objects are compared
by structure. A user's own indexes, views and tables are welcome; a foreign
trigger, or one of our objects that was changed, is not.
"""

from __future__ import annotations

import re
import sqlite3

from sqlalchemy import Integer, LargeBinary, Text

from sessiondb.engine.sqlite import search
from sessiondb.engine.sqlite.ddl import TRIGGERS, tidy
from sessiondb.errors import UntrustedDatabaseError
from sessiondb.schema import views
from sessiondb.schema.tables import metadata
from sessiondb.schema.version import VERSION

_CALLED = re.compile(r'(\w+)["`\]]?\s*\(')
_ODD = re.compile(r"generated|/\*|--")
_HARMLESS = set("json_valid check key unique in varchar and or not".split())
_HINT = "if the file is yours, export its sessions with the release that wrote it"


def _type_of(column_type: object) -> str:
    if isinstance(column_type, Integer):
        return "INTEGER"
    if isinstance(column_type, LargeBinary):
        return "BLOB"
    return "TEXT" if isinstance(column_type, Text) else "REAL"


def _name_of(statement: str) -> str:
    words = statement.split()
    return words[3] if words[1] == "VIRTUAL" else words[2]


def check_schema(connection: sqlite3.Connection, version: int) -> None:
    """Compare the file's schema with ours; raises `UntrustedDatabaseError`.

    A *version* above ours may have more columns and other views; its triggers
    must still be ours (a release that changes one raises ``min_reader``).
    """
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    found = {(kind, name): sql for kind, name, sql in rows}
    expected = {_name_of(sql): sql for sql in TRIGGERS}
    triggers = {name: sql for (kind, name), sql in found.items() if kind == "trigger"}
    for name in triggers.keys() - expected.keys():
        raise UntrustedDatabaseError(
            f"the file has a trigger that is not ours: {name}", hint=_HINT
        )

    _require_same("trigger", expected, triggers)
    if version == VERSION:
        ours = {_name_of(sql): sql for sql in (*views.VIEWS, search.CONTENT)}
        _require_same(
            "view", ours, {n: s for (k, n), s in found.items() if k == "view"}
        )

    virtual = {_name_of(sql): sql for sql in search.TABLES}
    _require_same(
        "table", virtual, {n: s for (k, n), s in found.items() if k == "table"}
    )
    _check_functions(connection)
    _check_columns(connection, version)


def _check_functions(connection: sqlite3.Connection) -> None:
    """A CHECK, a default, or an index could call any function on every write."""
    tables = [table.name for table in metadata.sorted_tables]
    marks = ", ".join("?" * len(tables))
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'index') "
        f"AND sql IS NOT NULL AND tbl_name IN ({marks})",
        tables,
    ).fetchall()  # a cursor in the traceback would keep the file open

    for name, sql in rows:
        called = (
            {word.lower() for word in _CALLED.findall(sql)}
            - _HARMLESS
            - {*tables, name.lower()}
        )
        # A comment could stand between a function and its parenthesis.
        odd = called | set(_ODD.findall(sql.lower()))
        if odd:
            what = ", ".join(sorted(odd))
            raise UntrustedDatabaseError(
                f"{name} of the schema uses {what}", hint=_HINT
            )


def _require_same(kind: str, expected: dict[str, str], found: dict[str, str]) -> None:
    for name, sql in expected.items():
        there = found.get(name, "")
        if there != sql and tidy(there) != tidy(sql):
            state = "changed" if name in found else "missing"
            raise UntrustedDatabaseError(
                f"{kind} {name} of the schema is {state}", hint=_HINT
            )


def _check_columns(connection: sqlite3.Connection, version: int) -> None:
    rows = connection.execute(
        'SELECT m.name, c.name, c.type, c."notnull" FROM sqlite_schema AS m '
        "JOIN pragma_table_xinfo(m.name) AS c WHERE m.type = 'table' AND m.name IN "
        f"({', '.join(repr(t.name) for t in metadata.sorted_tables)})"
    ).fetchall()
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for table, column, kind, required in rows:
        found.setdefault(table, {})[column] = (kind, required)
    for table in metadata.sorted_tables:
        ours = {c.name: (_type_of(c.type), int(not c.nullable)) for c in table.columns}
        there = found.get(table.name, {})
        known = {name: there.get(name) for name in ours}
        if known != ours or (version == VERSION and there.keys() != ours.keys()):
            raise UntrustedDatabaseError(
                f"table {table.name} is not as we made it", hint=_HINT
            )
