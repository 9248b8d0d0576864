r"""JSON values that may meet conditions, as SQL: see `engine.conditions`.

``jsonb`` compares as Python does, but for two things. It refuses NUL and the halves of
surrogate pairs, which JSON has as ``\u`` escapes: a value with such an escape passes
unseen. And it has numbers with all their digits, where Python has the nearest float: a
number is looked up within a margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.engine.conditions import IS_OBJECT, Condition

#: Further terms hardly narrow the result.
_MOST_TERMS = 20
#: More than the relative and the absolute error of a float, and the largest number to
#: which that applies.
_MARGIN, _LEAST_MARGIN, _MOST_NUMBER = 1e-12, 1e-300, 1e300
_ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def candidates_text(
    column: str, conditions: Sequence[Condition]
) -> tuple[str, dict[str, Any]]:
    """Return the condition of `Dialect.candidates`, and its parameters."""
    terms: list[str] = []
    params: dict[str, Any] = {}
    for number, condition in enumerate(conditions[:_MOST_TERMS]):
        if not _is_text("".join(condition.path)):
            continue
        path = f"path_{number}"
        value = f"(CAST({column} AS JSONB) #> CAST(:{path} AS TEXT[]))"
        term, values = _term(condition, value, f"operand_{number}")
        if term:
            terms.append(f"({term})")
            params |= {path: _array_of(condition.path), **values}

    if not terms:
        return "TRUE", {}
    # CASE, and not OR, which may evaluate both of its sides.
    every = " AND ".join(terms)
    return (
        f"CASE WHEN strpos({column}, '\\u') > 0 THEN TRUE ELSE {every} END",
        params,
    )


def _is_text(text: str) -> bool:
    """Return whether the server can have *text*."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _array_of(names: Sequence[str]) -> str:
    """Return names as an array of the server is written."""
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ",".join(f'"{name}"' for name in quoted) + "}"


def _term(condition: Condition, value: str, name: str) -> tuple[str, dict[str, Any]]:
    """Return the term of a condition, ``""`` for one that narrows nothing.

    *value* is SQL for the value, and *name* that of the parameter of its operand.
    """
    operator, operand = condition.operator, condition.operand
    kind = f"jsonb_typeof({value})"
    if operator == IS_OBJECT:
        return f"{kind} = 'object'", {}
    if operand is None:
        negation = "NOT " if operator == "$ne" else ""
        return f"nullif({value}, 'null') IS {negation}NULL", {}
    if isinstance(operand, str):
        return _term_of_text(operator, operand, value, name)
    if operator == "$ne":
        return "", {}
    if isinstance(operand, bool):
        return f"{value} = '{'true' if operand else 'false'}'", {}
    if isinstance(operand, int | float):
        return _term_of_number(operator, operand, value, name)
    is_list = isinstance(operand, list | tuple)
    return f"{kind} = '{'array' if is_list else 'object'}'", {}


def _term_of_text(
    operator: str, operand: str, value: str, name: str
) -> tuple[str, dict[str, Any]]:
    if not _is_text(operand):
        return "", {}
    if operator in ("$eq", "$ne"):
        comparison = "=" if operator == "$eq" else "IS DISTINCT FROM"
        term = f"{value} {comparison} to_jsonb(CAST(:{name} AS TEXT))"
    else:
        text = f"({value} #>> '{{}}') COLLATE \"C\""
        order = f"{text} {_ORDERS[operator]} :{name}"
        term = f"jsonb_typeof({value}) = 'string' AND {order}"
    return term, {name: operand}


def _term_of_number(
    operator: str, operand: float, value: str, name: str
) -> tuple[str, dict[str, Any]]:
    # NaN as well.
    if not -_MOST_NUMBER < operand < _MOST_NUMBER:
        return "", {}
    margin = abs(float(operand)) * _MARGIN + _LEAST_MARGIN
    low, high = operand - margin, operand + margin
    # Not as floats: a number of the document may be too large for one.
    number, bound = f"CAST({value} AS NUMERIC)", f"CAST(:{name} AS NUMERIC)"
    if operator == "$eq":
        bounds = {f"{name}_low": low, f"{name}_high": high}
        range_ = f"CAST(:{name}_low AS NUMERIC) AND CAST(:{name}_high AS NUMERIC)"
        term = f"{number} BETWEEN {range_}"
    elif operator in ("$gt", "$gte"):
        bounds, term = {name: low}, f"{number} >= {bound}"
    else:
        bounds, term = {name: high}, f"{number} <= {bound}"
    return (
        f"CASE jsonb_typeof({value}) WHEN 'number' THEN {term} ELSE FALSE END",
        bounds,
    )
