"""Conditions on JSON values: read once, and decided here exactly.

    {"kind": "note", "author": {"name": "Ada"}, "score": {"$gte": 3}}

An engine only narrows a query to candidates (`Dialect.candidates`); each of them is
then compared here. So the answer does not depend on how a database reads the digits of
a float, on the escapes of a text or on numbers that it cannot hold, and a condition
without a counterpart in its SQL needs none.

Types are exact: true is not 1. Numbers are compared by value, so 1 is 1.0. A key that
an object does not have is null. An order is that of two numbers, or of two texts by
their code points; nothing else is greater or less than anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError, abridged

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
#: The operator of ``{"author": {}}``, which has no spelling of its own.
IS_OBJECT = "object"
#: Deepest nesting of a filter.
MOST_LEVELS = 100
_NUMBERS = (int, float)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the value at *path*, which is names of members."""

    path: tuple[str, ...]
    operator: str
    operand: Any


def parse_conditions(pattern: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """Return the conditions of a filter, all of which have to hold; None is ``()``.

    Raises `InvalidInputError` for what is neither a value, an object of further names,
    nor one of `OPERATORS`.
    """
    return tuple(_conditions_in(pattern or {}, ()))


def _conditions_in(
    pattern: Mapping[Any, Any], path: tuple[str, ...]
) -> Iterator[Condition]:
    if len(path) > MOST_LEVELS:
        raise InvalidInputError(f"where is nested deeper than {MOST_LEVELS}")
    operators = [name for name in pattern if str(name).startswith("$")]
    if operators and (not path or len(operators) < len(pattern)):
        raise InvalidInputError(
            f"where: {abridged(operators[0])} must be beside other operators, "
            "as the value of a key"
        )
    if not pattern and path:
        yield Condition(path, IS_OBJECT, None)

    for name, wanted in pattern.items():
        if not isinstance(name, str):
            raise InvalidInputError(
                f"where: keys must be strings, not {abridged(name)}"
            )
        if name in operators:
            yield _operation(path, name, wanted)
        elif isinstance(wanted, Mapping):
            yield from _conditions_in(wanted, (*path, name))
        else:
            yield _operation((*path, name), "$eq", wanted)


def _operation(path: tuple[str, ...], operator: str, operand: Any) -> Condition:
    if operator not in OPERATORS:
        raise InvalidInputError(
            f"where: {abridged(operator)} is not one of {', '.join(OPERATORS)}"
        )
    if operator in ("$eq", "$ne"):
        _check_json(operand, 0)
    elif isinstance(operand, bool) or not isinstance(operand, (*_NUMBERS, str)):
        raise InvalidInputError(
            f"where: {operator} takes a number or a string, not {abridged(operand)}"
        )
    return Condition(path, operator, operand)


def _check_json(value: Any, level: int) -> None:
    if level > MOST_LEVELS:
        raise InvalidInputError(f"where is nested deeper than {MOST_LEVELS}")
    items: Iterable[Any] = ()
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    elif value is not None and not isinstance(value, str | int | float):
        raise InvalidInputError(f"where: not a JSON value: {abridged(value)}")
    for item in items:
        _check_json(item, level + 1)


def meets(value: Any, conditions: Sequence[Condition]) -> bool:
    """Return whether a decoded JSON value meets all conditions."""
    return all(_holds(value, condition) for condition in conditions)


def _holds(value: Any, condition: Condition) -> bool:
    for name in condition.path:
        if not isinstance(value, dict):
            return False
        value = value.get(name)

    operand = condition.operand
    match condition.operator:
        case "$eq":
            return _is_equal(value, operand)
        case "$ne":
            return not _is_equal(value, operand)
        case "object":
            return isinstance(value, dict)

    if not _is_comparable(value, operand):
        return False
    match condition.operator:
        case "$gt":
            return bool(value > operand)
        case "$gte":
            return bool(value >= operand)
        case "$lt":
            return bool(value < operand)
        case _:
            return bool(value <= operand)


def _is_comparable(value: Any, operand: Any) -> bool:
    if isinstance(operand, str):
        return isinstance(value, str)
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _is_equal(value: Any, wanted: Any) -> bool:
    """Return whether two JSON values are the same; a tuple is a list."""
    if isinstance(wanted, str):
        return bool(value == wanted)
    if wanted is None or isinstance(wanted, bool):
        return value is wanted
    if isinstance(wanted, _NUMBERS):
        return not isinstance(value, bool) and bool(value == wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_is_equal(*pair) for pair in zip(value, wanted, strict=True))
        )
    return (
        isinstance(value, dict)
        and value.keys() == wanted.keys()
        and all(_is_equal(value[name], wanted[name]) for name in wanted)
    )
