"""Fields of foreign records and columns here: one table for both directions.

A table of type `Fields` says which column holds the value of which key, and which
values that column can hold. `take_fields` moves values out of a record by such a table,
and what is left of the record is its ``data``; `put_fields` writes them back by the
same table, and `overlay` lays the data over them.

The data wins: a value that does not fit its column stays in the record and is written
again as it was, so a round trip gives an equal record, however odd it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from sys import float_info
from typing import Any, TypeAlias, TypeGuard

from sessiondb.formats.kit.json import OddRecordError, is_storable, known_time
from sessiondb.model import bounds, nones

#: Decides whether a column can hold a value.
Fits: TypeAlias = Callable[[Any], bool]
#: The column of a value, and what fits it.
Rule: TypeAlias = tuple[str, Fits]
#: Keys of a record to their rule, or to the table of the object inside.
Fields: TypeAlias = "Mapping[str, Rule | Fields]"
#: Keys of a record to the column of a row, or to the shape of the object inside.
Shape: TypeAlias = "Mapping[str, str | Shape]"

_INT64 = 1 << 63
_EMPTY: tuple[Any, ...] = (None, "", [], {})
#: The largest numbers that a float holds exactly; beyond the second is infinity.
_EXACT: dict[type, float] = {int: 1 << 53, float: float_info.max}


#: Kinds of events with a meaning here, which a record of the same name does not have.
MEANINGS = frozenset(
    "archive branch_summary cancelled compaction context custom_message failed label "
    "mode_change model_change reset rules session_init thinking_level_change "
    "title_change usage".split()
)


# -- which values fit ---------------------------------------------------------


def text(value: Any) -> TypeGuard[str]:
    """Any string; for columns that keep every character."""
    return type(value) is str


def clean_text(value: Any) -> TypeGuard[str]:
    """A string that every column holds exactly: no NUL, no lone surrogate."""
    return type(value) is str and readable_text(value) == value


def clean_name(value: Any) -> TypeGuard[str]:
    """A clean text that is not empty."""
    return clean_text(value) and value != ""


def integer(value: Any) -> TypeGuard[int]:
    """An integer of 64 bits."""
    return type(value) is int and -_INT64 <= value < _INT64


def time(value: Any) -> TypeGuard[int]:
    """A time in Unix ms that can be sorted with others; see `known_time`."""
    return known_time(value) is not None


def count(value: Any) -> TypeGuard[int]:
    """A number of tokens that can be summed."""
    return type(value) is int and 0 <= value <= bounds.TOKENS_MOST


def cost(value: Any) -> TypeGuard[float]:
    """A cost in USD that can be summed."""
    return amount(value) and 0 <= value <= bounds.COST_MOST


def amount(value: Any) -> TypeGuard[float]:
    """A number that a float holds exactly."""
    # NaN is not less than any number.
    return type(value) in _EXACT and abs(value) <= _EXACT[type(value)]


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """An object."""
    return type(value) is dict


def structure(value: Any) -> bool:
    """An object or a list."""
    return type(value) in (dict, list)


# -- values of an expected type -----------------------------------------------


def as_object(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, an empty one for anything else."""
    return value if type(value) is dict else {}


def as_list(value: Any) -> list[Any]:
    """Return *value* if it is a list, an empty one for anything else."""
    return value if type(value) is list else []


def list_or_item(value: Any) -> list[Any]:
    """Return *value* if it is a list, else a list of it alone."""
    return value if type(value) is list else [value]


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; anything else in it, or instead, is left out."""
    return [item for item in as_list(value) if type(item) is dict]


def as_text(value: Any) -> str | None:
    """Return *value* if it is a string, None for anything else."""
    return value if type(value) is str else None


def as_string(value: Any) -> str:
    """Return *value* if it is a string, an empty one for anything else."""
    return value if type(value) is str else ""


def fitting(value: Any, fits: Fits, default: Any = None) -> Any:
    """Return *value* if it *fits*, else *default*."""
    return value if fits(value) else default


def value_at(record: Any, *path: str) -> Any:
    """Return the value at *path* in *record*; None if an object is missing."""
    for key in path:
        if type(record) is not dict:
            return None
        record = record.get(key)

    return record


#: Returns a record without the keys whose value is None.
without_none = nones.without_none


def copy_objects(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record whose objects can be taken apart; its other values are shared."""
    return {
        key: copy_objects(value) if type(value) is dict else value
        for key, value in record.items()
    }


