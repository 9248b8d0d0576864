"""The tokens of an answer: reasoning is a part of the output, in every dialect.

pi calls it ``reasoning`` (``Usage`` in ``pi-ai/src/types.ts``), oh-my-pi
``reasoningTokens`` (``pi-catalog/src/types.ts``). The count stays in the record, and
the output is written with it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    as_object,
    count,
    put_fields,
    take_fields,
)
from sessiondb.formats.kit.usage import usage_table
from sessiondb.model import Tokens

#: ``input`` is without what came from the cache.
_COUNTS: Fields = {
    "usage": usage_table(
        input="input", output="output", cache_read="cacheRead", cache_write="cacheWrite"
    )
}
_REASONING_KEYS = ("reasoning", "reasoningTokens")


def take_tokens(record: dict[str, Any]) -> Tokens | None:
    """Return the tokens that a record states, or None."""
    usage = as_object(record.get("usage"))
    reasoning = [usage[key] for key in _REASONING_KEYS if count(usage.get(key))]

    columns = take_fields(record, _COUNTS)
    if reasoning and columns.get("output", -1) >= reasoning[0]:
        columns["output"] -= reasoning[0]
        columns["reasoning"] = reasoning[0]
    return Tokens(**columns) if columns else None


def put_tokens(record: dict[str, Any], tokens: Tokens | None) -> None:
    """Write the tokens of a record."""
    if tokens is None:
        return
    if tokens.reasoning is not None:
        tokens = replace(tokens, output=(tokens.output or 0) + tokens.reasoning)
    put_fields(record, _COUNTS, tokens)
