"""Keys that programs spell in several ways, and the column of their values.

A column has several keys here: the first one is preferred, and its value leaves the
record. Under any other key the value stays in the record as well, so that the same
record can be written again. `take_spelled` and `put_spelled` are the two directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

from sessiondb.formats.kit.fields import Fits, text
from sessiondb.model import bounds

Record = dict[str, Any]


class Spelled(NamedTuple):
    """A column whose value has several keys."""

    #: Decides whether the column can hold a value.
    fits: Fits
    #: The keys of its value, the preferred one first.
    keys: tuple[str, ...]


Table = Mapping[str, Spelled]


def spelled(fits: Fits, *keys: str) -> Spelled:
    """Return what fits a column, and the keys of its value."""
    return Spelled(fits, keys)


def take_spelled(record: Record, table: Table) -> dict[str, Any]:
    """Return what *table* names by column; the preferred keys leave the record."""
    taken = {}
    for column, (fits, keys) in table.items():
        key, value = first_fitting(record, keys, fits)
        if not key:
            continue

        taken[column] = value
        # With two keys, `put_spelled` could not know which one had the value.
        if keys_in(record, keys) == keys[:1]:
            del record[key]

    return taken


def put_spelled(record: Record, table: Table, holder: Any) -> None:
    """Write the columns of *holder*; a value that is in the record already stays."""
    for column, (_, keys) in table.items():
        value = getattr(holder, column)
        if value is not None and not keys_in(record, keys):
            record[keys[0]] = value


def not_null(value: Any) -> bool:
    """Any value but null."""
    return value is not None


def in_ms(value: Any) -> TypeGuard[int]:
    """A time in Unix ms that a column can hold."""
    return type(value) is int and bounds.TIME_LEAST <= value <= bounds.TIME_MOST


def keys_in(record: Record, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of *keys* that *record* has, also with null as the value."""
    return tuple(key for key in keys if key in record)


def first_fitting(record: Record, keys: tuple[str, ...], fits: Fits) -> tuple[str, Any]:
    """Return the first of *keys* whose value fits, and the value; else "" and None."""
    for key in keys:
        value = record.get(key)
        if fits(value):
            return key, value
    return "", None


def has_failed(record: Record) -> bool:
    """Return whether the result of a call has an error, or is marked as one."""
    # An empty error is how programs with a fixed layout write success.
    return (
        record.get("error") not in (None, "", False) or record.get("is_error") is True
    )


def first_of(record: Record, keys: tuple[str, ...], table: Mapping[str, str]) -> Any:
    """Return what *table* has for the first of *keys* with a text; None without."""
    _, value = first_fitting(record, keys, text)
    return table.get(value)
