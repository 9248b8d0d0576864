"""Where OpenCode's records keep what has a column here: one table for both directions.

`take` moves a value out of a record, `put` writes it back; what is left of a
record is its ``data``. A value of another type than its column stays in the
record, and on the way back the record's own values win: so a record that was
read is written again as it was, however odd it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Path = tuple[str, ...]
Fits = Callable[[Any], bool]
Fields = tuple[tuple[Path, str, Fits], ...]

_INT64 = 1 << 63
_EXACT = 1 << 53
#: Keys of a diff that say how much changed, not what.
_COUNTS = frozenset({"file", "path", "additions", "deletions", "status"})


def text(value: Any) -> bool:
    """Any string; for the one column that keeps every character."""
    return type(value) is str


def word(value: Any) -> bool:
    """A string that a column holds exactly: no NUL, no lone surrogate."""
    return type(value) is str and readable(value) == value


def name(value: Any) -> bool:
    """A word that is not empty."""
    return word(value) and value != ""


def readable(value: str) -> str:
    """Return *value* with NUL as U+2400 and lone surrogates as U+FFFD."""
    value = value.replace("\0", "\u2400")
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def integer(value: Any) -> bool:
    """An integer of 64 bits."""
    return type(value) is int and -_INT64 <= value < _INT64


def count(value: Any) -> bool:
    """An integer of 64 bits that is not negative."""
    return type(value) is int and 0 <= value < _INT64


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


SESSION: Fields = (
    (("title",), "title", word),
    (("directory",), "directory", word),
    (("version",), "version", word),
    (("agent",), "agent", word),
    (("model", "providerID"), "provider_id", word),
    (("model", "id"), "model_id", word),
    (("share", "url"), "share_url", word),
    (("summary", "additions"), "summary_additions", integer),
    (("summary", "deletions"), "summary_deletions", integer),
    (("summary", "files"), "summary_files", integer),
    (("summary", "diffs"), "summary_diffs", counted_diffs),
    (("revert",), "revert", structure),
    (("permission",), "permission", structure),
    (("metadata",), "metadata", metadata),
    (("time", "created"), "time_created", integer),
    (("time", "updated"), "time_updated", integer),
    (("time", "compacting"), "time_compacting", integer),
    (("time", "archived"), "time_archived", integer),
)
EVENT: Fields = ((("time", "created"), "time_created", integer),)
USER: Fields = (
    *EVENT,
    (("agent",), "agent", word),
    (("model", "providerID"), "provider_id", word),
    (("model", "modelID"), "model_id", word),
)
ASSISTANT: Fields = (
    *EVENT,
    (("time", "completed"), "time_completed", integer),
    (("agent",), "agent", word),
    (("providerID",), "provider_id", word),
    (("modelID",), "model_id", word),
    (("cost",), "cost", amount),
    (("error",), "error", structure),
)
TOKENS: Fields = (
    (("tokens", "input"), "input", count),
    (("tokens", "output"), "output", count),
    (("tokens", "reasoning"), "reasoning", count),
    (("tokens", "cache", "read"), "cache_read", count),
    (("tokens", "cache", "write"), "cache_write", count),
)
TEXT: Fields = (
    (("text",), "text", text),
    (("time", "start"), "time_started", integer),
    (("time", "end"), "time_ended", integer),
)
TOOL: Fields = (
    (("tool",), "tool", name),
    (("callID",), "call_id", word),
    (("state", "title"), "title", word),
    (("state", "time", "start"), "time_started", integer),
    (("state", "time", "end"), "time_ended", integer),
)
MESSAGE: Mapping[str, Fields] = {"user": USER, "assistant": ASSISTANT}
PART: Mapping[str, Fields] = {"text": TEXT, "reasoning": TEXT, "tool": TOOL}
#: Where the result of a call stands, by its status.
RESULT: Mapping[str | None, Path] = {"completed": ("state", "output"), "error": ("state", "error")}


def take_all(record: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Move what *fields* name out of *record*; return it by column.

    A string that its column cannot hold exactly stays, and the column gets it readable.
    """
    taken = {}
    for path, name, fits in fields:
        value = take(record, path, fits)
        if value is None and fits in (word, name):
            value = _at(record, path)
            value = readable(value) if type(value) is str else None
        if value is not None:
            taken[name] = value
    return taken


def take(record: dict[str, Any], path: Path, fits: Fits) -> Any:
    """Move the value at *path* out of *record*; None, and nothing moved, unless it fits."""
    holders = [record]
    for key in path[:-1]:
        inner = holders[-1].get(key)
        if type(inner) is not dict:
            return None
        holders.append(inner)
    value = holders[-1].get(path[-1])
    if value is None or not fits(value):
        return None
    for holder, key in zip(reversed(holders), reversed(path), strict=True):
        del holder[key]
        if holder:
            break
    return value


def _at(record: Any, path: Path) -> Any:
    for key in path:
        if type(record) is not dict:
            return None
        record = record.get(key)
    return record


def put_all(record: dict[str, Any], fields: Fields, holder: Any) -> None:
    """Write the columns of *holder* that are not None into *record*."""
    for path, name, _ in fields:
        put(record, path, getattr(holder, name))


def put(record: dict[str, Any], path: Path, value: Any) -> None:
    """Write *value* at *path* of *record*; None writes nothing."""
    if value is None:
        return
    for key in path[:-1]:
        record = record.setdefault(key, {})
    record[path[-1]] = value


def overlay(record: dict[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the *rest* of a record over its columns, and return the record."""
    for key, value in rest.items():
        mine = record.get(key)
        if type(mine) is dict and isinstance(value, Mapping):
            overlay(mine, value)
        else:
            record[key] = value
    return record
