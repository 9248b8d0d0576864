"""The tokens of an answer: reasoning is a part of the output, in every dialect.

pi calls it ``reasoning`` (``Usage`` in ``pi-ai/src/types.ts``), oh-my-pi
``reasoningTokens`` (``pi-catalog/src/types.ts``). The count stays in the record, and
the output is written with it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import Fields, as_object, count, put, take
from sessiondb.formats.kit.usage import counts
from sessiondb.model import Tokens

#: ``input`` is without what came from the cache.
_COUNTS: Fields = {
    "usage": counts(
        input="input", output="output", cache_read="cacheRead", cache_write="cacheWrite"
    )
}
_REASONING = ("reasoning", "reasoningTokens")


def take_tokens(record: dict[str, Any]) -> Tokens | None:
    """Return the tokens that a record states, or None."""
    usage = as_object(record.get("usage"))
    reasoning = next(filter(count, map(usage.get, _REASONING)), None)
    known = take(record, _COUNTS)

    rest = known.get("output", -1) - (reasoning or 0)
    if reasoning is not None and rest >= 0:
        known |= {"output": rest, "reasoning": reasoning}
    return Tokens(**known) if known else None


def put_tokens(record: dict[str, Any], tokens: Tokens | None) -> None:
    """Write the tokens of a record."""
    known = tokens or Tokens()
    if known.reasoning is not None:
        both = filter(None, (known.output, known.reasoning))
        known = replace(known, output=sum(both))
    put(record, _COUNTS, known)
