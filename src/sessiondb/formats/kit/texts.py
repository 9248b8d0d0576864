"""Values that programs write as texts: times in RFC 3339, JSON in a string.

The column gets the value. The text itself stays in the record, and so in ``data``,
unless the same text can be made from the value again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sessiondb.formats.kit.fields import structure
from sessiondb.formats.kit.json import is_storable, known_time, load_text
from sessiondb.patterns import late_pattern

_HOUR_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_RFC3339 = late_pattern(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt]({_HOUR_MINUTE}:[0-5][0-9])"
    rf"(?:\.([0-9]+))?([Zz]|[+-]{_HOUR_MINUTE})"
)
_EPOCH, _MS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_escaped = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def time_of_text(value: object) -> int | None:
    """Return the Unix ms of a time in RFC 3339, None for anything else.

    Digits beyond the millisecond are dropped. A time without an offset from UTC is
    not in RFC 3339; leap seconds and the times that `known_time` refuses are None, too.
    """
    return _time_of_text(value) if isinstance(value, str) else None


# A reader needs the time of a line in several places.
@lru_cache(maxsize=64)
def _time_of_text(value: str) -> int | None:
    match = _RFC3339.fullmatch(value)
    if match is None:
        return None

    date, clock, fraction, offset = match.groups(default="")
    # Exactly three digits: fewer are filled up with zeros, more are cut off.
    text = f"{date}T{clock}.{fraction:0<3.3}{offset.upper()}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return known_time((moment - _EPOCH) // _MS)


def time_in_utc(value: object) -> int | None:
    """Return the Unix ms of a time as SQLite and Python write it, None otherwise.

    A space may separate date and clock. A time without an offset is in UTC, as
    ``CURRENT_TIMESTAMP`` of SQLite is; not for programs that write local times.
    """
    if not isinstance(value, str):
        return None

    text = value.replace(" ", "T", 1)
    time = time_of_text(text)
    return time_of_text(f"{text}Z") if time is None else time


def text_of_time(ms: int) -> str:
    """Return a time in Unix ms as JavaScript writes it: in UTC, with milliseconds."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"


def take_json(record: dict[str, Any], key: str) -> Any:
    """Return the object or list that the text at *key* holds as JSON, or that text.

    The text leaves the record, unless it is JSON that `compact_json` writes
    differently. A value that is not a text stays in the record, and None is returned.
    The limits are those of `load_text` and `is_storable`; a number in a text is a text.
    """
    text = record.get(key)
    if not isinstance(text, str):
        return None

    value, again = _value_and_json(text)
    if again == text:
        del record[key]
    return value


def compact_json(value: Any) -> str:
    """Return *value* as JSON without spaces; raises ValueError and TypeError."""
    return _compact.encode(value)


def json_line(value: Any) -> str:
    """Return *value* as JSON for a line of a log; lone surrogates are escaped.

    A log of UTF-8 cannot hold them, and a program would refuse the line. Raises
    ValueError and TypeError.
    """
    text = compact_json(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _escaped.encode(value)
    return text


def _value_and_json(text: str) -> tuple[Any, str]:
    """Return what *text* holds and how that is written, or the text for both."""
    try:
        value = load_text(text)
        if structure(value) and is_storable(value):
            return value, compact_json(value)
    # Also for a number like 1e999, which is read as infinity and cannot be written.
    except ValueError:
        pass
    return text, text
