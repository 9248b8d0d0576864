r"""Values as words for people, the same in every export and on every terminal.

A transcript is hostile input: it can hold sequences that recolour, retitle or
rewrite a terminal, and marks that reorder what is read. Every string from a
database passes `visible` before it is shown as text. A leaf of the package: it
imports nothing of it, because even ``--help`` pays for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache
from itertools import dropwhile
from operator import not_
from typing import TypeVar

T = TypeVar("T")

#: Besides C0, terminals and browsers act on these: C1 controls, marks of direction,
#: separators that break lines, and lone surrogates. A fragment of a regex class.
TRICKY = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Patterns are compiled when they are first used: `--help` uses none.
_CONTROL = f"[\x00-\x08\x0b-\x1f{TRICKY}]"
#: Columns of a tab: text is indented by us, so a terminal's own stops do not fit.
TAB = 4
#: Characters of a date and time without its zone.
_SECONDS = 19
_UNITS = ("kB", "MB", "GB", "TB")
_SPANS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
#: The five token counts, and whether a zero is shown.
_TOKENS = (
    ("in", True),
    ("out", True),
    ("reasoning", False),
    ("from cache", False),
    ("to cache", False),
)


def visible(text: str) -> str:
    r"""Return *text* with controls shown as ``\x1b`` or ``\u202e``.

    Tabs and newlines stay; a carriage return before a newline is dropped.
    """
    # Most texts are lines without any of these, which is faster to find out.
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    return _control_pattern().sub(escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return *text* as one visible line: runs of white space are one space."""
    line = " ".join(text.split())
    return line if line.isprintable() else visible(line)


@cache
def _control_pattern() -> re.Pattern[str]:
    # `re.sub` looks its pattern up each time: a third of what it costs here.
    return re.compile(_CONTROL)


def escape(match: re.Match[str]) -> str:
    r"""Return a matched character as ``\x1b`` or ``\u202e``."""
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def excerpt(text: str, width: int = 120) -> str:
    """Return *text* as one line of at most *width* characters, not made visible."""
    # So many words, of a character or more, are wider than the excerpt.
    line = " ".join(text[: width * 8].split(None, width // 2 + 1))
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def moment(ms: int, form: str = "", zone: tzinfo | None = UTC) -> str:
    """Return Unix ms as a date and time in *zone*; None is the local one.

    Without a *form* of strftime it is ``2026-11-01 12:30:00``. A time outside the
    calendar stays a number.
    """
    try:
        time = datetime.fromtimestamp(ms // 1000, zone)
        # `strftime` takes three times as long, and a long session has many times.
        return time.strftime(form) if form else str(time)[:_SECONDS]
    except (ValueError, OverflowError, OSError):
        return str(ms)


def duration(ms: int) -> str:
    """Return ``0.4 s``, ``35 s``, ``2 min 5 s``, ``3 h 20 min``, ``2 d 4 h``."""
    if ms < 9950:
        return f"{max(ms, 0) / 1000:.1f} s"

    left, words = round(ms / 1000), []
    for unit, seconds in _SPANS:
        number, left = divmod(left, seconds)
        words.append(f"{number} {unit}" if number else "")

    # The largest unit and the one below it; zeros are left out.
    words = list(dropwhile(not_, words))
    return " ".join(filter(None, words[:2]))


def money(usd: float | None) -> str:
    """Return USD; small amounts keep up to four digits, unknown is never 0."""
    if usd is None:
        return "unknown"
    if 0 < usd < 0.00005:
        return "<$0.0001"

    digits = 4 if abs(usd) < 1 else 2
    dollars, cents = f"{usd:,.{digits}f}".split(".")
    return f"${dollars}.{cents[:2]}{cents[2:].rstrip('0')}"


def known(value: T | None, words: Callable[[T], str]) -> str:
    """Return the *words* for a value, but nothing for one that is None."""
    return "" if value is None else words(value)


def price(usd: float | None) -> str:
    """Return `money`, but nothing if the amount is unknown."""
    return known(usd, money)


def cost_words(
    stated: float | None,
    estimated: float | None,
    unpriced: int,
    *,
    amount: Callable[[float], str] = money,
    number: Callable[[int], str] = "{:,}".format,
) -> str:
    """Return ``≥ $1.29 ($0.14 estimated) · 3,300 tokens without a price``.

    *unpriced* tokens have neither a cost nor a price: the sum, in USD, is a lower
    bound. Without any of the three it is empty. *amount* and *number* write a number.
    """
    facts = []
    if stated is not None or estimated is not None:
        bound = "≥ " if unpriced else ""
        if estimated is None:
            apart = ""
        elif stated is None:
            apart = " estimated"
        else:
            apart = f" ({amount(estimated)} estimated)"
        facts.append(f"{bound}{amount((stated or 0.0) + (estimated or 0.0))}{apart}")
    if unpriced:
        facts.append(f"{number(unpriced)} tokens without a price")
    return " · ".join(facts)


def changed(added: int | None, removed: int | None) -> str:
    """Return numbers of lines as ``+3 −1``; empty if neither is known."""
    if added is removed is None:
        return ""
    return f"+{added or 0:,} −{removed or 0:,}"


def size(number: int) -> str:
    """Return a number of bytes as ``812 B``, ``1.2 MB``."""
    if number < 1000:
        return f"{number} B"

    amount, units = number / 1000, list(_UNITS)
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.1f} {units[0]}"


def count(number: int, word: str) -> str:
    """Return ``1 prompt``, ``2 prompts``."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {word}{plural}"


def tokens(counts: tuple[int | None, ...]) -> str:
    """Return the five counts as words; unknown ones and needless zeros are left out."""
    return ", ".join(
        f"{number:,} {name}"
        for number, (name, zero) in zip(counts, _TOKENS, strict=True)
        if number or (number == 0 and zero)
    )


def left_words(messages: int, prompts: int, place: str) -> str:
    """Return ``3 messages of branches (no prompt)``: what is left out, in a *place*.

    Most programs record more beside a conversation than what was said there.
    """
    return f"{count(messages, 'message')} {place}{'' if prompts else ' (no prompt)'}"
