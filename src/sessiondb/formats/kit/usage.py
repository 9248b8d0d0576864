"""The usage of an answer: five counts, none of which contains another.

Programs spell them in several ways, and some count what came from the cache within the
input, and reasoning within the output. Counts leave the record only where they can be
written again; any that are subtracted stay in it as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sessiondb.formats.kit.fields import Fields, as_object, count, is_object, within
from sessiondb.formats.kit.spelled import Record, Table, put, spelled, take
from sessiondb.model import Tokens
from sessiondb.model.aliases import TOKENS

_KEY, _OTHER = "usage", "tokens"
COUNTS: Table = {
    column: spelled(count, column, *spellings) for column, spellings in TOKENS.items()
}
#: Where answers of OpenAI have counts that are within another one. If a count is at
#: several places, the last of them here is taken.
_WITHIN: Mapping[tuple[str, ...], str] = {
    ("prompt_tokens_details", "cached_tokens"): "cache_read",
    ("input_tokens_details", "cached_tokens"): "cache_read",
    ("cached_input_tokens",): "cache_read",
    ("completion_tokens_details", "reasoning_tokens"): "reasoning",
    ("output_tokens_details", "reasoning_tokens"): "reasoning",
    ("reasoning_output_tokens",): "reasoning",
}
_TOTALS = ("total", "total_tokens")
#: The counts that programs have within another one, and which that is.
_CONTAINERS: Mapping[str, str] = {
    "cache_read": "input",
    "cache_write": "input",
    "reasoning": "output",
}
CACHES = frozenset({"cache_read", "cache_write"})
REASONING = frozenset({"reasoning"})


def counts(**keys: str) -> Fields:
    """Return the table of a usage from the *keys* of its counts, by column."""
    return {key: (column, count) for column, key in keys.items()}


def disjoint(
    known: Mapping[str, int], inside: Collection[str] = frozenset(_CONTAINERS)
) -> Tokens | None:
    """Return counts by column, without those *inside* of the input or the output.

    None if there are no counts, or if they contradict each other: a part is larger
    than what it is within.
    """
    own = dict(known)
    for part in own.keys() & inside:
        container = _CONTAINERS[part]
        if container in own:
            own[container] -= own[part]

    is_sound = min(own.values(), default=-1) >= 0
    return Tokens(**own) if is_sound else None


def take_usage(record: Record) -> Tokens | None:
    """Return the counts of an answer; None if there are none.

    Counts within others are subtracted: those that OpenAI names so, and all of them if
    the total is the sum of input and output alone.
    """
    usage = as_object(record.get(_KEY)) or as_object(record.get(_OTHER))
    inside = _inside(usage)
    rest = dict(usage)
    found = take(rest, COUNTS)
    if inside or _is_sum_of_two(usage, found):
        return disjoint({**found, **inside})

    if usage is record.get(_KEY):
        record[_KEY] = rest
    return disjoint(found, ())


def put_usage(record: Record, tokens: Tokens | None) -> None:
    """Write the counts that left a record."""
    usage = record.get(_KEY)
    is_there = take_usage({_KEY: usage}) == tokens
    if tokens is not None and is_object(usage) and not is_there:
        put(usage, COUNTS, tokens)


def _inside(usage: Record) -> dict[str, int]:
    """Return the counts that are within others, by column."""
    return {
        column: value
        for path, column in _WITHIN.items()
        if count(value := within(usage, *path))
    }


def _is_sum_of_two(usage: Record, known: Mapping[str, int]) -> bool:
    total: Any = next(filter(count, map(usage.get, _TOTALS)), None)
    both = known.get("input", 0) + known.get("output", 0)
    return total == both and both != sum(known.values())
