"""Terms of Core expressions that SQLAlchemy lacks: the vocabulary of `statements`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.sql import Insert

from sessiondb.engine.default import ENGINE
from sessiondb.engine.elements import ListParameter, OnConflictDoNothing


def p(name: str) -> Any:
    """Return the named parameter *name*."""
    return bindparam(name)


def numbers(name: str) -> Select[Any]:
    """Return the integers of the list parameter *name*, for ``column.in_(…)``."""
    return select(ListParameter(name, BigInteger).table_valued("value").c.value)


def texts(name: str) -> Select[Any]:
    """Return the texts of the list parameter *name*, for ``column.in_(…)``."""
    return select(ListParameter(name, Text).table_valued("value").c.value)


def update_of(table: Table, columns: str, *conditions: ColumnElement[bool]) -> Update:
    """Return an UPDATE of the space-separated *columns*, each a parameter."""
    return update(table).where(*conditions).values({n: p(n) for n in columns.split()})


def insert_new(table: Table) -> Insert:
    """Return an INSERT for ``from_select`` that passes over taken keys.

    The SELECT needs a WHERE.
    """
    statement = insert(table)
    statement._post_values_clause = OnConflictDoNothing()  # noqa: SLF001  no public way
    return statement


def by_index(table: FromClause, index: str) -> tuple[FromClause, str, str]:
    """Return what ``with_hint`` needs to search *table* by *index*."""
    return table, ENGINE.dialect.index_hint(index), ENGINE.dialect.name
