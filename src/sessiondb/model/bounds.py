"""Bounds of the numbers that are summed and sorted: times, costs and token counts.

One absurd value is enough to spoil a sum or an order for a complete database, so
every writer checks against these limits: a verb refuses the value, an import keeps
it with the raw record and leaves the column NULL. No sum of values within the limits
can overflow: 64 bits hold nine million messages of the most tokens allowed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sessiondb.errors import InvalidInputError, abridged

#: Unix ms of 1973-03-03. Seconds stay below this number until the year 5138, so that
#: seconds given as milliseconds are always recognised.
TIME_LEAST = 100_000_000_000
#: Unix ms of 2100-01-01; microseconds and nanoseconds are above it.
TIME_MOST = 4_102_444_800_000
#: USD, for one message.
COST_MOST = 1e9
#: Tokens of one kind, for one message.
TOKENS_MOST = 10**12

#: Unix milliseconds, or a `datetime` with a time zone.
Time = int | datetime
#: A time as reads take it: `Time`, or as people type it, such as ``7d`` and ``monday``.
TypedTime = Time | str

_DAY = 86_400
_CENTURY = 36_525 * _DAY
_INT64_MOST = (1 << 63) - 1


def integer(
    value: Any, name: str, *, least: int = -_INT64_MOST - 1, most: int = _INT64_MOST
) -> int | None:
    """Return *value* if it is None or an integer from *least* to *most*.

    Raises `InvalidInputError` for anything else, booleans included.
    """
    if value is None:
        return None
    if type(value) is not int:
        raise InvalidInputError(
            f"{name} must be an integer, not {type(value).__name__}"
        )
    if not least <= value <= most:
        raise InvalidInputError(
            f"{name} must be from {least} to {most}, not {_shown_number(value)}"
        )

    return value


def seconds(value: Any, name: str, *, zero: bool = True) -> float:
    """Return a duration in seconds: a number up to a day, and 0 only with *zero*.

    Raises `InvalidInputError` for anything else, NaN included.
    """
    is_number = type(value) in (int, float)
    # Comparisons refuse NaN, too.
    if is_number and 0 <= value <= _DAY and (value or zero):
        return float(value)

    raise InvalidInputError(
        f"{name} must be a number of seconds up to a day, not {abridged(value)}"
    )


def ttl_ms(value: Any, name: str = "ttl") -> int | None:
    """Return in ms how long a value lives, from a number of seconds; None is for ever.

    It is one ms at least. Raises `InvalidInputError` unless it is a number above 0, up
    to 100 years.
    """
    if value is None:
        return None
    # Comparisons refuse NaN, too.
    if type(value) in (int, float) and 0 < value <= _CENTURY:
        return max(1, int(value * 1000 + 0.5))

    raise InvalidInputError(
        f"{name} must be a number of seconds above 0, up to 100 years, "
        f"not {abridged(value)}"
    )


def moment(value: Any, name: str) -> Any:
    """Return the Unix ms of a `datetime` with a time zone, any other value as it is.

    Raises `InvalidInputError` for one without a time zone, whose moment is unknown.
    """
    if not isinstance(value, datetime):
        return value
    if value.utcoffset() is None:
        raise InvalidInputError(
            f"{name} is a datetime without a time zone", hint="pass an aware datetime"
        )
    return round(value.timestamp() * 1000)


def typed_time(value: Any, name: str, *, end: bool = False) -> int | None:
    """Return the Unix ms of a `TypedTime`; None stays None.

    A day, week, month or year begins at its start, or with *end* at its end: see
    `sessiondb.moments`. Raises `InvalidInputError`.
    """
    if isinstance(value, str):
        # Few programs pass one.
        from sessiondb.moments import unix_ms

        try:
            return unix_ms(value, end=end)
        except InvalidInputError as error:
            raise InvalidInputError(f"{name}: {error}", hint=error.hint) from error
    value = moment(value, name)
    if value is not None and type(value) is not int:
        raise InvalidInputError(
            f"{name} is Unix milliseconds, a datetime or a text such as 7d, "
            f"not {abridged(value)}"
        )
    return integer(value, name)


def time_ms(value: Any, name: str = "time") -> int | None:
    """Return Unix ms; a `datetime` with a time zone is converted, None is unknown.

    Raises `InvalidInputError` outside of 1973-03-03 to 2100-01-01.
    """
    if value is None:
        return None

    value = moment(value, name)
    if type(value) is not int:
        raise InvalidInputError(
            f"{name} must be Unix milliseconds or a datetime, "
            f"not {type(value).__name__}"
        )
    if not TIME_LEAST <= value <= TIME_MOST:
        raise InvalidInputError(
            f"{name} must be Unix milliseconds from {TIME_LEAST} to {TIME_MOST}, "
            f"not {_shown_number(value)}",
            hint="times are in milliseconds (ms): int(time.time() * 1000)",
        )

    return value


def usd(value: Any, name: str = "cost") -> float | None:
    """Return a cost in USD as a float; None is unknown.

    Raises `InvalidInputError` unless it is a finite number from 0 to `COST_MOST`.
    """
    if value is None:
        return None
    if type(value) not in (int, float):
        raise InvalidInputError(
            f"{name} must be a number of USD, not {type(value).__name__}"
        )
    # Comparisons refuse NaN and infinities, too.
    if not 0 <= value <= COST_MOST:
        raise InvalidInputError(
            f"{name} must be from 0 to {COST_MOST:.0f} USD, not {_shown_number(value)}"
        )

    return float(value)


def tokens(value: Any, name: str = "a token count") -> int | None:
    """Return a token count; None is unknown. Raises `InvalidInputError`."""
    return integer(value, name, least=0, most=TOKENS_MOST)


def _shown_number(value: float) -> str:
    """Return a number as an error shows it: never longer than a line."""
    if type(value) is int and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    return repr(value)
