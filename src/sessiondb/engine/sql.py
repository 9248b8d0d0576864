"""Statements as text: those that ship with the engine, and those put together here.

The source of a shipped statement is an expression of SQLAlchemy Core in `statements`,
under the same name; `scripts/freeze_statements.py` writes the text of all of them for
each engine. So a process that reads or appends never loads SQLAlchemy, which takes
longer than all else that it does, and the SQL that runs can be read as SQL. Parameters
are named; inserts take one ``?`` for each column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import compress
from typing import Any

from sessiondb.engine.default import ENGINE
from sessiondb.schema.columns import KEYS


class Statement:
    """A statement whose text ships with the engine, looked up when it is first run.

    *name* is that of the module below `statements` and of the expression in it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def text(self) -> str:
        """The SQL text, with named parameters."""
        return ENGINE.dialect.shipped[self.name]


class ComposedStatement(Statement):
    """A statement that is put together as text when its terms are known."""

    def __init__(self, text: str) -> None:
        super().__init__("composed")
        self.text = text


# -- list parameters ---------------------------------------------------------


def as_list(values: Iterable[int] | Iterable[str]) -> str:
    """Return what a list parameter is given for *values*."""
    return json.dumps(list(values))


def list_text(name: str) -> str:
    """Return the list parameter *name* as SQL in parentheses, for ``column IN …``."""
    return ENGINE.dialect.list_text(name)


# -- inserts -----------------------------------------------------------------


@cache
def insert_text(table: str, columns: Sequence[str]) -> str:
    """Return the text of an INSERT with one ``?`` for each of *columns*."""
    return ENGINE.dialect.insert_text(table, columns)


class SparseInsert:
    """The INSERTs into a table that leave out what is None.

    A message has two thirds of its columns NULL, and sqlite3 looks up an adapter for
    each None that it binds, which took a tenth of an append. Few sets of columns occur:
    each has a text of its own.
    """

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        self._table, self._columns = table, columns
        self._texts: dict[tuple[bool, ...], str] = {}

    def of_row(self, values: Sequence[object]) -> tuple[str, tuple[Any, ...]]:
        """Return the text for a row and the values that it takes."""
        is_stated = tuple([value is not None for value in values])
        text = self._texts.get(is_stated)
        if text is None:
            text = insert_text(self._table, tuple(compress(self._columns, is_stated)))
            self._texts[is_stated] = text
        return text, tuple(compress(values, is_stated))


@cache
def sparse_insert(table: str, columns: Sequence[str]) -> SparseInsert:
    """Return the INSERTs of rows with these *columns*."""
    return SparseInsert(table, columns)


@cache
def update_text(table: str, columns: Sequence[str], key: str) -> str:
    """Return the text of an UPDATE of one row, whose *key* is the last ``?``."""
    values = ", ".join(f"{name} = ?" for name in columns)
    return f"UPDATE {table} SET {values} WHERE {key} = ?"


@cache
def insert_new_text(table: str, columns: Sequence[str], key: Sequence[str] = ()) -> str:
    """Return the text of `insert_text` that keeps a row whose key is taken.

    *key* is given for a table that is not ours.
    """
    names = ", ".join(key or KEYS[table])
    return f"{insert_text(table, columns)} ON CONFLICT ({names}) DO NOTHING"


@cache
def upsert_text(table: str, columns: Sequence[str], key: Sequence[str] = ()) -> str:
    """Return the text of `insert_text` that updates a row whose key is taken.

    *key* is given for a table that is not ours.
    """
    key = key or KEYS[table]
    values = ", ".join(
        f"{name} = excluded.{name}" for name in columns if name not in key
    )
    if not values:
        return insert_new_text(table, columns, key)
    return (
        f"{insert_text(table, columns)} "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {values}"
    )
