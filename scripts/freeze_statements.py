"""Write what ships in place of SQLAlchemy: tables, their columns, and statements, as SQL.

Tables and statements are written for each engine.

    .venv/bin/python scripts/freeze_statements.py

Run it after a change in `sessiondb.schema` or in `sessiondb.statements`, and read its difference.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Integer, LargeBinary, Table, Text, UniqueConstraint
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.elements import TextClause
from sqlalchemy.sql.selectable import SelectBase
from sqlalchemy.types import TypeEngine

from sessiondb.engine.base import Dialect
from sessiondb.engine.shipped import lay_out, write_texts
from sessiondb.schema import tables

COLUMNS = Path(tables.__file__).with_name("columns.py")
ABOUT = (
    "Written by scripts/freeze_statements.py; the source is src/sessiondb/statements."
)
ABOUT_TABLES = (
    "Written by scripts/freeze_statements.py; the source is schema/tables.py."
)
#: The folders of `sessiondb.engine` with an engine.
ENGINES = ("sqlite", "postgresql")
HEAD = '''"""The columns of the tables, for a process without SQLAlchemy.

Written by scripts/freeze_statements.py; the source is `schema.tables`.
"""
'''


def kind_of(column_type: TypeEngine[object]) -> str:
    """Return the type of a column as STRICT tables name it."""
    if isinstance(column_type, Integer):
        return "INTEGER"
    if isinstance(column_type, LargeBinary):
        return "BLOB"
    return "TEXT" if isinstance(column_type, Text) else "REAL"


def key_of(table: Table) -> tuple[str, ...] | None:
    """Return the columns of the only key that a table has besides its row number."""
    keys = [c for c in table.constraints if isinstance(c, UniqueConstraint)]
    return tuple(column.name for column in keys[0].columns) if len(keys) == 1 else None


def written_columns() -> str:
    """Return the content of `schema.columns`."""
    lines = [
        HEAD,
        "from __future__ import annotations\n",
        "#: Table → column → the type of its values, and whether it always has one.",
        "TABLES: dict[str, dict[str, tuple[str, bool]]] = {",
    ]
    for table in tables.metadata.tables.values():
        lines.append(f'    "{table.name}": {{')
        lines += [
            f'        "{c.name}": ("{kind_of(c.type)}", {not c.nullable}),'
            for c in table.c
        ]
        lines.append("    },")
    lines += [
        "}",
        "#: Table → the columns of its key, if it has a single one.",
        "KEYS: dict[str, tuple[str, ...]] = {",
    ]
    for table in tables.metadata.tables.values():
        key = key_of(table)
        if key is not None:
            names = ", ".join(f'"{name}"' for name in key)
            lines.append(f'    "{table.name}": ({names}{"," * (len(key) == 1)}),')
    return "\n".join([*lines, "}\n"])


def expressions() -> Iterator[tuple[str, ClauseElement]]:
    """Yield each statement of `sessiondb.statements` with its name."""
    import sessiondb.statements as package

    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        room = module.name.removeprefix(f"{package.__name__}.")
        for name, value in vars(import_module(module.name)).items():
            is_statement = isinstance(value, SelectBase | UpdateBase | TextClause)
            if is_statement and name.isupper() and not name.startswith("_"):
                yield f"{room}.{name}", value


def texts(dialect: Dialect) -> dict[str, str]:
    """Return the SQL of each statement for an engine, laid out, by its name."""
    return {name: lay_out(dialect.compile(it)) for name, it in expressions()}


class Shipped(NamedTuple):
    """What ships with an engine."""

    dialect: Dialect
    #: Where its statements and its tables are written.
    statements: Path
    tables: Path
    table_statements: Callable[[], dict[str, str]]


def shipped(engine: str) -> Shipped:
    """Return what ships with an engine, one of `ENGINES`."""
    # Not at the top: the expressions of an engine read the columns that are written first.
    dialect = import_module(f"sessiondb.engine.{engine}.dialect")
    compiling = import_module(f"sessiondb.engine.{engine}.compiling")
    return Shipped(
        dialect.DIALECT,
        dialect.STATEMENTS,
        dialect.STATEMENTS.with_name("tables.sql"),
        compiling.table_statements,
    )


def main() -> None:
    """Write the files: the columns first, for the statements are made of them."""
    COLUMNS.write_text(written_columns())
    for engine in map(shipped, ENGINES):
        engine.tables.write_text(write_texts(ABOUT_TABLES, engine.table_statements()))
        engine.statements.write_text(write_texts(ABOUT, texts(engine.dialect)))


if __name__ == "__main__":
    main()
