"""The days of the local time zone, by name.

The clocks of all time zones are whole quarters of an hour apart, since 1972, so a
quarter of an hour is within one day of any.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from functools import lru_cache

DAY_SECONDS = 86_400
QUARTER_MS = 900_000
_EPOCH = date(1970, 1, 1).toordinal()


def clock_offset(seconds: int) -> int:
    """Return the seconds that the local clock is ahead of UTC at a Unix time."""
    return time.localtime(seconds).tm_gmtoff


@lru_cache(maxsize=4096)
def name_of_day(day: int) -> str:
    """Return ``2026-11-02`` for the number of a day."""
    return date.fromordinal(_EPOCH + day).isoformat()


@lru_cache(maxsize=4096)
def name_of_week(day: int) -> str:
    """Return the Monday of the week of a day."""
    # 1 January 1970 was a Thursday.
    return name_of_day(day - (day + 3) % 7)


def name_of_month(day: int) -> str:
    """Return ``2026-11`` for the number of a day."""
    return name_of_day(day)[:7]


#: Dimension → the function that names it by the number of a day.
NAMES_OF_DAYS: dict[str, Callable[[int], str]] = {
    "day": name_of_day, "week": name_of_week, "month": name_of_month,
}  # fmt: skip


def name_of_quarter(dimension: str, quarter: int) -> str | None:
    """Return the name of the day, week or month of a quarter of an hour since 1970.

    None for one that no calendar has: a shell can store any time.
    """
    seconds = quarter * (QUARTER_MS // 1000)
    try:
        day = (seconds + clock_offset(seconds)) // DAY_SECONDS
        return NAMES_OF_DAYS[dimension](day)
    except (ValueError, OverflowError, OSError):
        return None


def times_around(dimension: str, name: str | None) -> tuple[int, int]:
    """Return a range in Unix ms with all times that have a name, and few others.

    It is empty for what is not the name of a *dimension*.
    """
    text = f"{name}-01" if dimension == "month" else str(name)
    try:
        first = date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return 0, 0
    # A clock is less than a day away from UTC.
    days = {"day": 1, "week": 7, "month": 31}[dimension]
    return (first - 1) * DAY_SECONDS * 1000, (first + days + 1) * DAY_SECONDS * 1000
