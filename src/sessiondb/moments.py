"""Times as a person types them: ``monday``, ``last week``, ``3 days ago``, ``7d``.

Each is a span of the local calendar, or a moment, which is a span without a length.
Days begin at midnight, weeks on Monday. A filter takes its start (``--since``) or its
end (``--until``), so that the day, week, month or year that is named is included. Reads
of the library take the same forms.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, time, timedelta

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.patterns import late_pattern

#: Every form, for help and errors.
FORMS = (
    "today, yesterday, monday, last monday, this week, last month, 3 days ago, 7d, "
    "12h, 30min, 2w, 3mo, 1y, 14:30, yesterday 14:30, 2026, 2026-11, 2026-W45, "
    "2026-11-01, 2026-11-01 14:30"
)
Span = tuple[datetime, datetime]

_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_AGO = late_pattern(
    r"(?P<number>\d{1,6}|an?|one) ?(?P<unit>min|h|d|w|mo|y|"
    r"(?:minute|hour|day|week|month|year)s?)(?: ago)?"
)
_MINUTE_OR_MONTH = late_pattern(r"\d+ ?m")
_CLOCK = late_pattern(r"(?:(?P<day>.+?) (?:at )?)?(?P<clock>\d{1,2}:\d\d(?::\d\d)?)")
_PERIOD = late_pattern(r"(?P<which>this|last) (?P<unit>week|month|year)")
_WEEK = late_pattern(r"(?P<year>\d{4})-?w(?P<week>\d\d)")
_MONTH = late_pattern(r"(?P<year>\d{4})-(?P<month>\d\d)")


def unix_ms(typed: str, *, end: bool = False) -> int:
    """Return the Unix ms of a typed time: the start of its span, or the *end* of it.

    It is one of the local time zone. Raises `InvalidInputError`, whose hint has the
    forms.
    """
    text = " ".join(typed.lower().split())
    if _MINUTE_OR_MONTH.fullmatch(text):
        number = text.rstrip("m ")
        raise InvalidInputError(
            f"{abridged(typed)} is a minute or a month",
            hint=f"type {number}min or {number}mo",
        )
    try:
        span = read_span(text, local_now())
        return int(span[end].timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInputError(
            f"{abridged(typed)} is not a time", hint=f"the forms are {FORMS}"
        ) from error


def local_now() -> datetime:
    """Return the local time, without a zone, as `read_span` takes it."""
    return datetime.now()  # noqa: DTZ005


def read_span(text: str, now: datetime) -> Span:
    """Return the start and the end, exclusive, of the span that *text* names.

    *text* is in lower case with single spaces, *now* is local and has no zone. Neither
    has the result, except for a time of ISO 8601 with a zone. Raises `ValueError` for
    any other text and `OverflowError` for a time outside of the calendar.
    """
    if text == "now":
        return now, now
    if ago := _AGO.fullmatch(text):
        number = int(ago["number"]) if ago["number"].isdecimal() else 1
        moment = _moment_before(now, number, ago["unit"])
        return moment, moment
    if clock := _CLOCK.fullmatch(text):
        day = _read_day(clock["day"] or "today", now.date())
        if day is None:
            raise ValueError(f"not a day: {clock['day']}")
        hour, colon, rest = clock["clock"].partition(":")
        moment = datetime.combine(day, time.fromisoformat(f"{hour:0>2}{colon}{rest}"))
        return moment, moment

    day = _read_day(text, now.date())
    if day is not None:
        return _span_of_days(day, 1)
    period = _read_period(text, now.date())
    if period is not None:
        return period
    # A time with seconds, a fraction or a zone.
    moment = datetime.fromisoformat(text.upper())
    return moment, moment


def _moment_before(now: datetime, number: int, unit: str) -> datetime:
    """Return the moment *number* units before *now*, at the same time of the day."""
    match unit.removesuffix("s"):
        case "min" | "minute":
            # Elapsed time, also across a change of the clocks.
            return _moment_elapsed(now, timedelta(minutes=number))
        case "h" | "hour":
            return _moment_elapsed(now, timedelta(hours=number))
        case "d" | "day":
            return now - timedelta(days=number)
        case "w" | "week":
            return now - timedelta(weeks=number)
        case "mo" | "month":
            return datetime.combine(_months_before(now.date(), number), now.time())
        case _:
            return datetime.combine(_months_before(now.date(), 12 * number), now.time())


def _moment_elapsed(now: datetime, span: timedelta) -> datetime:
    moment = now.timestamp() - span.total_seconds()
    return datetime.fromtimestamp(moment)  # noqa: DTZ006


def _months_before(day: date, number: int) -> date:
    """Return the same day *number* months earlier, or the last one of that month."""
    months = day.year * 12 + day.month - 1 - number
    year, month = months // 12, months % 12 + 1
    if year < 1:
        raise OverflowError(f"{number} months before {day}")
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _read_day(text: str, today: date) -> date | None:
    """Return the day that *text* names, None if it does not name a day."""
    if text == "today":
        return today
    if text == "yesterday":
        return today - timedelta(days=1)

    for number, weekday in enumerate(_WEEKDAYS):
        name = text.removeprefix("last ")
        if name in (weekday, weekday[:3]):
            passed = (today.weekday() - number) % 7
            # On a Monday, "monday" is this day and "last monday" that of last week.
            if text.startswith("last ") and passed == 0:
                passed = 7
            return today - timedelta(days=passed)

    is_date = re.fullmatch(r"\d{4}-\d\d-\d\d|\d{8}", text)
    return date.fromisoformat(text) if is_date else None


def _read_period(text: str, today: date) -> Span | None:
    """Return the week, month or year that *text* names, None if it names none."""
    if period := _PERIOD.fullmatch(text):
        back = 1 if period["which"] == "last" else 0
        match period["unit"]:
            case "week":
                monday = today - timedelta(days=today.weekday() + 7 * back)
                return _span_of_days(monday, 7)
            case "month":
                first = _months_before(today.replace(day=1), back)
                return _span_of_months(first, 1)
            case _:
                return _span_of_months(date(today.year - back, 1, 1), 12)

    if week := _WEEK.fullmatch(text):
        monday = date.fromisocalendar(int(week["year"]), int(week["week"]), 1)
        return _span_of_days(monday, 7)
    if month := _MONTH.fullmatch(text):
        return _span_of_months(date(int(month["year"]), int(month["month"]), 1), 1)
    if re.fullmatch(r"\d{4}", text):
        return _span_of_months(date(int(text), 1, 1), 12)
    return None


def _span_of_days(first: date, days: int) -> Span:
    return _midnight(first), _midnight(first + timedelta(days=days))


def _span_of_months(first: date, months: int) -> Span:
    return _midnight(first), _midnight(_months_before(first, -months))


def _midnight(day: date) -> datetime:
    # Naive, so that it is right also on the day on which the clocks change.
    return datetime.combine(day, time())
