"""Core expressions and tables as the SQL of SQLite, when its files are written."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler, SQLiteDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import ClauseElement

from sessiondb.engine.elements import ListParameter
from sessiondb.schema.tables import metadata


class _Compiler(SQLiteCompiler):
    """SQLAlchemy's, with the hints of `SQLiteText.index_hint`, and plain constants."""

    def get_from_hint_text(
        self,
        table: Any,  # noqa: ARG002
        text: str | None,
    ) -> str | None:
        """Write the text of ``with_hint`` after the table."""
        return text

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        """Write a constant in its place: only what a caller gives is a parameter."""
        if not bindparam.required:
            options["literal_binds"] = True
        compiler: Any = super()
        return compiler.visit_bindparam(bindparam, *args, **options)


@compiles(ListParameter, "sqlite")
def _json_each(element: ListParameter, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@cache
def _named_dialect() -> SQLiteDialect:
    dialect = sqlite.dialect(paramstyle="named")
    dialect.statement_compiler = _Compiler
    return dialect


def compile_expression(expression: ClauseElement) -> str:
    """Return the text with named parameters."""
    return str(expression.compile(dialect=_named_dialect()))


def table_statements() -> dict[str, str]:
    """Return the CREATE statements of all tables, then of their indexes, by name."""
    dialect = sqlite.dialect()
    tables = metadata.sorted_tables
    makers: list[CreateTable | CreateIndex] = [CreateTable(table) for table in tables]
    for table in tables:
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        makers += [CreateIndex(index) for index in indexes]
    return {
        str(maker.element.name): str(maker.compile(dialect=dialect)).strip()
        for maker in makers
    }
