"""Arguments and results of tools: JSON of any shape, named differently by each agent.

Shape counts, not the agent: a value is found by any of its usual names, at any depth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from sessiondb.formats.kit.json import containers_in
from sessiondb.words import count

#: Levels of a record that are searched.
DEPTH = 8
#: The longest JSON that is written on one line.
_ONE_LINE = 80


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether *value* is a string."""
    return isinstance(value, str)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether *value* is an object of JSON."""
    return isinstance(value, dict)


def is_list_of(value: Any, is_item: Callable[[Any], bool]) -> bool:
    """Return whether *value* is a list, and each of its items passes *is_item*."""
    return isinstance(value, list) and all(is_item(item) for item in value)


def texts_at(values: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    """Yield the strings among *keys* of *values*, in the order of *keys*."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            yield value


def first_text(values: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """Return the first of `texts_at`, or None."""
    # As `texts_at`, but this is called ten times for each tool call.
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            return value
    return None


def text_of(values: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first of `texts_at`, or an empty string."""
    return first_text(values, keys) or ""


class CallRecords:
    """The objects inside a record by level, the top first, walked once.

    Most calls keep little: which names occur at all is collected too, so that a search
    for others need not look at each object.
    """

    __slots__ = ("_levels", "_names")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._levels: list[list[dict[str, Any]]] = []
        self._names: set[str] = set()

        level: list[Any] = [data] if data else []
        while level and len(self._levels) < DEPTH:
            objects = [value for value in level if isinstance(value, dict)]
            self._levels.append(objects)
            self._names.update(*objects)
            level = containers_in(level)

    def levels_having(
        self, names: Iterable[str], depth: int = DEPTH
    ) -> list[list[dict[str, Any]]]:
        """Return the first *depth* levels; none if no object has any of *names*."""
        return [] if self._names.isdisjoint(names) else self._levels[:depth]


def as_text(value: Any) -> str:
    """Return a string verbatim, any other value as JSON."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """Return *value* as JSON, indented if it is long; else in Python's notation."""
    try:
        text = _SHORT.encode(value)
        return text if len(text) <= _ONE_LINE else _LONG.encode(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _odd_value(value: Any) -> str:
    return f"({count(len(value), 'byte')})" if isinstance(value, bytes) else str(value)


# `json.dumps` would make an encoder for each value.
_SHORT = json.JSONEncoder(ensure_ascii=False, default=_odd_value)
_LONG = json.JSONEncoder(ensure_ascii=False, default=_odd_value, indent=2)
