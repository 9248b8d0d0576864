"""Core expressions, compiled once, on first use.

A cached Core statement costs eleven times the DBAPI call it makes, so the text
is kept and handed to the cursor. Parameters are named; inserts take one ``?``
for each column, in table order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Table, bindparam, insert, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.sql import ClauseElement


class _Compiler(SQLiteCompiler):
    """SQLite's, with hints: of two indexes that fit, the planner does not know the smaller one."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:  # noqa: ARG002
        """Write ``with_hint(table, "INDEXED BY …")`` after the table."""
        return text


class Statement:
    """A Core expression that is compiled when it is first run.

    *columns* are the keys of an INSERT or UPDATE whose values are given at run time.
    """

    __slots__ = ("_build", "_columns", "_compiled")

    def __init__(
        self, build: Callable[[], ClauseElement], columns: Sequence[str] | None = None
    ) -> None:
        self._build = build
        self._columns = None if columns is None else list(columns)
        self._compiled: tuple[str, dict[str, Any]] | None = None

    def _compile(self) -> tuple[str, dict[str, Any]]:
        dialect = sqlite.dialect(paramstyle="named")
        dialect.statement_compiler = _Compiler
        made: Any = self._build().compile(dialect=dialect, column_keys=self._columns)
        fixed = {
            n: bound.effective_value
            for n, bound in made.binds.items()
            if not bound.required
        }
        self._compiled = (str(made), fixed)
        return self._compiled

    @property
    def text(self) -> str:
        """The SQL text, with named parameters."""
        return (self._compiled or self._compile())[0]

    def bind(self, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the SQL text, and *params* with the constants that the expression holds itself."""
        text, fixed = self._compiled or self._compile()
        return text, {**fixed, **params} if fixed else params


def p(name: str) -> Any:
    """Return the named parameter *name*."""
    return bindparam(name)


def update_of(table: Table, columns: str, *where: ColumnElement[bool]) -> Statement:
    """Return an UPDATE that sets the space-separated *columns* to parameters of their names."""
    return Statement(lambda: update(table).where(*where), columns.split())


@cache
def insert_text(table: Table, columns: Sequence[str], prefix: str = "") -> str:
    """Return INSERT text with one ``?`` for each of *columns*, which are in table order."""
    statement = insert(table)
    if prefix:
        statement = statement.prefix_with(prefix)
    made = statement.compile(dialect=sqlite.dialect(), column_keys=list(columns))
    if tuple(made.positiontup or ()) != tuple(columns):
        raise ValueError(f"columns of {table.name} must be in table order")
    return str(made)
