"""The statements of `repository.usage_sums`."""

from __future__ import annotations

from sqlalchemy import func, select

from sessiondb.schema.tables import usage_hour

#: Two queries: the first and the last entry of an index, which one would read all of.
HOURS = select(
    select(func.min(usage_hour.c.hour)).scalar_subquery(),
    select(func.max(usage_hour.c.hour)).scalar_subquery(),
)
