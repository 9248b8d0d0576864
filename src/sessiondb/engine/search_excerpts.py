"""The text around what was searched for, with marks."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from sessiondb.engine.base import SNIPPET_MARKS
from sessiondb.engine.search_comparison import ACCENTS, fold, loaded

#: The characters of an excerpt before the first match, and in all.
_BEFORE, EXCERPT_LENGTH = 40, 120


def passage(needles: str, *columns: str | None) -> str:
    """Return the text around the first of *needles*, a JSON list, with marks."""
    pattern = _pattern_of_needles(needles)
    texts = [unicodedata.normalize("NFD", column) for column in columns if column]
    for text in texts:
        first = pattern.search(text)
        if first is not None:
            return unicodedata.normalize("NFC", marked(text, first.start(), pattern))
    return unicodedata.normalize("NFC", texts[0][:EXCERPT_LENGTH]) if texts else ""


@lru_cache(maxsize=8)
def _pattern_of_needles(needles: str) -> re.Pattern[str]:
    alternatives = []
    for needle in sorted(loaded(needles), key=len, reverse=True):
        letters = unicodedata.normalize("NFD", fold(needle))
        accents = f"{ACCENTS.pattern[:-1]}*"
        alternatives.append("".join(re.escape(letter) + accents for letter in letters))
    return re.compile("|".join(alternatives), re.IGNORECASE)


def marked(text: str, first: int, pattern: re.Pattern[str]) -> str:
    """Return *text* around its character *first*, with marks where *pattern* is."""
    begin = max(0, first - _BEFORE)
    end = begin + EXCERPT_LENGTH
    opening, closing = SNIPPET_MARKS
    # Not a template: `re` fills it in by four calls for each match.
    shown = pattern.sub(lambda found: f"{opening}{found[0]}{closing}", text[begin:end])
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
