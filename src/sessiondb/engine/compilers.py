"""How Core expressions become text: the rules that the compilers of all engines share.

Each is a base class of an engine's compiler, before the one of SQLAlchemy.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

from sessiondb.errors import InvalidInputError


class WithPlainConstants(SQLCompiler):
    """Writes a constant in its place: only what a caller gives is a parameter."""

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        """Write a parameter, or the constant in its place."""
        if not bindparam.required:
            options["literal_binds"] = True
        compiler: Any = super()
        return compiler.visit_bindparam(bindparam, *args, **options)


class WithBoundConstants(SQLCompiler):
    """Binds constants, except lists of them: their length would change the text."""

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        """Write a parameter, or a list in its place."""
        if bindparam.expanding and not bindparam.required:
            if not all(isinstance(value, int | str) for value in bindparam.value):
                raise InvalidInputError("a list in a statement is of numbers or texts")
            options["literal_binds"] = True
        compiler: Any = super()
        return compiler.visit_bindparam(bindparam, *args, **options)


def compile_with_constants(
    statement: ClauseElement, dialect: Dialect, **options: Any
) -> tuple[str, dict[str, Any], frozenset[str]]:
    """Return the text, its constants by name, and the names of its parameters.

    *dialect* has a compiler `WithBoundConstants`, which gets the *options*.
    """
    compiled: Any = statement.compile(dialect=dialect, **options)
    if compiled.post_compile_params:
        raise InvalidInputError(
            "a list that is a parameter is numbers(NAME) or texts(NAME) of "
            "sessiondb.extensions"
        )
    wanted = {name for bound, name in compiled.bind_names.items() if bound.required}
    values = compiled.params.items()
    constants = {name: value for name, value in values if name not in wanted}
    return str(compiled), constants, frozenset(wanted)
