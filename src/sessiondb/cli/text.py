"""Values as text for people: harmless on a terminal, and short.

A transcript is hostile input: it can hold sequences that recolour, retitle or
rewrite a terminal, and marks that reorder what is read. Every string from a
database passes `visible`, `one_line` or `cell` before it is printed as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sessiondb.clock import now_ms

#: C1 controls, marks of direction, separators that break lines, and lone surrogates.
_TRICKY = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Patterns are compiled when they are first used: `--help` uses none.
_CONTROL = f"[\x00-\x08\x0b-\x1f{_TRICKY}]"
_CELL = f"[\x00-\x1f\\\\{_TRICKY}]"
_JSON = f"[{_TRICKY}]"
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
#: Characters of a line on stderr.
MAX_LINE = 2_000
#: Columns of a tab on a terminal, if the text before it may be ours.
TAB = 4
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def _code(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def visible(text: str) -> str:
    r"""Return *text* with controls shown as ``\x1b`` or ``\u202e``; tabs and newlines stay."""
    return re.sub(_CONTROL, lambda match: _code(match[0]), text.replace("\r\n", "\n"))


def shortened(text: str) -> str:
    """Return *text* without its middle, if it is longer than `MAX_LINE`."""
    return (
        text if len(text) <= MAX_LINE else f"{text[: MAX_LINE - 300]} … {text[-200:]}"
    )


def one_line(text: str) -> str:
    """Return *text* as a single visible line: runs of white space are one space."""
    return visible(" ".join(text.split()))


def cell(value: Any) -> str:
    r"""Return *value* for a tab-separated line; None is empty.

    Tab, newline, carriage return, backslash and NUL are written ``\t \n \r \\ \0``,
    other controls ``\x1b``, so that a line is a record and nothing is lost.
    """
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    return re.sub(
        _CELL, lambda match: _ESCAPES.get(match[0]) or _code(match[0]), str(value)
    )


def escape_json(text: str) -> str:
    r"""Return JSON text with what a terminal or UTF-8 would stumble over as ``\u`` escapes."""
    return re.sub(_JSON, lambda match: f"\\u{ord(match[0]):04x}", text)


def iso(ms: int | None) -> str:
    """Return Unix ms as UTC, ``2026-11-01T12:30:00.250Z``; unknown is empty."""
    return (
        _at(ms, "%Y-%m-%dT%H:%M:%S", UTC, f".{ms % 1000:03d}Z")
        if ms is not None
        else ""
    )


def clock(ms: int | None) -> str:
    """Return Unix ms as local time, ``2026-11-01 12:30:00``; unknown is empty."""
    return _at(ms, "%Y-%m-%d %H:%M:%S") if ms is not None else ""


def _at(ms: int, form: str, zone: Any = None, tail: str = "") -> str:
    try:
        return datetime.fromtimestamp(ms // 1000, zone).strftime(form) + tail
    except (ValueError, OverflowError, OSError):
        return str(ms)


def ago(ms: int, now: int | None = None) -> str:
    """Return how long ago Unix *ms* was: ``5 min``, ``3 h``, ``4 d``, else the date."""
    passed = (now_ms() if now is None else now) - ms
    if 0 <= passed < MINUTE:
        return "now"
    if 0 <= passed < HOUR:
        return f"{passed // MINUTE} min"
    if 0 <= passed < DAY:
        return f"{passed // HOUR} h"
    if 0 <= passed < 14 * DAY:
        return f"{passed // DAY} d"
    return _at(ms, "%Y-%m-%d")


def money(usd: float | None) -> str:
    """Return USD as people read it; unknown is ``–``, never ``$0.00``."""
    if usd is None:
        return "–"
    return "<$0.01" if 0 < usd < 0.005 else f"${usd:,.2f}"


def size(count: int) -> str:
    """Return a number of bytes as ``812 B``, ``1.2 MB``."""
    amount, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.0f} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def count(number: int, word: str) -> str:
    """Return ``1 session``, ``2 sessions``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def short_id(session_id: str) -> str:
    """Return the end of an id: a REF that is short to type."""
    return session_id[-6:].lower()


def cut(text: str, width: int) -> str:
    """Return *text* in at most *width* columns of a terminal, ``…`` standing for what is cut."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield a line in rows of at most *width* columns, broken between words where it can be."""
    from rich.cells import cell_len, chop_cells

    text = text.expandtabs(TAB)
    if cell_len(text) <= width:
        yield text
        return
    row = ""
    for word in re.findall(r"\s*\S+", text):
        start = row + word
        if row and cell_len(row) + cell_len(word) > width:
            yield row
            start = word.lstrip()
        # Nothing is chopped where all of it has no width.
        *full, row = chop_cells(start, width) or [start]
        yield from full
    yield row


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return *text* filled with spaces to *width* columns of a terminal."""
    from rich.cells import cell_len

    fill = " " * (width - cell_len(text))
    return fill + text if right else text + fill
