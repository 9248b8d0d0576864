"""How SQLite writes SQL; the other half of `engine.sql`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler, SQLiteDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement

from sessiondb.engine.elements import ListParameter


class _Compiler(SQLiteCompiler):
    """SQLAlchemy's, with the hints of `SQLiteText.index_hint`."""

    def get_from_hint_text(
        self,
        table: Any,  # noqa: ARG002
        text: str | None,
    ) -> str | None:
        """Write the text of ``with_hint`` after the table."""
        return text


@compiles(ListParameter, "sqlite")
def _json_each(element: ListParameter, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


class SQLiteText:
    """SQLite's half of `engine.base.Dialect`."""

    name = "sqlite"

    @cached_property
    def _named_dialect(self) -> SQLiteDialect:
        dialect = sqlite.dialect(paramstyle="named")
        dialect.statement_compiler = _Compiler
        return dialect

    def compile(
        self, expression: ClauseElement, columns: Sequence[str] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Return the text with named parameters, and its own constants."""
        keys = None if columns is None else list(columns)
        compiled: Any = expression.compile(
            dialect=self._named_dialect, column_keys=keys
        )
        constants = {
            name: bound.effective_value
            for name, bound in compiled.binds.items()
            if not bound.required
        }

        return str(compiled), constants

    def placeholders(self, expression: ClauseElement, columns: Sequence[str]) -> str:
        """Return INSERT text with one ``?`` for each of *columns*.

        They are in table order.
        """
        compiled: Any = expression.compile(
            dialect=sqlite.dialect(), column_keys=list(columns)
        )
        if tuple(compiled.positiontup or ()) != tuple(columns):
            raise ValueError(f"columns must be in table order: {', '.join(columns)}")
        return str(compiled)

    def index_hint(self, index: str) -> str:
        """Return the hint for *index*: the planner may prefer the larger one."""
        return f"INDEXED BY {index}"

    def list_text(self, name: str) -> str:
        """Return the list parameter *name* as a subquery in parentheses."""
        return f"(SELECT value FROM json_each(:{name}))"


DIALECT = SQLiteText()
