"""The ids of OpenCode as it makes them, and their order."""

from __future__ import annotations

import hashlib
from typing import Any

from sessiondb.patterns import late_pattern

#: The name of the source.
SOURCE = "opencode"

#: Ends the id of a summary in 1.x; without it that of the prompt that requests it.
SUMMARY = "s"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CLOCK = late_pattern(r"[a-z]+_([0-9a-f]{12})")
_HALF = 1 << 47


def mint_id(prefix: str, time: int, step: int, *facts: Any) -> str:
    """Return an id as OpenCode makes them: 48 bits of time, and 14 characters.

    The time is ``ms * 4096 + step``. OpenCode's characters are random; these are a
    hash of *facts*.
    """
    text = "\0".join(str(fact) for fact in facts).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(text).digest())
    tail = ""
    for _ in range(14):
        number, digit = divmod(number, 62)
        tail += _BASE62[digit]

    clock = ((time << 12) + (step & 4095)) & (1 << 48) - 1
    return f"{prefix}{clock:012x}{tail}"


def in_creation_order(ids: list[str]) -> list[str]:
    """Put sorted ids into the order in which they were made.

    An id begins with 48 bits of ``ms * 4096``, which start again at zero every
    795 days (last on 2026-08-14): the ids before that moment come first.
    """
    if len(ids) < 2:
        return ids
    first, last = _clock_of(ids[0]), _clock_of(ids[-1])
    if first < 0 or last - first < _HALF:
        return ids

    for index, name in enumerate(ids):
        if _clock_of(name) >= _HALF:
            return ids[index:] + ids[:index]
    return ids


def _clock_of(name: str) -> int:
    """Return the clock of an id, -1 for an id of another make."""
    match = _CLOCK.match(name)
    return int(match[1], 16) if match else -1
