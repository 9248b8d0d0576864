"""Elements of Core expressions that each engine writes in its own way."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Float, Text, bindparam, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


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
def _write_elements(element: ListParameter, compiler: Any, **options: Any) -> str:
    """Write it with JSON functions of PostgreSQL; an engine may have a shorter way."""
    array = compiler.process(element.clauses, **options)
    kind = compiler.dialect.type_compiler_instance.process(element.kind)
    return (
        f"(SELECT CAST(value AS {kind}) AS value "
        f"FROM jsonb_array_elements_text(CAST({array} AS JSONB)) AS listed(value))"
    )


class PairsParameter(FunctionElement[Any]):
    """The rows of a parameter that holds a JSON array of pairs of texts."""

    name = "pairs_parameter"
    inherit_cache = True

    def __init__(self, name: str) -> None:
        super().__init__(bindparam(name))


@compiles(PairsParameter)
def _write_pairs(element: PairsParameter, compiler: Any, **options: Any) -> str:
    array = compiler.process(element.clauses, **options)
    return (
        "(SELECT value ->> 0 AS first, value ->> 1 AS second "
        f"FROM jsonb_array_elements(CAST({array} AS JSONB)) AS listed(value))"
    )


class PartsParameter(FunctionElement[Any]):
    """The rows of a parameter that holds a JSON array of the addresses of parts."""

    name = "parts_parameter"
    inherit_cache = True

    def __init__(self, name: str) -> None:
        super().__init__(bindparam(name))


@compiles(PartsParameter)
def _write_addresses(element: PartsParameter, compiler: Any, **options: Any) -> str:
    array = compiler.process(element.clauses, **options)
    return (
        "(SELECT value ->> 0 AS session_id, CAST(value ->> 1 AS BIGINT) AS seq, "
        "CAST(value ->> 2 AS BIGINT) AS idx "
        f"FROM jsonb_array_elements(CAST({array} AS JSONB)) AS listed(value))"
    )


class ArrayOfPairs(FunctionElement[Any]):
    """The JSON array of the pairs ``[a, b]`` of a group's rows: ``ArrayOfPairs(a, b)``.

    It is ``[]`` without a row. The pairs have no order.
    """

    name = "array_of_pairs"
    inherit_cache = True
    type = Text()


@compiles(ArrayOfPairs)
def _write_aggregate(element: ArrayOfPairs, compiler: Any, **options: Any) -> str:
    pair = compiler.process(element.clauses, **options)
    return f"coalesce(CAST(json_agg(json_build_array({pair})) AS TEXT), '[]')"


class NumberInJSON(FunctionElement[Any]):
    """A number in a column of JSON objects, by names; NULL if there is none."""

    name = "number_in_json"
    inherit_cache = True
    type = Float()

    def __init__(self, column: ColumnElement[Any], *names: str) -> None:
        super().__init__(column, *map(literal, names))


@compiles(NumberInJSON)
def _write_number(element: NumberInJSON, compiler: Any, **options: Any) -> str:
    column, *names = (compiler.process(it, **options) for it in element.clauses)
    value = f"json_extract_path(CAST({column} AS JSON), {', '.join(names)})"
    is_number = f"json_typeof({value}) = 'number'"
    return f"CASE WHEN {is_number} THEN CAST(CAST({value} AS TEXT) AS NUMERIC) END"


class WithoutKey(FunctionElement[Any]):
    """A column of JSON objects, without a key: ``WithoutKey(column, key)``."""

    name = "without_key"
    inherit_cache = True
    type = Text()


@compiles(WithoutKey)
def _write_members(element: WithoutKey, compiler: Any, **options: Any) -> str:
    """Write it with ``json``: ``jsonb`` refuses the character NUL."""
    column, key = (compiler.process(it, **options) for it in element.clauses)
    members = (
        f"SELECT CAST(json_object_agg(name, CAST({column} AS JSON) -> name) AS TEXT) "
        f"FROM json_object_keys(CAST({column} AS JSON)) AS name WHERE name <> {key}"
    )
    return f"CASE WHEN {column} IS NOT NULL THEN coalesce(({members}), '{{}}') END"


class OnConflictDoNothing(ClauseElement):
    """The end of an INSERT … SELECT that keeps existing rows with the same key."""

    __visit_name__ = "on_conflict_do_nothing"
    # The attributes that SQLAlchemy's compilers read: no particular constraint.
    constraint_target = inferred_target_elements = inferred_target_whereclause = None
