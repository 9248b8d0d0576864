"""JSON of other programs: how deep it may nest, which numbers and ids can be stored.

Whatever a file holds, the only errors are ValueError, of which `OddRecordError` is
one, and from `decode_json` RecursionError: a reader reports them and reads the next
record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.scanner import make_scanner
from typing import Any, TypeAlias, cast

from sessiondb.model import bounds
from sessiondb.patterns import late_pattern

#: Deepest nesting of a record that is read; one that nests deeper is a problem.
MAX_DEPTH = 300
_LEAST, _LARGEST = -(1 << 63), (1 << 64) - 1
#: The types that a decoded record nests. To check for an abstract `Mapping` takes four
#: times as long.
_CONTAINERS = frozenset({dict, list, tuple})
#: The mark with which some editors and shells begin a file of UTF-8.
_BOM = "\ufeff"
_ID = late_pattern("[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,256}")

#: A record as stored; decoded already if the store is one large document.
Raw: TypeAlias = "bytes | dict[str, Any] | None"


class OddRecordError(ValueError):
    """A record that cannot be read; the message ends a sentence about it."""


def load_value(raw: Raw) -> Any:
    """Decode a record; raises `OddRecordError`."""
    if raw is None:
        raise OddRecordError("has no content that can be read")
    if not isinstance(raw, bytes):
        return raw

    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise OddRecordError("is not UTF-8") from None
    # A large record is in memory twice then, not three times.
    del raw
    return load_text(text)


def load_text(text: str) -> Any:
    """Decode JSON, also after the mark of UTF-8; raises `OddRecordError`."""
    try:
        value = decode_json(text)
    except RecursionError:
        raise OddRecordError("is nested too deeply") from None
    except ValueError as error:
        if text.startswith(_BOM):
            return load_text(text.lstrip(_BOM))
        raise OddRecordError(f"is not JSON ({error})") from None

    # Counting brackets is cheap; only a record that has enough of them is walked.
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        raise OddRecordError(f"is nested deeper than {MAX_DEPTH}")
    return value


def load_object(raw: Raw) -> dict[str, Any]:
    """Decode a JSON object; raises `OddRecordError`."""
    # Popped, so that this function does not hold the bytes while they are decoded.
    holder = [raw]
    del raw
    value = load_value(holder.pop())
    if type(value) is not dict:
        raise OddRecordError("is not a JSON object")
    return value


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
_scan = make_scanner(cast(Any, _decoder))


#: Decodes the value at a place of a text; returns it and its end; raises ValueError.
piece = _decoder.raw_decode


def decode_json(text: str) -> Any:
    """Decode JSON, however deep it nests; raises ValueError and RecursionError."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return _decoder.decode(text)

    # Most programs write nothing around a value but a line feed: no second scan then.
    is_all = text[end : end + 2] in ("", "\n")
    return value if is_all else _decoder.decode(text)


def _is_deep(value: Any) -> bool:
    """Return whether *value* is nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = containers_in(level)
        if not level:
            return False

    return True


def containers_in(values: Iterable[Any]) -> list[Any]:
    """Return the objects and lists directly inside *values*, which are such too."""
    containers: list[Any] = []
    for value in values:
        items = value.values() if isinstance(value, dict) else value
        containers += [item for item in items if type(item) in _CONTAINERS]
    return containers


#: Writes JSON whose text does not depend on the order of keys.
sorted_json = json.JSONEncoder(sort_keys=True).encode


def object_of(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, an empty one for None; raises ValueError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        # A fault of the file, not of the caller.
        raise ValueError(f"expected an object, not {value!r:.80}")  # noqa: TRY004
    return value


def text_of(value: Any) -> str:
    """Return *value* if it is a text; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, not {value!r:.80}")  # noqa: TRY004
    return value


def is_storable(value: dict[str, Any] | list[Any]) -> bool:
    """Return whether every integer in *value* fits 64 bits, as ``data`` requires."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        for inner in item.values() if type(item) is dict else item:
            if type(inner) is int:
                if not _LEAST <= inner <= _LARGEST:
                    return False
            elif inner and type(inner) in (dict, list):
                stack.append(inner)
    return True


def check_id(value: object) -> None:
    """Raise `OddRecordError` if *value* cannot name a session, message or part."""
    if not usable_id(value):
        raise OddRecordError("has no usable id")


def usable_id(value: object) -> bool:
    """Return whether *value* is an id: 1 to 256 bytes of UTF-8 without controls."""
    if type(value) is not str or _ID.fullmatch(value) is None:
        return False

    return value.isascii() or len(value.encode()) <= 256


def known_time(value: object) -> int | None:
    """Return *value* if it can be a time in Unix ms, None for anything else.

    Zero and other small numbers are what programs write for times that they do not
    know; a number beyond the year 2100 would be sorted before everything else.
    """
    return value if type(value) is int and 0 <= value <= bounds.TIME_MOST else None
