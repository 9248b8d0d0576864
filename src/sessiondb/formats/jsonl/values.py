r"""Records to lines and back, exactly.

A line is one JSON object in UTF-8 without control characters, whatever the text
in it: C0, DEL, C1, U+2028, U+2029, U+FEFF, the signs that turn the direction of
writing and lone surrogates are ``\u`` escapes. A value that JSON cannot express is an
object with one key: ``$bytes`` (base64), ``$blob`` (hash), ``$float`` (nan, inf,
-inf), ``$str`` (base64 of a text with a surrogate pair written as two), ``$map``
(the pairs of an object one of whose keys begins with ``$``).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from sessiondb.formats.kit.json import decode_json, text_of
from sessiondb.patterns import late_pattern

_TRICKY = late_pattern(
    "[\x00-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
#: JSON would read this as one character.
_SPLIT_PAIR = late_pattern("[\ud800-\udbff][\udc00-\udfff]")
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

#: The floats that JSON has no numbers for.
_FLOATS = ("nan", "inf", "-inf")
#: Takes bytes and returns the name of their blob, or None: they stay where they are.
Keep = Callable[[bytes], str | None]
#: Returns the bytes of a blob by its name; raises ValueError if there is none.
Blobs = Callable[[str], bytes]


def line_of(record: Mapping[str, Any], keep: Keep) -> str:
    """Return *record* as a line; *keep* may move large bytes into a blob."""
    # Most records are plain JSON: what is odd shows in the text, or cannot be one.
    try:
        text = _encoder.encode(record)
    except (TypeError, ValueError):
        text = ""

    if not text or '"$' in text or _SPLIT_PAIR.search(text):
        text = _encoder.encode(plain_value(record, keep))
    return _TRICKY.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def plain_value(value: Any, keep: Keep) -> Any:
    """Return *value* as JSON can express it; undone by `exact_value`."""
    # Lists and objects are not functions of their own: one frame a level, not two.
    if isinstance(value, list | tuple):
        items = []
        for item in value:
            items.append(plain_value(item, keep))  # noqa: PERF401
        return items

    if isinstance(value, Mapping):
        odd = any(_is_odd(key) for key in value)
        pairs = []
        for key, item in value.items():
            pairs.append((key, plain_value(item, keep)))
        if not odd:
            return dict(pairs)
        return {"$map": [[_plain_text(key), item] for key, item in pairs]}

    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, bytes):
        name = keep(value)
        return {"$bytes": _base64_text(value)} if name is None else {"$blob": name}
    return value


def _is_odd(key: str) -> bool:
    """Return whether JSON, or `exact_value`, would take a key for another one."""
    return key.startswith("$") or _SPLIT_PAIR.search(key) is not None


def _plain_text(value: str) -> str | dict[str, str]:
    if not _SPLIT_PAIR.search(value):
        return value
    return {"$str": _base64_text(value.encode("utf-8", "surrogatepass"))}


def _base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def record_of(line: bytes, blob: Blobs) -> Any:
    """Return the value of a line; *blob* returns the bytes of a blob by its name.

    Raises ValueError (also for anything but JSON), RecursionError.
    """
    value = decode_json(line.decode())
    return exact_value(value, blob) if b'"$' in line else value


def exact_value(value: Any, blob: Blobs) -> Any:
    """Return the value that `plain_value` was called with; raises ValueError."""
    # One frame a level, as in `plain_value`.
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(exact_value(item, blob))  # noqa: PERF401
        return items

    if not isinstance(value, dict):
        return value

    if len(value) == 1:
        ((key, item),) = value.items()
        if key == "$map":
            return _object_of(item, blob)
        if key.startswith("$"):
            return _value_of(key, text_of(item), blob)

    out = {}
    for key, item in value.items():
        out[key] = exact_value(item, blob)
    return out


def _object_of(pairs: Any, blob: Blobs) -> dict[str, Any]:
    """Return the object of pairs; raises ValueError for anything else."""
    if not isinstance(pairs, list) or not all(_is_pair(pair) for pair in pairs):
        raise ValueError("$map is a list of pairs")

    out = {}
    for name, value in pairs:
        out[text_of(exact_value(name, blob))] = exact_value(value, blob)
    return out


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def _value_of(key: str, item: str, blob: Blobs) -> Any:
    match key:
        case "$blob":
            return blob(item)
        case "$bytes":
            return base64.b64decode(item, validate=True)
        case "$str":
            raw = base64.b64decode(item, validate=True)
            return raw.decode("utf-8", "surrogatepass")
        # A number that JSON can express is not written so.
        case "$float" if item in _FLOATS:
            return float(item)
        case _:
            raise ValueError(f"{key} is not a value")
