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
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_or
from sqlalchemy.sql import Insert

from sessiondb.engine.elements import (
    ListParameter,
    OnConflictDoNothing,
    PairsParameter,
    PartsParameter,
)


class StatedInteger(BigInteger):
    """The type of a parameter for which no column states one: a NULL has no other."""

    render_bind_cast = True


class StatedText(Text):
    """The same for texts."""

    render_bind_cast = True


def p(name: str) -> Any:
    """Return the named parameter *name*."""
    return bindparam(name)


def number(name: str) -> Any:
    """Return the integer parameter *name*, for which no column states a type."""
    return bindparam(name, type_=StatedInteger())


def string(name: str) -> Any:
    """Return the text parameter *name*, for which no column states a type."""
    return bindparam(name, type_=StatedText())


def numbers(name: str) -> Select[Any]:
    """Return the integers of the list parameter *name*, for ``column.in_(…)``."""
    return select(ListParameter(name, BigInteger).table_valued("value").c.value)


def texts(name: str) -> Select[Any]:
    """Return the texts of the list parameter *name*, for ``column.in_(…)``."""
    return select(ListParameter(name, Text).table_valued("value").c.value)


def pairs(name: str) -> Any:
    """Return the list parameter *name* of pairs of texts, as columns first, second."""
    return PairsParameter(name).table_valued("first", "second")


def parts(name: str) -> Select[Any]:
    """Return the addresses of the list parameter *name*, for ``tuple_(…).in_(…)``.

    Each is the ``session_id``, ``seq`` and ``idx`` of a part.
    """
    columns = PartsParameter(name).table_valued("session_id", "seq", "idx").c
    return select(columns.session_id, columns.seq, columns.idx)


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


def insert_or_update(
    table: Table, key: str, *, only: ColumnElement[bool] | None = None, **updated: Any
) -> Insert:
    """Return an INSERT that updates the row whose *key*, of columns, is taken.

    With *only* just a row that meets it; another one stays. ``values`` states the row
    to be inserted.
    """
    # SQLAlchemy has no common word for what both spell alike: this is the one whose
    # attributes the compilers of both read.
    return insert_or(table).on_conflict_do_update(
        index_elements=key.split(), set_=updated, where=only
    )


def of_session(statement: Select[Any]) -> Select[Any]:
    """Return a query whose blobs are those of the session ``:sid``.

    An engine that keeps the blobs of sessions apart looks for no others.
    """
    return statement.prefix_with(text("/* of sid */"), dialect="postgresql")


def by_index(table: FromClause, index: str) -> tuple[FromClause, str, str]:
    """Return what ``with_hint`` needs to have SQLite search *table* by *index*."""
    return table, f"INDEXED BY {index}", "sqlite"
