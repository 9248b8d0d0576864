"""The kinds of columns, constraints and tables that the schema is made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    column,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from sessiondb.schema.terms import TOKENS

metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# A number of 64 bits and texts in the order of their code points, with any engine. A
# STRICT table of SQLite has one name for each, and that order.
_INTEGER = BigInteger().with_variant(Integer(), "sqlite")
_FLOAT: Any = Double().with_variant(REAL(), "sqlite")
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")


def text_column(
    name: str, *args: Any, required: bool = False, default: str | None = None
) -> Column[Any]:
    """Return a column of texts."""
    server = None if default is None else text(f"'{default}'")
    return Column(name, _TEXT, *args, nullable=not required, server_default=server)


def int_column(
    name: str, *args: Any, required: bool = False, default: int | None = None
) -> Column[Any]:
    """Return a column of integers."""
    server = None if default is None else text(str(default))
    return Column(name, _INTEGER, *args, nullable=not required, server_default=server)


def float_column(name: str) -> Column[Any]:
    """Return a column of floating point numbers."""
    return Column(name, _FLOAT)


class IsJSON(FunctionElement[Any]):
    """Whether a text, which is not NULL, is JSON: a condition of a check."""

    name = "is_json"
    inherit_cache = True


@compiles(IsJSON)
def _write_json_cast(element: IsJSON, compiler: Any, **options: Any) -> str:
    """Write a cast, which raises the error of a value that is not JSON."""
    text = compiler.process(element.clauses, **options)
    return f"CAST({text} AS JSON) IS NOT NULL"


def json_checks(*names: str) -> list[CheckConstraint]:
    """Return checks that columns are JSON or NULL."""
    return [
        CheckConstraint(column(name).is_(None) | IsJSON(column(name)), name=name)
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
    return [float_column("cost"), *map(int_column, TOKENS)]


def partial_index(name: str, *columns: Any, where: str) -> Index:
    """Return an index of the rows that meet *where*."""
    condition = text(where)
    return Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


def index_of_blobs(reference: Column[Any]) -> Index:
    """Return the index by which the rows that refer to a blob are found."""
    name = reference.name
    return partial_index(
        f"ix_{reference.table.name}_{name}", reference, where=f"{name} IS NOT NULL"
    )


def strict_table(name: str, *args: Any) -> Table:
    """Return a STRICT table with a row number."""
    rid = Column("rid", _INTEGER, primary_key=True)
    return Table(name, metadata, rid, *args, sqlite_strict=True)
