"""A query as FTS5 takes it, and the SQL functions of searches.

FTS5 splits a text at everything that is not a letter or a digit, so for it ``foo-bar``
is two words in a row, and ``foo, bar`` has the same two: see `search_comparison`.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from functools import lru_cache

from sessiondb.engine.query import SearchQuery, Term
from sessiondb.engine.search_candidates import (
    Candidates,
    Every,
    Some,
    Words,
    candidates_of,
    is_known_word,
    read_query,
)
from sessiondb.engine.search_comparison import (
    PartTexts,
    fold,
    has_together,
    is_meant,
)
from sessiondb.engine.search_excerpts import EXCERPT_LENGTH, marked, passage
from sessiondb.engine.search_words import MARK, RUN
from sessiondb.patterns import late_pattern

#: The SQL functions `is_meant`, `excerpt`, `excerpt_beside`, `passage` and
#: `is_meant_together`.
IS_MEANT, EXCERPT = "sessiondb_is_meant", "sessiondb_excerpt"
EXCERPT_BESIDE = "sessiondb_excerpt_beside"
PASSAGE, TOGETHER = "sessiondb_passage", "sessiondb_together"
#: Between two parts, and between two texts of one. A text that has them is split there.
PART_BORDER, TEXT_BORDER = "\x1e", "\x1f"
#: The words of a query for FTS5 that are beside a text.
_BESIDE = late_pattern(f'"{MARK}([^"]+)"')


def search_query(query: str) -> SearchQuery:
    """Return what `query` searches for: see `read_query`."""
    return read_query(query, _match_of, is_known_word)


def _match_of(term: Term) -> str | None:
    """Return FTS5's query for the candidates of *term*; None if that is everything."""
    candidates = candidates_of(term, is_known_word)
    return None if candidates is None else _as_fts5(candidates)


def _as_fts5(candidates: Candidates) -> str:
    match candidates:
        case Words(text, is_prefix, is_in_text, is_in_words):
            star = "*" if is_prefix else ""
            if not is_in_words:
                return f'"{text}"{star}'
            if not is_in_text:
                return f'"{MARK}{text}"{star}'
            return f'("{text}"{star} OR "{MARK}{text}"{star})'
        case Some(terms):
            return f"({' OR '.join(map(_as_fts5, terms))})"
        case Every(terms, excluded):
            every = f"({' AND '.join(map(_as_fts5, terms))})"
            if not excluded:
                return every
            return f"({every} NOT ({' OR '.join(map(_as_fts5, excluded))}))"


def register(connection: sqlite3.Connection) -> None:
    """Give *connection* the SQL functions of queries."""
    connection.create_function(IS_MEANT, -1, is_meant, deterministic=True)
    connection.create_function(EXCERPT, -1, excerpt, deterministic=True)
    connection.create_function(EXCERPT_BESIDE, -1, excerpt_beside, deterministic=True)
    connection.create_function(PASSAGE, -1, passage, deterministic=True)
    connection.create_function(TOGETHER, 4, is_meant_together, deterministic=True)


def is_meant_together(wanted: str, place: int, places: str, parts: str) -> bool:
    """Return whether the parts of a message have together what a query means.

    *wanted* is the value of `engine.query.Cover.spread`, or of ``:together``, *place*
    the number of the part that is asked for. *places* are the numbers of all parts,
    with commas; *parts* has their words, text, input and title, as SQL joins them with
    `PART_BORDER` and `TEXT_BORDER`.
    """
    stored = []
    folded = fold(parts).split(PART_BORDER)
    for number, part in zip(places.split(","), folded, strict=False):
        words, *texts = part.split(TEXT_BORDER)
        stored.append(PartTexts(int(number), words, texts))
    return has_together(wanted, place, stored)


def excerpt(match: str, snippet: str | None, *columns: str | None) -> str | None:
    """Return the *snippet* that FTS5 made of a match, never one of the words beside it.

    In its place is the first of *columns* where one of these occurs, with marks.
    """
    if snippet is not None and MARK not in snippet:
        return snippet
    return _first_excerpt(match, columns)


def excerpt_beside(match: str, words: str, *columns: str | None) -> str | None:
    """Return `excerpt` of a match by the *words* beside a text, without a snippet.

    None if they are not seen to have what is searched for.
    """
    if any(word in words for word in _searched_beside(match)):
        return _first_excerpt(match, columns)
    return None


@lru_cache(maxsize=8)
def _searched_beside(match: str) -> list[str]:
    return [MARK + word for word in _BESIDE.findall(match)]


def _first_excerpt(match: str, columns: tuple[str | None, ...]) -> str:
    pattern = _pattern_of(match)
    texts = [column for column in columns if column]
    for column in texts:
        text = column
        if not column.isascii():
            text = unicodedata.normalize("NFC", column)
        first = pattern.search(text)
        if first is not None:
            return marked(text, first.start(), pattern)

    return texts[0][:EXCERPT_LENGTH] if texts else ""


@lru_cache(maxsize=8)
def _pattern_of(match: str) -> re.Pattern[str]:
    """Return the pattern of what is searched for beside a text."""
    alternatives = []
    for needle in _needles(_BESIDE.findall(match)):
        pattern = f"(?i:{re.escape(needle)})"
        if needle.isascii():
            # A part of an identifier begins with a capital, or as a word. The letter
            # comes first, so that the text is scanned for it in C.
            first, rest = needle[0], re.escape(needle[1:])
            begin = r"(?<![^\W_](?s:.))"
            if first.upper() != first:
                begin = f"(?:(?<={first.upper()})|{begin})"
            pattern = f"[{first}{first.upper()}]{begin}(?i:{rest})"
        alternatives.append(pattern)
    return re.compile("|".join(alternatives) or "$.")


def _needles(words: list[str]) -> list[str]:
    """Return what *words*, of a query, are in a text: pairs of letters join again."""
    needles: list[str] = []
    for word in words:
        is_pair = len(word) == 2 and bool(re.fullmatch(RUN, word))
        if word.startswith(MARK):
            needles.append(chr(int(word.removeprefix(MARK), 16)))
        elif is_pair and needles and needles[-1][-1] == word[0]:
            needles[-1] += word[1]
        else:
            needles.append(word)
    return sorted(needles, key=len, reverse=True)
