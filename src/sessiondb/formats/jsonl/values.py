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
import re
from collections.abc import Callable, Mapping
from typing import Any

from sessiondb.formats.kit.json import decode, text_of

_TRICKY = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
#: JSON would read this as one character.
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

Keep = Callable[[bytes], str | None]


def line_of(record: Mapping[str, Any], keep: Keep) -> str:
    """Return *record* as a line; *keep* takes large bytes and returns the name of their blob."""
    try:
        text = _encoder.encode(record)
    except (TypeError, ValueError):
        text = ""
    if not text or '"$' in text or _SPLIT_PAIR.search(text):
        text = _encoder.encode(plain(record, keep))
    return _TRICKY.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def plain(value: Any, keep: Keep) -> Any:  # noqa: PLR0911  one for each kind of value
    """Return *value* as JSON can say it; undone by `exact`."""
    if isinstance(value, str):
        if not _SPLIT_PAIR.search(value):
            return value
        return {"$str": _base64(value.encode("utf-8", "surrogatepass"))}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, bytes):
        name = keep(value)
        return {"$bytes": _base64(value)} if name is None else {"$blob": name}
    if isinstance(value, list | tuple):
        items = []
        for item in value:
            items.append(plain(item, keep))  # noqa: PERF401  one frame a level, not two
        return items
    if isinstance(value, Mapping):
        pairs = []
        odd = False
        for key, item in value.items():
            odd = odd or key.startswith("$") or _SPLIT_PAIR.search(key) is not None
            pairs.append((key, plain(item, keep)))
        return {"$map": [[plain(k, keep), v] for k, v in pairs]} if odd else dict(pairs)
    return value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def record_of(line: bytes, blob: Callable[[str], bytes]) -> Any:
    """Return what a line says; *blob* returns the bytes of a blob by its name.

    Raises ValueError (also for anything but JSON), RecursionError.
    """
    value = decode(line.decode())
    return exact(value, blob) if b'"$' in line else value


def exact(value: Any, blob: Callable[[str], bytes]) -> Any:
    """Return what `plain` was given; raises ValueError for what it cannot have made."""
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(exact(item, blob))  # noqa: PERF401  one frame a level, not two
        return items
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key.startswith("$"):
            return _meant(key, item, blob)
    found = {}
    for key, item in value.items():
        found[key] = exact(item, blob)
    return found


def _meant(key: str, item: Any, blob: Callable[[str], bytes]) -> Any:
    if key == "$map" and isinstance(item, list):
        found = {}
        for pair in item:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError("$map is a list of pairs")
            name, value = pair
            found[text_of(exact(name, blob))] = exact(value, blob)
        return found
    item = text_of(item)
    if key == "$blob":
        return blob(item)
    if key == "$bytes":
        return base64.b64decode(item, validate=True)
    if key == "$str":
        return base64.b64decode(item, validate=True).decode("utf-8", "surrogatepass")
    if key == "$float" and item in ("nan", "inf", "-inf"):
        return float(item)
    raise ValueError(f"{key} is not a value")
