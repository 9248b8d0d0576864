"""Where OpenCode's records keep what has a column here: one table for both directions.

`take` moves values out of a record, `put` writes them back; what is left of a
record is its ``data``. A value of another type than its column stays in the
record, and on the way back the record's own values win: so a record that was
read is written again as it was, however odd it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sessiondb.formats.kit.json import known_time
from sessiondb.model import bounds

#: Keys of a record to the column of their value and what fits it, or to the keys inside.
Rule: TypeAlias = tuple[str, Callable[[Any], bool]]
Fields: TypeAlias = "Mapping[str, Rule | Fields]"

_INT64 = 1 << 63
_EXACT = 1 << 53
#: Keys of a diff that say how much changed, not what.
_COUNTS = frozenset({"file", "path", "additions", "deletions", "status"})


def text(value: Any) -> bool:
    """Any string; for the one column that keeps every character."""
    return type(value) is str


def word(value: Any) -> bool:
    """A string that a column holds exactly: no NUL, no lone surrogate."""
    return type(value) is str and readable(value) is value


def name(value: Any) -> bool:
    """A word that is not empty."""
    return word(value) and value != ""


def readable(value: str) -> str:
    """Return *value* with NUL as U+2400 and lone surrogates as U+FFFD; itself without any."""
    shown = value.replace("\0", "\u2400") if "\0" in value else value
    if shown.isascii():
        return shown
    clean = shown.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return shown if clean == shown else clean


def integer(value: Any) -> bool:
    """An integer of 64 bits."""
    return type(value) is int and -_INT64 <= value < _INT64


def time(value: Any) -> bool:
    """A time in Unix ms that can be sorted with others."""
    return known_time(value) is not None


def count(value: Any) -> bool:
    """A number of tokens that can be summed."""
    return type(value) is int and 0 <= value <= bounds.TOKENS_MOST


def cost(value: Any) -> bool:
    """A cost in USD that can be summed."""
    return amount(value) and 0 <= value <= bounds.COST_MOST


def amount(value: Any) -> bool:
    """A number that a float holds exactly."""
    return (type(value) is float and math.isfinite(value)) or (
        type(value) is int and abs(value) <= _EXACT
    )


def structure(value: Any) -> bool:
    """An object or a list."""
    return type(value) in (dict, list)


def metadata(value: Any) -> bool:
    """An object that leaves the key ``share`` to the share's secret, and is not empty."""
    return type(value) is dict and bool(value) and "share" not in value


def counted_diffs(value: Any) -> bool:
    """A list of diffs that has paths and counts only."""
    return type(value) is list and all(
        type(item) is dict and _COUNTS.issuperset(item) for item in value
    )


SESSION: Fields = {
    "title": ("title", word),
    "directory": ("directory", word),
    "version": ("version", word),
    "agent": ("agent", word),
    "model": {"providerID": ("provider_id", word), "id": ("model_id", word)},
    "share": {"url": ("share_url", word)},
    "summary": {
        "additions": ("summary_additions", integer),
        "deletions": ("summary_deletions", integer),
        "files": ("summary_files", integer),
        "diffs": ("summary_diffs", counted_diffs),
    },
    "revert": ("revert", structure),
    "permission": ("permission", structure),
    "metadata": ("metadata", metadata),
    "time": {
        "created": ("time_created", time),
        "updated": ("time_updated", time),
        "compacting": ("time_compacting", time),
        "archived": ("time_archived", time),
    },
}
EVENT: Fields = {"time": {"created": ("time_created", time)}}
USER: Fields = {
    **EVENT,
    "agent": ("agent", word),
    "model": {"providerID": ("provider_id", word), "modelID": ("model_id", word)},
}
ASSISTANT: Fields = {
    "time": {"created": ("time_created", time), "completed": ("time_completed", time)},
    "agent": ("agent", word),
    "providerID": ("provider_id", word),
    "modelID": ("model_id", word),
    "cost": ("cost", cost),
    "error": ("error", structure),
}
TOKENS: Fields = {
    "tokens": {
        "input": ("input", count),
        "output": ("output", count),
        "reasoning": ("reasoning", count),
        "cache": {"read": ("cache_read", count), "write": ("cache_write", count)},
    }
}
TEXT: Fields = {
    "text": ("text", text),
    "time": {"start": ("time_started", time), "end": ("time_ended", time)},
}
TOOL: Fields = {
    "tool": ("tool", name),
    "callID": ("call_id", word),
    "state": {
        "title": ("title", word),
        "time": {"start": ("time_started", time), "end": ("time_ended", time)},
    },
}
MESSAGE: Mapping[str, Fields] = {"user": USER, "assistant": ASSISTANT}
PART: Mapping[str, Fields] = {"text": TEXT, "reasoning": TEXT, "tool": TOOL}
#: Where the state of a call keeps its result, by its status.
RESULT: Mapping[str | None, str] = {"completed": "output", "error": "error"}


def take(record: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Move what *fields* name out of *record*; return it by column.

    A string that its column cannot hold exactly stays, and the column gets it readable.
    """
    taken: dict[str, Any] = {}
    _take(record, fields, taken)
    return taken


def _take(record: dict[str, Any], fields: Fields, taken: dict[str, Any]) -> None:
    for key, rule in fields.items():
        value = record.get(key)
        if value is None:
            continue
        if type(rule) is not tuple:
            if type(value) is dict and value:
                _take(value, rule, taken)  # type: ignore[arg-type]
                if not value:
                    del record[key]
            continue
        column, fits = rule
        if fits(value):
            taken[column] = record.pop(key)
        elif type(value) is str and fits in (word, name):
            taken[column] = readable(value)


def put(record: dict[str, Any], fields: Fields, holder: Any) -> None:
    """Write the columns of *holder* that are not None into *record*."""
    for key, rule in fields.items():
        if isinstance(rule, tuple):
            value = getattr(holder, rule[0])
            if value is not None:
                record[key] = value
            continue
        inner = record.get(key, {})
        put(inner, rule, holder)
        if inner:
            record[key] = inner


def overlay(record: dict[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the *rest* of a record over its columns, and return the record."""
    for key, value in rest.items():
        mine = record.get(key)
        if type(mine) is dict and isinstance(value, Mapping):
            overlay(mine, value)
        else:
            record[key] = value
    return record
