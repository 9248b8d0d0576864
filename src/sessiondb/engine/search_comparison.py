"""The comparison of texts with a query, for what an index of words cannot know.

An index knows words: for it ``foo-bar`` and ``foo, bar`` are the same two. A text with
symbols, a part of a word, and what several parts of a message have together is compared
with the texts themselves, without regard to case and accents. The query is JSON, so
that it is a parameter of statements.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.engine.query import All, Either, Term, Text
from sessiondb.engine.search_words import MARK, is_beside
from sessiondb.patterns import late_pattern

#: Marks that are no part of a letter.
ACCENTS = late_pattern("[\u0300-\u036f]+")


class PartTexts(NamedTuple):
    """What a part of a message has, folded."""

    place: int
    words: str
    texts: Sequence[str]


def comparison_of(term: Term) -> str:
    """Return the value that one text is compared with, in `is_meant`."""
    return json.dumps(_as_json(term))


def spread_comparison_of(term: Term, cover: Term | None = None) -> str:
    """Return the value that the parts of a message are compared with.

    See `has_together`, which has a use for *cover*.
    """
    return json.dumps([_as_json(term), None if cover is None else _as_json(cover)])


def _as_json(term: Term) -> Any:
    """Return a term as JSON values, its texts as they are compared."""
    match term:
        case Text(text, is_prefix):
            kind = "literal" if term.is_literal else "words"
            if term.is_substring or is_beside(text):
                kind = "inside"
            return [kind, fold(text), is_prefix]
        case Either(terms):
            return ["either", [_as_json(each) for each in terms]]
        case All(terms, excluded):
            return [
                "all",
                [_as_json(each) for each in terms],
                [_as_json(each) for each in excluded],
            ]


@lru_cache(maxsize=8)
def loaded(comparison: str) -> Any:
    """Return a comparison as JSON values."""
    return json.loads(comparison)


def is_meant(comparison: str, words: str | None, *columns: str | None) -> bool:
    """Return whether the text in *columns* is what *comparison* means.

    *words* are those beside it.
    """
    kind, *details = term = loaded(comparison)
    if kind == "inside" and any(details[0] in column for column in columns if column):
        # As it was typed: the usual case, at a fifth of the cost.
        return True

    texts = [fold(column) for column in columns if column]
    return _occurs(term, texts, fold(words or ""))


def has_together(wanted: str, place: int, parts: Sequence[PartTexts]) -> bool:
    """Return whether the parts of a message have together what a query means.

    *wanted* is a `spread_comparison_of`, *place* that of the part that is asked for.
    With a cover it is the newest part with that, of a message no part of which has all
    of it alone.
    """
    term, cover = loaded(wanted)
    words = " ".join([part.words for part in parts if part.words])
    if not _occurs(term, [text for part in parts for text in part.texts], words):
        return False
    if cover is None:
        return True

    newest = 0
    for part in parts:
        if _occurs(term, part.texts, part.words):
            return False
        if part.place > newest and _occurs(cover, part.texts, part.words):
            newest = part.place
    return place == newest


def _occurs(term: Any, texts: Sequence[str], words: str) -> bool:
    """Return whether a term is true of *texts* together; *words* are beside them."""
    match term:
        case ["inside", text, _]:
            return any(each in stored for each in _spellings(text) for stored in texts)
        case ["literal", text, is_prefix]:
            return any(
                _has_literal(each, is_prefix, texts) for each in _spellings(text)
            )
        case ["words", text, is_prefix]:
            return _has_words(text, is_prefix, texts) or (
                " " not in text and _has_beside(text, is_prefix, words)
            )
        case ["either", terms]:
            return any(_occurs(each, texts, words) for each in terms)
        case ["all", terms, excluded]:
            return all(_occurs(each, texts, words) for each in terms) and not any(
                _occurs(each, texts, words) for each in excluded
            )
    raise ValueError(f"not a term: {term!r}")


def _spellings(literal: str) -> list[str]:
    """Return a text as it may be stored."""
    # The arguments of calls are indexed as JSON, in which a backslash is written twice;
    # the view of the index has a space in place of the second one.
    as_json = literal.replace("\\", "\\ ")
    return [literal] if as_json == literal else [literal, as_json]


def _has_literal(literal: str, is_prefix: bool, texts: Sequence[str]) -> bool:
    """Return whether *literal* is in a text, from the beginning to the end of words."""
    for text in texts:
        if literal in text and _bordered(literal, is_prefix).search(text):
            return True
    return False


def _has_words(phrase: str, is_prefix: bool, texts: Sequence[str]) -> bool:
    """Return whether words are in a row in a text, the last one perhaps longer."""
    first = phrase.split(" ", 1)[0]
    for text in texts:
        # Nearly every text is decided by this, in C.
        if first in text and _bordered(phrase, is_prefix, r"[\W_]+").search(text):
            return True
    return False


def _has_beside(word: str, is_prefix: bool, words: str) -> bool:
    end = "" if is_prefix else " "
    return f" {MARK}{word}{end}" in f" {words} "


@lru_cache(maxsize=64)
def _bordered(text: str, is_prefix: bool, space: str = " ") -> re.Pattern[str]:
    """Return the pattern of a text that begins and ends with a word, if with letters.

    The text comes first, so that it is scanned for in C.
    """
    first, *others = text.split(" ")
    pattern = re.escape(first)
    if text[0].isalnum():
        pattern += rf"(?<![^\W_]{pattern})"
    pattern = space.join([pattern, *map(re.escape, others)])
    if text[-1].isalnum() and not is_prefix:
        pattern += r"(?![^\W_])"
    return re.compile(pattern)


def fold(text: str) -> str:
    """Return *text* without case and accents; signs of other scripts are letters."""
    if text.isascii():
        return text.lower()
    letters = ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", letters)
