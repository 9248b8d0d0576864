"""The items of a store as values of the key/value table, and back.

All namespaces of the store are below `ROOT`, which none of its own can be: a label has
no period. Labels and keys are stored as they are. One that the table refuses, and one
that begins with a quote, is stored as JSON, which begins with a quote: so no two are
stored alike.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

from langgraph.store.base import Item, SearchItem

from sessiondb.codec import is_unicode
from sessiondb.model.values import KeyValue

#: The first name of all namespaces of the store.
ROOT = "langgraph.store"


def stored_name(name: str) -> str:
    """Return a label or a key as it is stored."""
    if name and name[0] != '"' and name.isascii() and "\0" not in name:
        return name
    is_plain = name and name[0] != '"' and "\0" not in name and is_unicode(name)
    return name if is_plain else json.dumps(name)


def name_of(stored: str) -> str:
    """Return the label or the key that is stored as *stored*."""
    if stored[0] != '"':
        return stored
    name: str = json.loads(stored)
    return name


@lru_cache(maxsize=256)
def stored_namespace(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return a namespace of the store as it is in the table."""
    return (ROOT, *[stored_name(label) for label in labels])


@lru_cache(maxsize=256)
def namespace_of(stored: tuple[str, ...]) -> tuple[str, ...]:
    """Return the namespace of the store that is in the table as *stored*."""
    return tuple([name_of(name) for name in stored[1:]])


def _moments(value: KeyValue) -> tuple[datetime, datetime]:
    created = datetime.fromtimestamp(value.time_created / 1000, UTC)
    if value.time_updated == value.time_created:
        return created, created
    return created, datetime.fromtimestamp(value.time_updated / 1000, UTC)


def item_of(value: KeyValue) -> Item:
    """Return what `get` returns for a value."""
    created, updated = _moments(value)
    return Item(
        value=value.value,
        key=name_of(value.key),
        namespace=namespace_of(value.namespace),
        created_at=created,
        updated_at=updated,
    )


def search_item_of(value: KeyValue) -> SearchItem:
    """Return what `search` returns for a value; nothing has a score."""
    return SearchItem(
        namespace_of(value.namespace),
        name_of(value.key),
        value.value,
        *_moments(value),
    )


def plain_json(value: Any) -> Any:
    """Return a value that is not JSON as the stores of LangGraph write it.

    Times, UUIDs and enumerations are texts, dataclasses objects; numbers that JSON does
    not have are null. Anything else is as it was.
    """
    match value:
        case Enum():
            return plain_json(value.value)
        case float():
            return value if math.isfinite(value) else None
        case datetime() | date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case Mapping():
            return {key: plain_json(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_json(item) for item in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return {name: plain_json(getattr(value, name)) for name in names}
        case _:
            return value
