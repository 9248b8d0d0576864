"""Tables that a program adds to the file, such as the checkpoints of a graph.

    GRAPH = Extension("graph")
    STEP = GRAPH.table(
        "step", session_column(), Column("number", Integer, nullable=False),
        Column("state", LargeBinary), UniqueConstraint("session_id", "number"),
    )

They are in the file beside ours and never mixed with them: a table is named
``ext_NAME_TABLE``, is STRICT and has a ``rid`` like any table here, and refers to
nothing but a session, whose rows go with it. So `check`, `backup`, `vacuum`, the
copy of a damaged file, an export and the reaper know what to do with a table whose
program they have never heard of. The row of an extension in ``extension`` names its
tables and the version that made them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    REAL,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import SchemaItem
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import SelectBase
from sqlalchemy.sql.visitors import iterate

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.schema import tables

#: The beginning of the names of all such tables: none of our own ever has it.
PREFIX: Final = "ext_"
#: The column of `session_column`.
SESSION: Final = "session_id"
_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
#: The types of columns, and the values of each in Python: those of a STRICT table.
_TYPES: dict[type, tuple[type, ...]] = {
    Text: (str,),
    Integer: (int,),
    REAL: (float, int),
    LargeBinary: (bytes,),
}
#: `engine.base.Dialect.compile_with_constants`.
Compile = Callable[[ClauseElement], tuple[str, dict[str, Any], frozenset[str]]]
#: An index has the name of its table in it, since names of indexes are those of a file.
_NAMES = {
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}


def session_column(*, required: bool = True) -> Column[Any]:
    """Return the column ``session_id``: the rows go when their session goes."""
    return Column(
        SESSION,
        Text,
        ForeignKey(tables.session.c.id, ondelete="CASCADE"),
        nullable=not required,
    )


class Extension:
    """The tables of one program, by its *name*.

    Each change of them (a further table, column or index) raises *version*, an integer
    from 1 on. A file of an earlier version gets the rest with the next write; one
    of a later version is used as it is. So a change only adds, and a further column is
    nullable or has a ``server_default``. Raises `InvalidInputError`.
    """

    def __init__(self, name: str, *, version: int = 1) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInputError(
                "the name of an extension is of small letters, digits and _, "
                f"not {abridged(name)}"
            )
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InvalidInputError(
                f"the version of an extension is 1 or more, not {abridged(version)}"
            )
        self.name, self.version = name, version
        self.metadata = MetaData(naming_convention=_NAMES)
        self.metadata.info["extension"] = self

    def __repr__(self) -> str:
        return f"Extension({self.name!r}, version={self.version})"

    def table(self, name: str, *items: SchemaItem) -> Table:
        """Return the new table ``ext_EXTENSION_NAME`` of *items*.

        They are columns of the types Text, Integer (64 bits), REAL and LargeBinary,
        `UniqueConstraint` and `Index`; its primary key is the row number ``rid``, as
        in all tables. Raises `InvalidInputError`.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInputError(
                "the name of a table is of small letters, digits and _, "
                f"not {abridged(name)}"
            )
        full_name = f"{PREFIX}{self.name}_{name}"
        if full_name in self.metadata.tables:
            raise InvalidInputError(f"{self!r} has a table {name} already")

        for item in items:
            _check_item(name, item)
        rid = Column("rid", Integer, primary_key=True)
        table = Table(full_name, self.metadata, rid, *items, sqlite_strict=True)
        if SESSION in table.c and not _begins_an_index(table, SESSION):
            # Else each session that goes would be looked for in the complete table.
            Index(None, table.c[SESSION])
        return table


def _check_item(table: str, item: object) -> None:
    if isinstance(item, Column):
        if type(item.type) not in _TYPES:
            raise InvalidInputError(
                f"column {item.name} of {table} is of the type Text, Integer, REAL or "
                f"LargeBinary, not {item.type!r}"
            )
        if item.primary_key or item.name == "rid" or not _NAME.fullmatch(item.name):
            raise InvalidInputError(
                f"{item.name} cannot be a column of {table}: names are of small "
                "letters, digits and _, and rid is the primary key"
            )
        if bool(item.foreign_keys) != (item.name == SESSION):
            raise InvalidInputError(
                f"column {item.name} of {table}: only session_column() refers to "
                "another table, and only it is called session_id"
            )
    elif isinstance(item, Index) and item.name is not None:
        raise InvalidInputError(
            f"an index of {table} is named after its columns: Index(None, …)"
        )
    elif not isinstance(item, UniqueConstraint | Index):
        raise InvalidInputError(
            f"a table is made of columns, UniqueConstraint and Index, not "
            f"{abridged(item)}"
        )


def _begins_an_index(table: Table, column: str) -> bool:
    lists: list[Iterable[Any]] = [index.columns for index in table.indexes]
    keys = [key for key in table.constraints if isinstance(key, UniqueConstraint)]
    lists += [key.columns for key in keys]
    return any(next(iter(columns)).name == column for columns in lists)


def extension_of(table: object) -> Extension:
    """Return the extension that a table is of.

    Raises `InvalidInputError` for anything else: our own tables have verbs.
    """
    owner = table.metadata.info.get("extension") if isinstance(table, Table) else None
    if not isinstance(owner, Extension):
        raise InvalidInputError(
            f"{abridged(getattr(table, 'name', table))} is not a table of an extension",
            hint="make one with Extension(…).table(…)",
        )
    return owner


def refuse_writing(statement: object) -> None:
    """Raise `InvalidInputError` for anything but a ``select()``."""
    if not isinstance(statement, SelectBase):
        raise InvalidInputError(
            f"a statement that is read is a select() of SQLAlchemy, not "
            f"{abridged(statement)}"
        )


