"""Dictionaries, and objects of the providers' SDKs, as programs have them.

The SDKs are not imported. Their objects are models of pydantic, which are known by
their ``model_dump``: what they were given is dumped, and nothing that they add as a
default, so that an answer is stored as the provider sent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.errors import InvalidInputError, abridged

#: Deepest nesting of a value; `codec.MAX_DEPTH` leaves room for what is around it.
_MAX_DEPTH = 300
_SCALARS = (str, int, float, bool, type(None))
#: Keys that the SDKs add to an answer that they parsed, and the key beside which they
#: do; the providers do not know it.
_PARSED = {
    "parsed": ("text", "content"),
    "parsed_output": ("text",),
    "parsed_arguments": ("arguments",),
}
#: The arguments of a call, whose keys are those of a tool.
_ARGUMENTS = "input"


def records_of(values: Any, name: str) -> list[dict[str, Any]]:
    """Return what a caller passed as *name*, as new dictionaries of JSON values.

    A string is a message of the user, and one object is a list of it alone.
    Raises `InvalidInputError`, which names the place.
    """
    if isinstance(values, str):
        return [{"role": "user", "content": values}]
    if isinstance(values, Mapping) or hasattr(values, "model_dump"):
        values = [values]
    if not isinstance(values, Iterable) or isinstance(values, bytes):
        raise InvalidInputError(f"{name} must be a list, not {abridged(values)}")

    return [record_of(value, f"{name}[{index}]") for index, value in enumerate(values)]


def record_of(value: Any, place: str) -> dict[str, Any]:
    """Return an object as a new dictionary; raises `InvalidInputError`."""
    record = plain_value(value, place)
    if type(record) is not dict:
        raise InvalidInputError(f"{place} must be an object, not {abridged(value)}")
    return record


def plain_value(value: Any, place: str, depth: int = 0) -> Any:
    """Return a copy of *value* that is made of JSON values alone.

    Raises `InvalidInputError`, which names the *place* of what is not.
    """
    if depth > _MAX_DEPTH:
        raise InvalidInputError(f"{place} is nested deeper than {_MAX_DEPTH}")
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Mapping):
        record = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidInputError(f"{place} has the key {abridged(key)}")
            record[key] = plain_value(inner, f"{place}.{key}", depth + 1)
        return record
    if isinstance(value, list | tuple):
        return [
            plain_value(inner, f"{place}[{index}]", depth + 1)
            for index, inner in enumerate(value)
        ]
    if hasattr(value, "model_dump") and not isinstance(value, type):
        dumped = value.model_dump(
            mode="json", by_alias=True, exclude_unset=True, warnings=False
        )
        return _without_parsed(plain_value(dumped, place, depth + 1))

    raise InvalidInputError(f"{place} cannot be JSON: {abridged(value)}")


def _without_parsed(value: Any) -> Any:
    if type(value) is list:
        return [_without_parsed(inner) for inner in value]
    if type(value) is not dict:
        return value
    return {
        key: inner if key == _ARGUMENTS else _without_parsed(inner)
        for key, inner in value.items()
        if not any(neighbour in value for neighbour in _PARSED.get(key, ()))
    }
