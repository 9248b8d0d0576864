"""Keys that programs spell in several ways, and the column of their values.

A column has several keys here: the first one is preferred, and its value leaves the
record. Under any other key the value stays in the record as well, so that the same
record can be written again. `take` and `put` are the two directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import Fits

Record = dict[str, Any]


class Spelled(NamedTuple):
    """What fits a column, and the keys of its value, the preferred one first."""

    fits: Fits
    keys: tuple[str, ...]


Table = Mapping[str, Spelled]


def spelled(fits: Fits, *keys: str) -> Spelled:
    """Return what fits a column, and the keys of its value."""
    return Spelled(fits, keys)


def take(record: Record, table: Table) -> dict[str, Any]:
    """Return what *table* names by column; the preferred keys leave the record."""
    taken = {}
    for column, (fits, keys) in table.items():
        key = next((key for key in keys if fits(record.get(key))), None)
        if key is not None:
            taken[column] = record[key]
            # Two of them could not be told apart when they are written.
            if [name for name in keys if name in record] == [keys[0]]:
                del record[key]
    return taken


def put(record: Record, table: Table, holder: Any) -> None:
    """Write the columns of *holder*; a value that is in the record already stays."""
    for column, (_, keys) in table.items():
        value = getattr(holder, column)
        if value is not None and not any(key in record for key in keys):
            record[keys[0]] = value


def first_of(record: Record, keys: tuple[str, ...], table: Mapping[str, str]) -> Any:
    """Return what *table* has for the first of *keys* with a text; None without."""
    said = next((record[key] for key in keys if type(record.get(key)) is str), "")
    return table.get(said)
