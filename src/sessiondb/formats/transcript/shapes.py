"""Arguments and results of tools: JSON of any shape, which each agent names differently.

Shape counts, not the agent: a value is found by any of its usual names, at any depth.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.words import count

#: The longest JSON that is written on one line.
_ONE_LINE = 80


def first_text(values: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """Return the first string among *keys* of *values*, or None."""
    for key in keys:
        if isinstance(value := values.get(key), str):
            return value
    return None


def below(values: Iterable[Any]) -> list[Any]:
    """Return what the objects and lists among *values* contain: one level deeper."""
    inner: list[Any] = []
    for value in values:
        if isinstance(value, Mapping):
            inner += value.values()
        elif isinstance(value, list | tuple):
            inner += value
    return inner


def as_text(value: Any) -> str:
    """Return a string verbatim, any other value as JSON."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """Return *value* as JSON, indented if it is long; Python's notation if JSON has none."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=_other)
        if len(text) <= _ONE_LINE:
            return text
        return json.dumps(value, ensure_ascii=False, default=_other, indent=2)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _other(value: Any) -> str:
    return f"({count(len(value), 'byte')})" if isinstance(value, bytes) else str(value)
