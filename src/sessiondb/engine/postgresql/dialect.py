"""How PostgreSQL writes SQL, without SQLAlchemy; `compiling` is the other half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessiondb.engine.shipped import read_texts

if TYPE_CHECKING:
    from sqlalchemy.sql import ClauseElement

    from sessiondb.engine.conditions import Condition

#: The texts of all statements: `scripts/freeze_statements.py` writes it.
STATEMENTS = Path(__file__).with_name("statements.sql")


class PostgreSQLText:
    """PostgreSQL's half of `engine.base.Dialect`."""

    name = "postgresql"

    @cached_property
    def shipped(self) -> Mapping[str, str]:
        """The text of each statement by its name."""
        return read_texts(STATEMENTS.read_text(encoding="utf-8"))

    def compile(self, expression: ClauseElement) -> str:
        """Return the text with named parameters."""
        # Not at the top: a process that runs shipped statements loads no SQLAlchemy.
        from sessiondb.engine.postgresql.compiling import compile_expression

        return compile_expression(expression)

    def compile_with_constants(
        self, statement: ClauseElement
    ) -> tuple[str, dict[str, Any], frozenset[str]]:
        """Return the text, its constants by name, and the names of its parameters."""
        from sessiondb.engine.postgresql.compiling import compile_with_constants

        return compile_with_constants(statement)

    def list_text(self, name: str, kind: type[int | str]) -> str:
        """Return the list parameter *name* as a subquery in parentheses."""
        value = "CAST(value AS BIGINT)" if kind is int else "value"
        elements = f"json_array_elements_text(CAST(:{name} AS JSON))"
        return f"(SELECT {value} FROM {elements} AS value)"

    def distinct_numbers(self, value: str) -> str:
        """Return the aggregate that lists the integers of a group, each once."""
        return f"string_agg(DISTINCT CAST({value} AS TEXT), ',')"

    def candidates(
        self, column: str, conditions: Sequence[Condition]
    ) -> tuple[str, Mapping[str, Any]]:
        """Return SQL for the values in *column* that may meet *conditions*."""
        # Not at the top: few processes filter values.
        from sessiondb.engine.postgresql.candidates import candidates_text

        return candidates_text(column, conditions)


DIALECT = PostgreSQLText()
