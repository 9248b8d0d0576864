"""The days of the local time zone, as SQL over hours.

SQLite makes a local day of a time by a function of the C library, for each row. The
hours between two changes of the clock all have the same offset, so the day of an hour
is a division. An hour that is not within one day, as at midnight in a zone that is half
an hour off, or in which the clock is changed, is left to the messages in it.
"""

from __future__ import annotations

from typing import NamedTuple

from sessiondb.engine.local_days import DAY_SECONDS, clock_offset

#: The hours that SQLite converts as the C library does, without a guess.
FIRST_HOUR, LAST_HOUR = 24, 596_520


class LocalDays(NamedTuple):
    """SQL over an hour, with ``{0}`` in its place."""

    #: The number of its day.
    day: str
    #: The condition that it is not within one day; None if all are.
    is_split: str | None


def local_days(first: int, last: int) -> LocalDays:
    """Return the terms for the hours from *first* to *last* since 1970."""
    splits = []
    if first < FIRST_HOUR or last > LAST_HOUR:
        splits.append(f"{{0}} < {FIRST_HOUR} OR {{0}} > {LAST_HOUR}")
        first, last = max(first, FIRST_HOUR), min(last, LAST_HOUR)
    offsets = {first: clock_offset(first * 3600)}
    split_hours = []
    for hour in _changes_of_clock(first, last):
        offsets[hour] = clock_offset(hour * 3600)
        if clock_offset(hour * 3600 - 1) != clock_offset((hour - 1) * 3600):
            split_hours.append(hour - 1)

    newest_first = sorted(offsets.items(), reverse=True)
    cases = [
        f"WHEN {{0}} >= {hour} THEN {offset}" for hour, offset in newest_first[:-1]
    ]
    offset_sql = str(newest_first[-1][1])
    if cases:
        offset_sql = f"CASE {' '.join(cases)} ELSE {offset_sql} END"
    local_seconds = f"({{0}} * 3600 + {offset_sql})"

    if split_hours:
        splits.append(f"{{0}} IN ({', '.join(map(str, split_hours))})")
    if any(offset % 3600 for offset in offsets.values()):
        splits.append(f"{local_seconds} % {DAY_SECONDS} > {DAY_SECONDS - 3600}")
    return LocalDays(f"{local_seconds} / {DAY_SECONDS}", " OR ".join(splits) or None)


def _changes_of_clock(first: int, last: int) -> list[int]:
    """Return the hours from whose beginning on the offset is another one."""
    changes = []
    # No zone changes its clock twice within a day.
    for end in range(first + 24, last + 25, 24):
        low, high = end - 24, end
        after = clock_offset(high * 3600)
        if clock_offset(low * 3600) == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if clock_offset(middle * 3600) == after:
                high = middle
            else:
                low = middle
        changes.append(high)
    return changes