def written_extension(statement: object) -> Extension:
    """Return the extension whose table *statement* changes.

    Raises `InvalidInputError` for anything but a change of such a table.
    """
    if not isinstance(statement, UpdateBase):
        raise InvalidInputError(
            "a statement that is executed is an insert(), update() or delete() of "
            f"SQLAlchemy, not {abridged(statement)}"
        )
    return extension_of(statement.table)


@lru_cache(256)
def key_of(table: Table, *, required: bool) -> tuple[str, ...]:
    """Return the columns of a table's only key, none if it has no single one.

    Raises `InvalidInputError` then if it is *required*.
    """
    keys = [key for key in table.constraints if isinstance(key, UniqueConstraint)]
    if len(keys) == 1:
        return tuple(column.name for column in keys[0].columns)
    if required:
        raise InvalidInputError(
            f"{table.name} has no single UniqueConstraint, so no rows that could be "
            "replaced or kept"
        )
    return ()


class CompiledStatement(NamedTuple):
    """A statement of a program, as text."""

    text: str
    #: The values that are in the statement itself, by name.
    constants: dict[str, Any]
    #: The names of its parameters.
    parameters: frozenset[str]
    #: The extensions whose tables it names.
    extensions: tuple[Extension, ...]


# A program has its statements in variables, and runs each many times.
@lru_cache(256)
def compiled(statement: ClauseElement, write: Compile) -> CompiledStatement:
    """Return a statement as *write* writes it; raises `InvalidInputError`."""
    if not isinstance(statement, UpdateBase | SelectBase):
        raise InvalidInputError(
            f"a statement is one of SQLAlchemy, not {abridged(statement)}"
        )
    try:
        written = write(statement)
    except SQLAlchemyError as error:
        raise InvalidInputError(f"the statement cannot be written: {error}") from error

    found = {
        item.metadata.info["extension"]: None
        for item in iterate(statement)
        if isinstance(item, Table) and "extension" in item.metadata.info
    }
    return CompiledStatement(*written, tuple(found))


def parameter_values(
    names: frozenset[str], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of the parameters *names*; raises `InvalidInputError`.

    A session may be named by its handle.
    """
    if parameters.keys() != names:
        wanted = ", ".join(sorted(names)) or "none"
        raise InvalidInputError(
            f"the parameters of this statement are {wanted}, not "
            f"{abridged(sorted(map(str, parameters)))}"
        )
    for name, value in parameters.items():
        if name != SESSION:
            check_scalar(value, name)
    return dict(parameters)


def row_values(
    table: Table, row: Mapping[str, Any], columns: Sequence[str]
) -> list[Any]:
    """Return the values of a row in the order of *columns*.

    A session may be named by its handle. Raises `InvalidInputError`.
    """
    if not isinstance(row, Mapping) or row.keys() != set(columns):
        raise InvalidInputError(
            f"rows of {table.name} have the columns of the first one "
            f"({', '.join(columns)}), not {abridged(row)}"
        )
    values = []
    for column in _columns_of(table, tuple(columns)):
        value = row[column.name]
        if column.name != SESSION or value is None:
            check_value(column, value)
        values.append(value)
    return values


@lru_cache(256)
def _columns_of(table: Table, names: tuple[str, ...]) -> list[Column[Any]]:
    return [table.c[name] for name in names]


def row_columns(table: Table, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that *row* has, in their order; raises `InvalidInputError`."""
    if not isinstance(row, Mapping) or not row:
        raise InvalidInputError(
            f"rows of {table.name} are mappings of columns, not {abridged(row)}"
        )
    return _columns_named(table, tuple(row))


# The rows of a program have the same few columns each time.
@lru_cache(256)
def _columns_named(table: Table, row: tuple[Any, ...]) -> tuple[str, ...]:
    unknown = [str(name) for name in row if name not in table.c or name == "rid"]
    if unknown:
        raise InvalidInputError(f"{table.name} has no column {', '.join(unknown)}")
    for column in table.c:
        is_needed = not column.nullable and column.server_default is None
        if is_needed and column.name not in row and column.name != "rid":
            raise InvalidInputError(f"a row of {table.name} needs {column.name}")
    return tuple(column.name for column in table.c if column.name in row)


def check_value(column: Column[Any], value: object) -> None:
    """Raise `InvalidInputError` for a value that a column cannot have."""
    if value is None:
        if not column.nullable:
            raise InvalidInputError(f"{_name_of(column)} must not be None")
        return
    if not isinstance(value, _TYPES[type(column.type)]):
        kind = type(column.type).__name__
        raise InvalidInputError(f"{_name_of(column)} is {kind}, not {abridged(value)}")
    # The name is made for an error: there are many values, each of them good.
    if isinstance(value, str) and value.isascii():
        return
    if not isinstance(value, bytes):
        check_scalar(value, _name_of(column))


def _name_of(column: Column[Any]) -> str:
    return f"{column.table.name}.{column.name}"


def check_scalar(value: object, name: str) -> None:
    """Raise `InvalidInputError` for a value that no column can have."""
    if value is None or isinstance(value, bytes):
        return
    if isinstance(value, float):
        if math.isnan(value):
            raise InvalidInputError(f"{name} must be a number, not NaN")
        return
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise InvalidInputError(
                f"{name} has 64 bits, too few for {abridged(value)}"
            )
        return
    if not isinstance(value, str):
        raise InvalidInputError(
            f"{name} is a string, a number, bytes or None, not {abridged(value)}"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{name} is not valid Unicode: {error}") from error
