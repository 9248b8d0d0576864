"""Core expressions and tables as the SQL of SQLite, when its files are written."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler, SQLiteDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import (
    Column,
    CreateColumn,
    CreateIndex,
    CreateTable,
    Index,
    Table,
)
from sqlalchemy.sql import ClauseElement

from sessiondb.engine import compilers
from sessiondb.engine.compilers import WithBoundConstants, WithPlainConstants
from sessiondb.engine.elements import (
    ArrayOfPairs,
    ListParameter,
    NumberInJSON,
    PairsParameter,
    PartsParameter,
    WithoutKey,
)
from sessiondb.engine.sqlite.addresses import addresses_text
from sessiondb.schema.kinds import IsJSON
from sessiondb.schema.tables import metadata


class _Compiler(WithPlainConstants, SQLiteCompiler):
    """SQLAlchemy's, with the hints of `expressions.by_index`."""

    def get_from_hint_text(
        self,
        table: Any,  # noqa: ARG002
        text: str | None,
    ) -> str | None:
        """Write the text of ``with_hint`` after the table."""
        return text


class _BindingCompiler(WithBoundConstants, SQLiteCompiler):
    """SQLAlchemy's."""


@compiles(ListParameter, "sqlite")
def _json_each(element: ListParameter, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(PairsParameter, "sqlite")
def _pairs_of_json(element: PairsParameter, compiler: Any, **options: Any) -> str:
    array = compiler.process(element.clauses, **options)
    first, second = (f"json_extract(value, '$[{place}]')" for place in (0, 1))
    return f"(SELECT {first} AS first, {second} AS second FROM json_each({array}))"


@compiles(PartsParameter, "sqlite")
def _addresses_of_json(element: PartsParameter, compiler: Any, **options: Any) -> str:
    array = compiler.process(element.clauses, **options)
    return f"({addresses_text(array)})"


@compiles(ArrayOfPairs, "sqlite")
def _json_group_array(element: ArrayOfPairs, compiler: Any, **options: Any) -> str:
    return (
        f"json_group_array(json_array({compiler.process(element.clauses, **options)}))"
    )


@compiles(NumberInJSON, "sqlite")
def _json_extract(element: NumberInJSON, compiler: Any, **options: Any) -> str:
    column, *names = (compiler.process(it, **options) for it in element.clauses)
    path = " || '.' || ".join(["'$'", *names])
    return f"json_extract({column}, {path})"


@compiles(IsJSON, "sqlite")
def _json_valid(element: IsJSON, compiler: Any, **options: Any) -> str:
    return f"json_valid({compiler.process(element.clauses, **options)})"


@compiles(WithoutKey, "sqlite")
def _json_remove(element: WithoutKey, compiler: Any, **options: Any) -> str:
    column, key = (compiler.process(it, **options) for it in element.clauses)
    return f"json_remove({column}, '$.' || {key})"


@cache
def _named_dialect() -> SQLiteDialect:
    dialect = sqlite.dialect(paramstyle="named")
    dialect.statement_compiler = _Compiler
    return dialect


@cache
def _binding_dialect() -> SQLiteDialect:
    dialect = sqlite.dialect(paramstyle="named")
    dialect.statement_compiler = _BindingCompiler
    return dialect


def compile_expression(expression: ClauseElement) -> str:
    """Return the text with named parameters."""
    return str(expression.compile(dialect=_named_dialect()))


def compile_with_constants(
    statement: ClauseElement,
) -> tuple[str, dict[str, Any], frozenset[str]]:
    """Return the text, its constants by name, and the names of its parameters."""
    return compilers.compile_with_constants(statement, _binding_dialect())


def table_statements() -> dict[str, str]:
    """Return the CREATE statements of all tables, then of their indexes, by name."""
    tables = metadata.sorted_tables
    statements = {table.name: table_statement(table) for table in tables}
    for table in tables:
        for index in _sorted_indexes(table):
            statements[str(index.name)] = _written(CreateIndex(index))
    return statements


def table_statement(table: Table) -> str:
    """Return the CREATE statement of a table, without its indexes."""
    return _written(CreateTable(table))


def index_statements(table: Table) -> list[str]:
    """Return a CREATE statement for each index of a table, that keeps one it has."""
    indexes = _sorted_indexes(table)
    return [_written(CreateIndex(index, if_not_exists=True)) for index in indexes]


def column_statement(column: Column[Any]) -> str:
    """Return the ALTER statement that adds a column to its table."""
    definition = _written(CreateColumn(column))
    return f"ALTER TABLE {column.table.name} ADD COLUMN {definition}"


def _sorted_indexes(table: Table) -> list[Index]:
    return sorted(table.indexes, key=lambda index: str(index.name))


def _written(definition: CreateTable | CreateIndex | CreateColumn) -> str:
    return str(definition.compile(dialect=sqlite.dialect())).strip()
