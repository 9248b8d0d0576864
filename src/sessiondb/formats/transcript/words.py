"""Values as words: the same everywhere and for ever, so times are in UTC and nothing is "ago"."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: C0 and C1 controls, marks of direction, separators that break lines, lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return *text* with what hides or reorders shown, ``\x1b`` or ``\u202e``."""
    return _CONTROL.sub(_code, text.replace("\r\n", "\n"))


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str, width: int = 120) -> str:
    """Return *text* as one line of at most *width* characters."""
    line = " ".join(text[: width * 8].split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def moment(ms: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return Unix ms as UTC, without its name; what no calendar has stays a number."""
    try:
        return datetime.fromtimestamp(ms // 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(ms)


def duration(ms: int) -> str:
    """Return ``0.4 s``, ``35 s``, ``2 min 5 s``, ``3 h 20 min``, ``2 d 4 h``."""
    if ms < 9950:
        return f"{max(ms, 0) / 1000:.1f} s"
    left, units = round(ms / 1000), [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    found = []
    for unit, seconds in units:
        number, left = divmod(left, seconds)
        found.append((number, unit))
    while not found[0][0]:
        found.pop(0)
    return " ".join(f"{number} {unit}" for number, unit in found[:2] if number)


def money(usd: float | None) -> str:
    """Return USD; small amounts keep up to four digits, and unknown is never 0."""
    if usd is None:
        return "unknown"
    if 0 < usd < 0.00005:
        return "<$0.0001"
    cents, rest = f"{usd:,.{4 if abs(usd) < 1 else 2}f}".split(".")
    return f"${cents}.{rest[:2]}{rest[2:].rstrip('0')}"


def size(number: int) -> str:
    """Return a number of bytes as ``812 B``, ``1.2 MB``."""
    if number < 1000:
        return f"{number} B"
    amount = number / 1000
    return f"{amount:,.1f} kB" if amount < 999.95 else f"{amount / 1000:,.1f} MB"


def count(number: int, word: str) -> str:
    """Return ``1 prompt``, ``2 prompts``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def tokens(counts: tuple[int | None, ...]) -> str:
    """Return the five counts as words, without those that are not known or need no saying."""
    names = ("in", "out", "reasoning", "from cache", "to cache")
    known = [
        f"{number:,} {name}"
        for number, name in zip(counts, names, strict=True)
        if number or (number == 0 and name in ("in", "out"))
    ]
    return ", ".join(known)
