"""MessagePack of other programs, decoded to plain data and nothing else.

The library reserves memory for as many items as a value says it has, at each level, so
that `_check` looks at all lengths before it. Anything that JSON has no form for is a
map with ``$`` here: ``$ext``, the type of an extension beside its ``data``, or
``$map``, the pairs of a map with keys that are not all texts, or not all different.

The encoding: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgpack

from sessiondb.formats.kit.json import MAX_DEPTH, OddRecordError

#: The type of extension that MessagePack itself has: a time.
_TIME = -1
_NEVER = 0xC1
#: First bytes of values whose length or count follows, and the bytes of that.
_SIZED = {
    0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4,
    0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4,
}  # fmt: skip
#: First bytes of values of a fixed size, and the bytes after the first.
_FIXED = {
    0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4,
    0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17,
    **{0xA0 + size: size for size in range(32)},
}  # fmt: skip
#: First bytes of short maps and arrays, and the number of their items.
_FEW_ITEMS = {0x80 + n: 2 * n for n in range(16)} | {0x90 + n: n for n in range(16)}
_EXTENSIONS = range(0xC7, 0xCA)
#: How many items an array or map has for each that it counts.
_ITEMS = {0xDC: 1, 0xDD: 1, 0xDE: 2, 0xDF: 2}


def decode(raw: bytes) -> Any:
    """Return the value that *raw* holds, which is all of it; raises `OddRecordError`.

    Memory is bounded by the size of *raw*.
    """
    _check(raw)
    try:
        value = msgpack.unpackb(
            raw,
            strict_map_key=False,
            object_pairs_hook=_map,
            list_hook=_list,
            ext_hook=_extension,
        )
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise _odd(str(error)) from None
    return _item(value)


def _odd(reason: str) -> OddRecordError:
    return OddRecordError(f"is not MessagePack ({reason})")


def _check(raw: bytes) -> None:
    """Raise `OddRecordError` unless all lengths in *raw* add up."""
    place, open_, owed = 0, [1], 1
    while open_:
        if owed > len(raw) - place:
            raise _odd("it ends early")
        place, items = _next(raw, place)
        # Each value that is owed has a byte at least: a count cannot be too large.
        owed += items - 1

        open_[-1] -= 1
        if items:
            open_.append(items)
        while open_ and not open_[-1]:
            open_.pop()
        if len(open_) > MAX_DEPTH:
            raise OddRecordError(f"is nested deeper than {MAX_DEPTH}")

    if place < len(raw):
        raise _odd("something follows it")
    if place > len(raw):
        raise _odd("it ends early")


def _next(raw: bytes, place: int) -> tuple[int, int]:
    """Return where the value at *place* ends, or its items begin, and their number."""
    head = raw[place]
    if head == _NEVER:
        raise _odd("it has a byte that is never used")
    if head not in _SIZED:
        return place + 1 + _FIXED.get(head, 0), _FEW_ITEMS.get(head, 0)

    begin = place + 1 + _SIZED[head]
    size = int.from_bytes(raw[place + 1 : begin])
    if head in _ITEMS:
        return begin, size * _ITEMS[head]
    # The length of an extension is without its type, a byte.
    return begin + size + (head in _EXTENSIONS), 0


def _map(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    items = list(map(_list, pairs))
    # A key may be a list, which a dict cannot have.
    record = dict(items) if {type(key) for key, _ in items} <= {str} else {}
    return record if len(record) == len(items) else {"$map": items}


def _list(items: Iterable[Any]) -> list[Any]:
    return list(map(_item, items))


def _extension(code: int, data: bytes) -> dict[str, Any]:
    return {"$ext": code, "data": data}


def _item(value: Any) -> Any:
    """Return *value*, as an extension if it is a time."""
    if isinstance(value, msgpack.Timestamp):
        return _extension(_TIME, value.to_bytes())
    return value
