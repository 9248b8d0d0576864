"""The text around what was searched for, with marks."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

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
    longest_first = sorted(loaded(needles), key=len, reverse=True)
    alternatives = [_with_accents(fold(needle)) for needle in longest_first]
    return re.compile("|".join(alternatives), re.IGNORECASE)


def excerpt(comparison: str, *columns: str | None) -> str:
    """Return the text around the first words that *comparison* is about, with marks.

    They are whole words, or else they are anywhere; the beginning of a text if they are
    nowhere.
    """
    texts = [unicodedata.normalize("NFD", column) for column in columns if column]
    for pattern in _patterns_of(comparison):
        for text in texts:
            first = pattern.search(text)
            if first is not None:
                shown = marked(text, first.start(), pattern)
                return unicodedata.normalize("NFC", shown)
    return unicodedata.normalize("NFC", texts[0][:EXCERPT_LENGTH]) if texts else ""


@lru_cache(maxsize=8)
def _patterns_of(comparison: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of what must occur as words, and of that inside of words."""
    as_words, anywhere = [], []
    for kind, text, is_prefix in sorted(
        _required(loaded(comparison)), key=lambda term: len(term[1]), reverse=True
    ):
        spaces = r"[\W_]+" if kind == "words" else " "
        letters = spaces.join(_with_accents(word) for word in text.split(" "))
        anywhere.append(letters)
        if kind == "inside":
            as_words.append(letters)
            continue
        begin = r"(?<![^\W_])" if text[:1].isalnum() else ""
        end = r"(?![^\W_])" if text[-1:].isalnum() and not is_prefix else ""
        as_words.append(f"{begin}{letters}{end}")
    return (
        re.compile("|".join(as_words), re.IGNORECASE),
        re.compile("|".join(anywhere), re.IGNORECASE),
    )


def _required(term: Any) -> list[Any]:
    """Return the words and texts of a term, without those that must not occur."""
    match term:
        case ["either" | "all", terms, *_]:
            return [text for each in terms for text in _required(each)]
    return [term]


def _with_accents(text: str) -> str:
    accents = f"{ACCENTS.pattern[:-1]}*"
    letters = unicodedata.normalize("NFD", text)
    return "".join(re.escape(letter) + accents for letter in letters)


def marked(text: str, first: int, pattern: re.Pattern[str]) -> str:
    """Return *text* around its character *first*, with marks where *pattern* is."""
    begin = max(0, first - _BEFORE)
    end = begin + EXCERPT_LENGTH
    opening, closing = SNIPPET_MARKS
    # Not a template: `re` fills it in by four calls for each match.
    shown = pattern.sub(lambda found: f"{opening}{found[0]}{closing}", text[begin:end])
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
