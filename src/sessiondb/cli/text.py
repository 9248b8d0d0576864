"""Text for a terminal: cells of a table, rows of a screen, times and amounts.

Every string from a database passes `visible`, `one_line` or `cell` before it is
printed as text; `sessiondb.words` says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any

from sessiondb import words
from sessiondb.clock import now_ms
from sessiondb.errors import shortened
from sessiondb.words import (
    TAB,
    TRICKY,
    count,
    escape,
    moment,
    one_line,
    size,
    visible,
)

if TYPE_CHECKING:
    from sessiondb.model import Session

__all__ = [
    "TAB",
    "ago",
    "cell",
    "clock",
    "cost_words",
    "count",
    "cut",
    "escape_json",
    "iso",
    "money",
    "one_line",
    "pad",
    "rough",
    "rounded",
    "short_id",
    "shortened",
    "size",
    "title_of",
    "visible",
    "wrap",
]

# Patterns are compiled when they are first used: `--help` uses none.
_CELL = f"[\x00-\x1f\\\\{TRICKY}]"
_JSON = f"[{TRICKY}]"
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
#: Ages up to (ms), the length of their unit, its name; older than all is a date.
_AGES = (
    (MINUTE, MINUTE, "now"),
    (HOUR, MINUTE, "min"),
    (DAY, HOUR, "h"),
    (14 * DAY, DAY, "d"),
)


def cell(value: Any) -> str:
    r"""Return *value* for a tab-separated line; None is empty.

    Tab, newline, carriage return, backslash and NUL are written ``\t \n \r \\ \0``,
    other controls ``\x1b``, so that a line is a record and nothing is lost.
    """
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    return re.sub(_CELL, _cell_escape, str(value))


def _cell_escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or escape(match)


def escape_json(text: str) -> str:
    r"""Return JSON text; what is unsafe on a terminal or in UTF-8 as ``\u`` escapes."""
    return re.sub(_JSON, lambda match: f"\\u{ord(match[0]):04x}", text)


def iso(ms: int | None) -> str:
    """Return Unix ms as UTC, ``2026-11-01T12:30:00.250Z``; unknown is empty."""
    if ms is None:
        return ""
    return moment(ms, f"%Y-%m-%dT%H:%M:%S.{ms % 1000:03d}Z", UTC)


def clock(ms: int | None) -> str:
    """Return Unix ms as local time, ``2026-11-01 12:30:00``; unknown is empty."""
    return "" if ms is None else moment(ms, zone=None)


def ago(ms: int, now: int | None = None) -> str:
    """Return the age of Unix *ms*: ``5 min``, ``3 h``, ``4 d``, else the date."""
    passed = (now_ms() if now is None else now) - ms
    for limit, unit, name in _AGES:
        if 0 <= passed < limit:
            return f"{passed // unit} {name}".removeprefix("0 ")
    return moment(ms, "%Y-%m-%d", None)


def last_used(ms: int, now: int | None = None) -> str:
    """Return Unix ms for a list: ``3 h`` within a day, ``Fri 16:55``, ``20 Nov 16:55``.

    The sessions of one afternoon are told apart by the hour. After half a year it is
    the date.
    """
    passed = (now_ms() if now is None else now) - ms
    if DAY <= passed < 6 * DAY:
        return moment(ms, "%a %H:%M", None)
    if DAY <= passed < 180 * DAY:
        return moment(ms, "%d %b %H:%M", None)
    return ago(ms, now) if 0 <= passed < DAY else moment(ms, "%Y-%m-%d", None)


def money(usd: float | None) -> str:
    """Return USD for a narrow column, in cents; unknown is ``–``, never ``$0.00``."""
    if usd is None:
        return "–"
    return "<$0.01" if 0 < usd < 0.005 else f"${usd:,.2f}"


def rounded(usd: float | None) -> float | None:
    """Return USD without the noise of a binary sum: a token costs 1e-8 or more."""
    return None if usd is None else round(usd, 9)


def cost_words(stated: float | None, estimated: float | None, unpriced: int) -> str:
    """Return what was spent, as `words.cost_words` does, with rounded numbers."""
    return words.cost_words(stated, estimated, unpriced, amount=money, number=rough)


def rough(number: int) -> str:
    """Return a number in five columns at most: ``812``, ``12.3k``, ``3.30M``."""
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            amount = number / unit
            digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
            return f"{amount:.{digits}f}{name}"
    return str(number)


def short_id(session_id: str) -> str:
    """Return the end of an id: a REF that is short to type."""
    return session_id[-6:].lower()


def title_of(session: Session) -> str:
    """Return the title of a session on one line; ``–`` without one."""
    return one_line(session.title or "") or "–"


def cut(text: str, width: int) -> str:
    """Return *text* in at most *width* columns of a terminal; ``…`` marks a cut."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield a line in rows of at most *width* columns, broken at spaces if possible."""
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

        # `chop_cells` returns nothing for a text without any width.
        *full, row = chop_cells(start, width) or [start]
        yield from full
    yield row


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return *text* filled with spaces to *width* columns of a terminal."""
    from rich.cells import cell_len

    fill = " " * (width - cell_len(text))
    return fill + text if right else text + fill