def without_empty(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return *record* without the keys whose value is None, or empty."""
    return {k: v for k, v in record.items() if v not in _EMPTY}


def without_keys(keys: Collection[str], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return *record* without *keys*."""
    return {key: value for key, value in record.items() if key not in keys}


def nested_record(row: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Return the record that a flat *row* represents.

    *shape* has the columns at the keys of the record. A column that is None is left
    out, and so is an object of which nothing is known.
    """
    record: dict[str, Any] = {}
    for key, column in shape.items():
        if isinstance(column, str):
            value = row.get(column)
            is_known = value is not None
        else:
            value = nested_record(row, column)
            is_known = bool(value)
        if is_known:
            record[key] = value

    return record


def columns_of(shape: Shape) -> Iterator[str]:
    """Yield the columns that a *shape* names."""
    for column in shape.values():
        if isinstance(column, str):
            yield column
        else:
            yield from columns_of(column)


def readable_text(value: str) -> str:
    """Return *value* with NUL as U+2400 and lone surrogates as U+FFFD."""
    # A look for a NUL is cheaper than a call that replaces none.
    shown = value.replace("\0", "\u2400") if "\0" in value else value
    if shown.isascii():
        return shown

    # UTF-16 joins the two halves of a pair that was escaped apart.
    raw = shown.encode("utf-16-le", "surrogatepass")
    return raw.decode("utf-16-le", "replace")


# -- tables ------------------------------------------------------------------

#: Makes the text of a column from a string that it cannot hold.
_REPAIRS: Mapping[Fits, Callable[[str], str]] = {
    clean_text: readable_text,
    clean_name: readable_text,
}


def take_fields(record: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Move what *fields* name out of *record*, and return it by column.

    A string that its column cannot hold exactly stays in the record, and the column
    gets a readable form of it. Objects that became empty are removed from the record.
    """
    taken: dict[str, Any] = {}
    _take_fields(record, fields, taken)
    return taken


def _take_fields(record: dict[str, Any], fields: Fields, taken: dict[str, Any]) -> None:
    for key, rule in fields.items():
        value = record.get(key)
        if value is None:
            continue

        # Not a function of its own: this runs for every record of an import.
        if type(rule) is not tuple:
            if type(value) is dict and value:
                _take_fields(value, rule, taken)  # type: ignore[arg-type]
                if not value:
                    del record[key]
            continue

        column, fits = rule
        if fits(value):
            taken[column] = record.pop(key)
        elif type(value) is str and fits in _REPAIRS:
            taken[column] = _REPAIRS[fits](value)


def put_fields(record: dict[str, Any], fields: Fields, holder: Any) -> None:
    """Write the columns of *holder* that *fields* name and that are not None."""
    for key, rule in fields.items():
        if not isinstance(rule, tuple):
            inner = record.get(key, {})
            put_fields(inner, rule, holder)
            if inner:
                record[key] = inner
            continue

        value = getattr(holder, rule[0])
        if value is not None:
            record[key] = value


def overlay(record: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the *data* of a record over its columns, and return the record."""
    # Few columns are objects; this runs for every record of an export.
    nested = {
        key: overlay(present, data[key])
        for key, present in record.items()
        if type(present) is dict and isinstance(data.get(key), Mapping)
    }
    record.update(data)
    record.update(nested)
    return record


def check_storable(data: dict[str, Any]) -> None:
    """Raise `OddRecordError` if what is left of a record cannot be its ``data``."""
    if not is_storable(data):
        raise OddRecordError("has an integer beyond 64 bits")
