"""Sums over costs and token counts that no row can break.

SQLite's ``sum`` of integers ends a statement with "integer overflow". Values that this
library writes cannot overflow (`model.bounds`); a file that another program wrote
to can. So counts are added as floating point, which is exact up to 2^53, and a cost
beyond reason is unknown. As with ``sum``, nothing known is NULL.
"""

from __future__ import annotations

#: A sum beyond it says nothing about money; infinity is not valid JSON either.
_COST_LIMIT = "1e300"


def count_sum(value: str, where: str = "1") -> str:
    """Return SQL for the sum of an integer *value* over the rows *where* holds."""
    kept = _filter(where)
    return (
        f"CASE WHEN count({value}){kept} THEN CAST(total({value}){kept} AS INTEGER) END"
    )


def cost_sum(value: str, where: str = "1") -> str:
    """Return SQL for the sum of a *value* in USD over the rows *where* holds."""
    total = f"sum({value}){_filter(where)}"
    return f"CASE WHEN abs({total}) < {_COST_LIMIT} THEN {total} END"


def _filter(where: str) -> str:
    return "" if where == "1" else f" FILTER (WHERE {where})"
