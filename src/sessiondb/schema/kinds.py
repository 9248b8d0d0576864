"""The kinds of columns, constraints and tables that the schema is made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

from sessiondb.schema.terms import TOKENS

metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def text_column(
    name: str, *args: Any, required: bool = False, default: str | None = None
) -> Column[Any]:
    """Return a column of texts."""
    server = None if default is None else text(f"'{default}'")
    return Column(name, Text, *args, nullable=not required, server_default=server)


def int_column(
    name: str, *args: Any, required: bool = False, default: int | None = None
) -> Column[Any]:
    """Return a column of integers."""
    server = None if default is None else text(str(default))
    return Column(name, Integer, *args, nullable=not required, server_default=server)


def json_checks(*names: str) -> list[CheckConstraint]:
    """Return checks that columns are JSON or NULL."""
    return [
        CheckConstraint(f"{name} IS NULL OR json_valid({name})", name=name)
        for name in names
    ]


def one_of(name: str, values: str) -> CheckConstraint:
    """Return the check that a column is one of *values*, separated by spaces."""
    # For an IN with three values or more SQLite builds a temporary table each time that
    # a row is inserted: more than a third of the INSERT of a message.
    return CheckConstraint(
        " OR ".join(f"{name} = '{value}'" for value in values.split()), name=name
    )


def blob_ref(name: str) -> Column[Any]:
    """Return a column with the hash of a blob."""
    return text_column(name, ForeignKey("blob.hash"))


def usage_columns() -> list[Column[Any]]:
    """Return the cost and the token counts."""
    return [Column("cost", REAL), *map(int_column, TOKENS)]


def strict_table(name: str, *args: Any) -> Table:
    """Return a STRICT table with a row number."""
    rid = Column("rid", Integer, primary_key=True)
    return Table(name, metadata, rid, *args, sqlite_strict=True)
