"""The usage of an answer: five counts, none of which contains another.

Programs spell them in several ways, and some count what came from the cache within the
input, and reasoning within the output. Counts leave the record only if they can be
written again; any that are subtracted stay in it as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sessiondb.formats.kit.fields import Fields, as_object, count, is_object, value_at
from sessiondb.formats.kit.spelled import (
    Record,
    Table,
    put_spelled,
    spelled,
    take_spelled,
)
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
    ("prompt_tokens_details", "cache_write_tokens"): "cache_write",
    ("input_tokens_details", "cache_write_tokens"): "cache_write",
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


def usage_table(**keys: str) -> Fields:
    """Return the table of a usage from the *keys* of its counts, by column."""
    return {key: (column, count) for column, key in keys.items()}


def disjoint_tokens(
    columns: Mapping[str, int], inside: Collection[str] = frozenset(_CONTAINERS)
) -> Tokens | None:
    """Return the counts in *columns*, without those *inside* of input or output.

    None if there are no counts, or if they contradict each other: a part is larger
    than what it is within.
    """
    tokens = dict(columns)
    for part in tokens.keys() & inside:
        container = _CONTAINERS[part]
        if container in tokens:
            tokens[container] -= tokens[part]

    if not tokens or min(tokens.values()) < 0:
        return None
    return Tokens(**tokens)


def take_usage(record: Record) -> Tokens | None:
    """Return the counts of an answer; None if there are none.

    Counts within others are subtracted: those that OpenAI names so, and all of them if
    the total is the sum of input and output alone.
    """
    usage = as_object(record.get(_KEY)) or as_object(record.get(_OTHER))
    inside = _contained_counts(usage)
    untaken = dict(usage)
    columns = take_spelled(untaken, COUNTS)
    if inside or _is_total_of_two(usage, columns):
        return disjoint_tokens({**columns, **inside})

    if usage is record.get(_KEY):
        record[_KEY] = untaken
    return disjoint_tokens(columns, ())


def put_usage(record: Record, tokens: Tokens | None) -> None:
    """Write the counts that left a record."""
    usage = record.get(_KEY)
    if tokens is None or not is_object(usage):
        return
    has_counts = take_usage({_KEY: usage}) == tokens
    if not has_counts:
        put_spelled(usage, COUNTS, tokens)


def _contained_counts(usage: Record) -> dict[str, int]:
    """Return the counts that are within others, by column."""
    return {
        column: value
        for path, column in _WITHIN.items()
        if count(value := value_at(usage, *path))
    }


def _is_total_of_two(usage: Record, columns: Mapping[str, int]) -> bool:
    """Return whether the total is the sum of input and output alone."""
    totals = [usage[key] for key in _TOTALS if count(usage.get(key))]
    input_and_output = columns.get("input", 0) + columns.get("output", 0)
    if not totals or totals[0] != input_and_output:
        return False
    return input_and_output != sum(columns.values())
