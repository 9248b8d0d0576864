"""Core expressions, compiled once, on first use.

A cached Core statement costs eleven times the DBAPI call it makes, so the text
is kept and handed to the cursor. Parameters are named; inserts take one ``?``
for each column, in table order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.sql import ClauseElement, Insert

from sessiondb.engine.base import Dialect
from sessiondb.engine.default import ENGINE
from sessiondb.engine.elements import ListParameter, OnConflictDoNothing


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

    def compiled_for(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        """Return the text for *dialect*, and the constants it binds."""
        return dialect.compile(self._build(), self._columns)

    def _compile_default(self) -> tuple[str, dict[str, Any]]:
        self._compiled = self.compiled_for(ENGINE.dialect)
        return self._compiled

    @property
    def text(self) -> str:
        """The SQL text, with named parameters."""
        return (self._compiled or self._compile_default())[0]

    def bind(self, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the SQL text, and *params* with the constants it binds."""
        text, fixed = self._compiled or self._compile_default()
        return text, {**fixed, **params} if fixed else params


def p(name: str) -> Any:
    """Return the named parameter *name*."""
    return bindparam(name)


def update_of(
    table: Table, columns: str, *conditions: ColumnElement[bool]
) -> Statement:
    """Return an UPDATE of the space-separated *columns*, each a parameter."""
    return Statement(lambda: update(table).where(*conditions), columns.split())


# -- list parameters ---------------------------------------------------------


def as_list(values: Iterable[int] | Iterable[str]) -> str:
    """Return what a list parameter is given for *values*."""
    return json.dumps(list(values))


def numbers(name: str) -> Select[Any]:
    """Return the integers of the list parameter *name*, for ``column.in_(…)``."""
    return select(ListParameter(name, BigInteger).table_valued("value").c.value)


def texts(name: str) -> Select[Any]:
    """Return the texts of the list parameter *name*, for ``column.in_(…)``."""
    return select(ListParameter(name, Text).table_valued("value").c.value)


def list_text(name: str) -> str:
    """Return the list parameter *name* as SQL in parentheses, for ``column IN …``."""
    return ENGINE.dialect.list_text(name)


# -- inserts -----------------------------------------------------------------


@cache
def insert_text(table: Table, columns: Sequence[str]) -> str:
    """Return INSERT text with one ``?`` for each of *columns*.

    They are in table order.
    """
    return ENGINE.dialect.placeholders(insert(table), columns)


@cache
def insert_new_text(table: Table, columns: Sequence[str]) -> str:
    """Return the text of `insert_text` that keeps a row whose key is taken."""
    return (
        f"{insert_text(table, columns)} ON CONFLICT ({_key_of_table(table)}) DO NOTHING"
    )


@cache
def upsert_text(table: Table, columns: Sequence[str]) -> str:
    """Return the text of `insert_text` that updates a row whose key is taken."""
    key = _key_of_table(table)
    names = [name for name in columns if name not in key.split(", ")]
    values = ", ".join(f"{name} = excluded.{name}" for name in names)
    return f"{insert_text(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {values}"


def insert_new(table: Table) -> Insert:
    """Return an INSERT for ``from_select`` that passes over taken keys.

    The SELECT needs a WHERE.
    """
    statement = insert(table)
    statement._post_values_clause = OnConflictDoNothing()  # noqa: SLF001  no public way
    return statement


def _key_of_table(table: Table) -> str:
    """Return the columns of the only key that a table has besides its row number."""
    (key,) = (c for c in table.constraints if isinstance(c, UniqueConstraint))
    return ", ".join(column.name for column in key.columns)


def by_index(table: Table, index: str) -> tuple[Table, str, str]:
    """Return what ``with_hint`` needs to search *table* by *index*."""
    return table, ENGINE.dialect.index_hint(index), ENGINE.dialect.name
