"""The seam for engines: all that the rest of the package needs of a database.

SQLite is the only engine for now. Everything above `engine` speaks to a database
through what is declared here, so that a second engine is one more folder beside
`engine.sqlite` and not a search through every effect and read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import BigInteger, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


class Dialect(Protocol):
    """How an engine writes SQL."""

    name: str

    def compile(
        self, expression: ClauseElement, columns: Sequence[str] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Return the text with named parameters, and the constants that it binds itself.

        *columns* are the keys of an INSERT or UPDATE whose values come at run time.
        """

    def placeholders(self, expression: ClauseElement, columns: Sequence[str]) -> str:
        """Return INSERT text with one positional parameter for each of *columns*.

        Raises `ValueError` if *columns* are not in table order.
        """

    def list_text(self, name: str) -> str:
        """Return the values of the list parameter *name* as a subquery in parentheses."""


class ListParameter(FunctionElement[Any]):
    """The rows of a parameter that holds a JSON array of integers or of texts.

    One parameter whatever the length: the text of a statement stays the same, so it
    is compiled and prepared once.
    """

    name = "list_parameter"
    inherit_cache = True

    def __init__(self, name: str, kind: type[BigInteger | Text]) -> None:
        self.kind: TypeEngine[Any] = kind()
        super().__init__(bindparam(name))


@compiles(ListParameter)
def _elements(element: ListParameter, compiler: Any, **options: Any) -> str:
    """Write it with JSON functions that PostgreSQL has; an engine may have a shorter way."""
    array = compiler.process(element.clauses, **options)
    kind = compiler.process(element.kind, **options)
    return (
        f"(SELECT CAST(value AS {kind}) AS value "
        f"FROM jsonb_array_elements_text(CAST({array} AS JSONB)) AS listed(value))"
    )


class OnConflictDoNothing(ClauseElement):
    """The end of an INSERT … SELECT that leaves rows alone whose key is taken."""

    __visit_name__ = "on_conflict_do_nothing"
    # All that SQLAlchemy's compilers read: no particular constraint is meant.
    constraint_target = inferred_target_elements = inferred_target_whereclause = None
