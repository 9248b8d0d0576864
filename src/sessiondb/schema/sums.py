"""Sums over costs and token counts that no row can break.

SQLite's ``sum`` of integers ends a statement with "integer overflow". Values that this
library writes cannot overflow (`model.bounds`); a file that another program wrote
to can. So counts are not added as integers: floating point is exact up to 2^53, and
beyond that a count says nothing. A cost beyond reason is unknown. As with ``sum``,
nothing known is NULL.
"""

from __future__ import annotations

from sessiondb.schema.purposes import is_prompt
from sessiondb.schema.terms import TOKENS

#: A sum beyond it says nothing about money; infinity is not valid JSON either.
COST_LIMIT = "1e300"


def count_sum(value: str, condition: str = "1") -> str:
    """Return SQL for the sum of an integer *value* over the rows *condition* holds."""
    return f"CAST(sum({value} * 1.0){_filter_sql(condition)} AS BIGINT)"


def cost_sum(value: str, condition: str = "1") -> str:
    """Return SQL for the sum of a *value* in USD over the rows *condition* holds."""
    return limit_cost(f"sum({value}){_filter_sql(condition)}")


def limit_cost(total: str) -> str:
    """Return SQL for a *total* in USD, NULL if it is beyond reason."""
    return f"CASE WHEN abs({total}) < {COST_LIMIT} THEN {total} END"


def totals_sql() -> list[str]:
    """Return SQL for the `terms.COUNTERS` of rows of ``message``, in their order."""
    return [
        "count(*)",
        f"count(CASE WHEN {is_prompt('message')} THEN 1 END)",
        cost_sum("cost", "inherited = 0"),
        cost_sum("cost", "inherited = 1"),
        *(count_sum(name, "inherited = 0") for name in TOKENS),
    ]


def _filter_sql(condition: str) -> str:
    return "" if condition == "1" else f" FILTER (WHERE {condition})"
