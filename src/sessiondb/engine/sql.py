"""Statements as text: those that ship with an engine, and those put together here.

The source of a shipped statement is an expression of SQLAlchemy Core in `statements`,
under the same name; `scripts/freeze_statements.py` writes the text of all of them for
each engine. So a process that reads or appends never loads SQLAlchemy, which takes
longer than all else that it does, and the SQL that runs can be read as SQL. Parameters
are named; inserts take one ``?`` for each column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from sessiondb.schema.columns import KEYS, TABLES

if TYPE_CHECKING:
    from sessiondb.engine.base import Engine

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
#: Picks values out of a row.
Pick = Callable[[Sequence[object]], tuple[Any, ...]]


class Statement:
    """A statement whose text ships with each engine.

    *name* is that of the module below `statements` and of the expression in it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def text_on(self, engine: Engine) -> str:
        """Return the SQL text for *engine*, with named parameters."""
        return engine.dialect.shipped[self.name]


class ComposedStatement(Statement):
    """A statement that is put together as text when its terms are known."""

    def __init__(self, text: str) -> None:
        super().__init__("composed")
        self.text = text

    def text_on(self, engine: Engine) -> str:  # noqa: ARG002  it is the engine's own
        """Return the text: it was put together for the engine that runs it."""
        return self.text


#: A generator that yields statements with their parameters and receives their rows.
Read = Generator[tuple[Statement, Mapping[str, Any]], Rows, T]


# -- list parameters ---------------------------------------------------------


def as_list(
    values: Iterable[int] | Iterable[str] | Iterable[tuple[int | str, ...]],
) -> str:
    """Return what a list parameter is given for *values*, or for tuples of them."""
    return json.dumps(list(values))


# -- inserts -----------------------------------------------------------------


def quoted(column: str) -> str:
    """Return the name of a column as it is written in SQL: ``offset`` is a word of it.

    So may be any name that a program gave to a column of its own.
    """
    return f'"{column}"'


def listed(columns: Iterable[str]) -> str:
    """Return the names of columns with commas, `quoted`."""
    return ", ".join(map(quoted, columns))


@cache
def insert_text(table: str, columns: Sequence[str]) -> str:
    """Return the text of an INSERT with one ``?`` for each of *columns*."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({listed(columns)}) VALUES ({marks})"


class SparseInsert:
    """The INSERTs into a table that leave out what is None.

    A message has two thirds of its columns NULL, and sqlite3 looks up an adapter for
    each None that it binds, which took a tenth of an append. Few sets of columns occur:
    each has a text of its own.
    """

    def __init__(self, table: str, values: Sequence[str]) -> None:
        """*values* names those of a row, in any order.

        Of a name that comes twice the first one counts, and one that is not a column
        is left out.
        """
        self._table, self._values = table, values
        self._inserts: dict[tuple[type, ...], tuple[str, Pick]] = {}

    def of_row(self, values: Sequence[object]) -> tuple[str, tuple[Any, ...]]:
        """Return the text for a row and the values that it takes, two at least."""
        # The types of the values, in one call into C, say which of them are None.
        kinds = tuple(map(type, values))
        insert = self._inserts.get(kinds)
        if insert is None:
            insert = self._inserts[kinds] = self._insert_of(kinds)
        text, pick = insert
        return text, pick(values)

    def _insert_of(self, kinds: tuple[type, ...]) -> tuple[str, Pick]:
        places: dict[str, int] = {}
        for place, name in enumerate(self._values):
            if name in TABLES[self._table]:
                places.setdefault(name, place)
        stated = [name for name in places if kinds[places[name]] is not NoneType]
        pick = itemgetter(*[places[name] for name in stated])
        return insert_text(self._table, tuple(stated)), pick


@cache
def sparse_insert(table: str, values: Sequence[str]) -> SparseInsert:
    """Return the INSERTs of rows with these *values*: see `SparseInsert`."""
    return SparseInsert(table, values)


@cache
def update_text(table: str, columns: Sequence[str], key: str) -> str:
    """Return the text of an UPDATE of one row, whose *key* is the last ``?``."""
    values = ", ".join(f"{quoted(name)} = ?" for name in columns)
    return f"UPDATE {table} SET {values} WHERE {key} = ?"


@cache
def insert_new_text(table: str, columns: Sequence[str], key: Sequence[str] = ()) -> str:
    """Return the text of `insert_text` that keeps a row whose key is taken.

    *key* is given for a table that is not ours.
    """
    names = listed(key or KEYS[table])
    return f"{insert_text(table, columns)} ON CONFLICT ({names}) DO NOTHING"


@cache
def upsert_text(table: str, columns: Sequence[str], key: Sequence[str] = ()) -> str:
    """Return the text of `insert_text` that updates a row whose key is taken.

    *key* is given for a table that is not ours.
    """
    key = key or KEYS[table]
    others = [quoted(name) for name in columns if name not in key]
    values = ", ".join(f"{name} = excluded.{name}" for name in others)
    if not values:
        return insert_new_text(table, columns, key)
    return (
        f"{insert_text(table, columns)} "
        f"ON CONFLICT ({listed(key)}) DO UPDATE SET {values}"
    )
