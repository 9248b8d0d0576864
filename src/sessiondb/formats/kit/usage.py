"""The usage of an answer: five counts, none of which contains another.

Programs spell them in several ways, and some count what came from the cache within the
input, and reasoning within the output. Counts leave the record only where they can be
written again; any that are subtracted stay in it as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import as_object, count, filled, is_object, within
from sessiondb.formats.kit.spelled import Record, Table, put, spelled, take
from sessiondb.model import Tokens

_KEY, _OTHER = "usage", "tokens"
COUNTS: Table = {
    "input": spelled(count, "input", "input_tokens", "prompt_tokens"),
    "output": spelled(count, "output", "output_tokens", "completion_tokens"),
    "reasoning": spelled(count, "reasoning", "reasoning_tokens"),
    "cache_read": spelled(
        count, "cache_read", "cache_read_tokens", "cache_read_input_tokens"
    ),
    "cache_write": spelled(
        count, "cache_write", "cache_write_tokens", "cache_creation_input_tokens"
    ),
}
#: Counts that are within another one: where answers of OpenAI have them.
_WITHIN: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "cache_read": (
        ("cached_input_tokens",),
        ("input_tokens_details", "cached_tokens"),
        ("prompt_tokens_details", "cached_tokens"),
    ),
    "reasoning": (
        ("output_tokens_details", "reasoning_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ),
}
_TOTALS = ("total", "total_tokens")


def take_usage(record: Record) -> Tokens | None:
    """Return the counts of an answer; None if there are none.

    Counts within others are subtracted: those that OpenAI names so, and all of them if
    the total is the sum of input and output alone.
    """
    usage = as_object(record.get(_KEY)) or as_object(record.get(_OTHER))
    inside = _inside(usage)
    rest = dict(usage)
    counts = take(rest, COUNTS)
    if inside or _is_sum_of_two(usage, counts):
        return _disjoint({**counts, **inside})

    if usage is record.get(_KEY):
        record[_KEY] = rest
    return Tokens(**counts) if counts else None


def put_usage(record: Record, tokens: Tokens | None) -> None:
    """Write the counts that left a record."""
    usage = record.get(_KEY)
    is_there = take_usage({_KEY: usage}) == tokens
    if tokens is not None and is_object(usage) and not is_there:
        put(usage, COUNTS, tokens)


def _inside(usage: Record) -> dict[str, int]:
    """Return the counts that are within others, by column."""
    stated = {
        column: next(filter(count, (within(usage, *path) for path in paths)), None)
        for column, paths in _WITHIN.items()
    }
    return filled(stated)


def _is_sum_of_two(usage: Record, counts: Mapping[str, int]) -> bool:
    total: Any = next(filter(count, map(usage.get, _TOTALS)), None)
    both = counts.get("input", 0) + counts.get("output", 0)
    return total == both and both != sum(counts.values())


def _disjoint(counts: dict[str, int]) -> Tokens | None:
    """Return counts without those inside of others; None if one would be negative."""
    found = Tokens(**counts)
    cached = (found.cache_read or 0) + (found.cache_write or 0)
    rest = {"input": cached, "output": found.reasoning or 0}
    own = {name: counts[name] - less for name, less in rest.items() if name in counts}
    return None if min(own.values(), default=0) < 0 else Tokens(**{**counts, **own})
