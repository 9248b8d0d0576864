"""JSON values that may meet conditions, as SQL: see `engine.conditions`.

SQLite compares texts as they are spelled in the JSON, and reads the digits of a float
with an error of its own. So each term holds for all values that meet its condition, and
for a few others: a number is looked up within a margin, and a value with an escape in
it passes unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.engine.conditions import IS_OBJECT, Condition

#: Terms of a query; SQLite has a limit, and more than a few narrow nothing.
_MOST_TERMS = 20
#: More than the largest relative and absolute error of a float that SQLite reads, and
#: the largest number to which that applies.
_MARGIN, _LEAST_MARGIN, _MOST_NUMBER = 1e-12, 1e-300, 1e300
#: What JSON escapes in a name or a text, with the halves of surrogate pairs.
_HALVES = [chr(number) for number in range(0xD800, 0xE000)]
_ESCAPED = frozenset(['"', "\\", *[chr(number) for number in range(32)], *_HALVES])
_ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def candidates_text(
    column: str, conditions: Sequence[Condition]
) -> tuple[str, dict[str, Any]]:
    """Return the condition of `Dialect.candidates`, and its parameters."""
    terms: list[str] = []
    params: dict[str, Any] = {}
    for number, condition in enumerate(conditions[:_MOST_TERMS]):
        if _is_plain("".join(condition.path)):
            path, operand = f"path_{number}", f"operand_{number}"
            term, values = _term(condition, column, path, operand)
            if term:
                terms.append(term)
                names = "".join(f'."{name}"' for name in condition.path)
                params |= {path: f"${names}", **values}

    if not terms:
        return "1", {}
    # LIKE looks for a character at a fifth of the cost of instr.
    return f"({' AND '.join(terms)} OR {column} LIKE '%\\%')", params


def _is_plain(text: str) -> bool:
    return _ESCAPED.isdisjoint(text)


def _term(
    condition: Condition, column: str, path: str, name: str
) -> tuple[str, dict[str, Any]]:
    """Return the term of a condition, ``""`` for one that narrows nothing.

    *path* and *name* are those of the parameters of its path and its operand.
    """
    operator, operand = condition.operator, condition.operand
    value, kind = f"{column} ->> :{path}", f"json_type({column}, :{path})"
    if operator == IS_OBJECT:
        return f"{kind} = 'object'", {}
    if operand is None:
        return f"{value} IS {'NOT ' * (operator == '$ne')}NULL", {}
    if isinstance(operand, str):
        return _term_of_text(operator, operand, value, name)
    if operator == "$ne":
        return "", {}
    if isinstance(operand, bool):
        return f"{kind} = '{'true' if operand else 'false'}'", {}
    if isinstance(operand, int | float):
        return _term_of_number(operator, operand, value, name)
    is_list = isinstance(operand, list | tuple)
    return f"{kind} = '{'array' if is_list else 'object'}'", {}


def _term_of_text(
    operator: str, operand: str, value: str, name: str
) -> tuple[str, dict[str, Any]]:
    if not _is_plain(operand):
        return "", {}
    comparison = {"$eq": "=", "$ne": "IS NOT", **_ORDERS}[operator]
    return f"{value} {comparison} :{name}", {name: operand}


def _term_of_number(
    operator: str, operand: float, value: str, name: str
) -> tuple[str, dict[str, Any]]:
    # NaN as well.
    if not -_MOST_NUMBER < operand < _MOST_NUMBER:
        return "", {}
    margin = abs(float(operand)) * _MARGIN + _LEAST_MARGIN
    low, high = operand - margin, operand + margin
    if operator == "$eq":
        bounds = {f"{name}_low": low, f"{name}_high": high}
        return f"{value} BETWEEN :{name}_low AND :{name}_high", bounds
    if operator in ("$gt", "$gte"):
        return f"{value} >= :{name}", {name: low}
    return f"{value} <= :{name}", {name: high}
