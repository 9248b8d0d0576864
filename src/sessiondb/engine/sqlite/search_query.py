"""A query as FTS5 takes it, and the comparison of what FTS5 cannot know.

FTS5 splits a text at everything that is not a letter or a digit, so for it ``foo-bar``
is two words in a row, and ``foo, bar`` has the same two. A text with symbols is
therefore looked up by its words, and each candidate is then compared with the query
itself, without regard to case and accents, as the index does. For that the index must
never leave out what the query means: excluded texts with symbols are compared only.

A word is also looked up among the words beside a text, see `search_words`. Texts of
scripts without spaces and emoji are known only there, and compared likewise.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sessiondb.engine.base import SNIPPET_MARKS
from sessiondb.engine.query import (
    All,
    Either,
    SearchQuery,
    Term,
    Text,
    parse_query,
    texts_in,
)
from sessiondb.engine.sqlite.search_words import (
    EMOJI,
    MARK,
    PAIR,
    RUN,
    WORD,
    name_of_emoji,
    pieces_of_run,
)
from sessiondb.errors import InvalidInputError

#: The SQL functions `is_meant` and `excerpt`.
IS_MEANT, EXCERPT = "sessiondb_is_meant", "sessiondb_excerpt"
_ACCENTS = re.compile("[\u0300-\u036f]+")
#: An id of an agent, or its beginning.
_ID = re.compile(r"(?=[A-Za-z]*[0-9_-])[A-Za-z0-9_-]{6,}")
#: What of a query for FTS5 is a word beside a text.
_BESIDE = re.compile(f'"{MARK}([^"]+)"')
#: The characters of an excerpt before the first match, and in all.
_BEFORE, _EXCERPT = 40, 120


def search_query(query: str) -> SearchQuery:
    """Return what `query` searches for; see `engine.query`.

    Raises `InvalidInputError` for a query without a letter or digit to look up.
    """
    term = parse_query(query)
    match = _candidates(term)
    if match is None:
        raise InvalidInputError(
            "the query has no words", hint="search for letters or digits, too"
        )
    compared = json.dumps(_as_json(term))
    is_scanned = any(_is_beside(text) for text in texts_in(term))
    own_id = None
    if isinstance(term, Text) and _ID.fullmatch(term.text):
        own_id = term.text
    return SearchQuery(
        match,
        comparison=None if _is_exact(term) else compared,
        scanned=compared if is_scanned else None,
        own_id=own_id,
    )


def _candidates(term: Term) -> str | None:
    """Return FTS5's query for all that may be meant; None if that is everything."""
    match term:
        case Text():
            return _candidates_of_text(term)
        case Either(terms):
            alternatives = [_candidates(each) for each in terms]
            if None in alternatives:
                return None
            return f"({' OR '.join(filter(None, alternatives))})"
        case All(terms, excluded):
            required = [_candidates(each) for each in terms]
            parts = [each for each in required if each is not None]
            if not parts:
                return None
            without = [_candidates(each) for each in excluded if _is_exact(each)]
            both = f"({' AND '.join(parts)})"
            if not without:
                return both
            return f"({both} NOT ({' OR '.join(filter(None, without))}))"


def _candidates_of_text(term: Text) -> str | None:
    text = unicodedata.normalize("NFC", term.text)
    words = WORD.findall(text)
    star = "*" if term.is_prefix else ""
    if not _is_beside(term):
        if not words:
            return None
        if len(words) > 1:
            return f'"{text}"{star}'
        return f'("{words[0]}"{star} OR "{MARK}{words[0]}"{star})'

    pieces = [f'"{MARK}{name_of_emoji(emoji)}"' for emoji in EMOJI.findall(text)]
    for run in RUN.findall(text):
        # The last letter of the text may be followed by others.
        pairs = list(pieces_of_run(run))
        pieces += [f'"{MARK}{pair}"' for pair in pairs[:-1]]
        if len(pairs) == 1:
            pieces.append(f'("{pairs[0]}"* OR "{MARK}{pairs[0]}"*)')
    for word in WORD.findall(RUN.sub(" ", text)):
        pieces.append(f'("{word}"* OR "{MARK}{word}"*)')
    return f"({' AND '.join(pieces)})" if pieces else None


def _is_beside(text: Text) -> bool:
    """Return whether a text is not made of words of FTS5, but of those beside it."""
    return not text.text.isascii() and bool(
        RUN.search(text.text) or EMOJI.search(text.text)
    )


def _is_exact(term: Term) -> bool:
    """Return whether the words of the index, and those beside it, say everything."""
    for text in texts_in(term):
        is_pair = PAIR.fullmatch(unicodedata.normalize("NFC", text.text))
        if text.is_literal or (_is_beside(text) and not is_pair):
            return False
    return True


def _as_json(term: Term) -> Any:
    """Return a term as JSON values, its texts as they are compared."""
    match term:
        case Text(text, is_prefix):
            is_literal = term.is_literal or _is_beside(term)
            kind = "literal" if is_literal else "words"
            return [kind, fold(text), is_prefix]
        case Either(terms):
            return ["either", [_as_json(each) for each in terms]]
        case All(terms, excluded):
            return [
                "all",
                [_as_json(each) for each in terms],
                [_as_json(each) for each in excluded],
            ]


def register(connection: sqlite3.Connection) -> None:
    """Give *connection* the SQL functions of queries: `IS_MEANT` and `EXCERPT`."""
    connection.create_function(IS_MEANT, -1, is_meant, deterministic=True)
    connection.create_function(EXCERPT, -1, excerpt, deterministic=True)


def is_meant(term: str, beside: str | None, *columns: str | None) -> bool:
    """Return whether the text in *columns* is what *term*, as JSON, means.

    *beside* are the words beside it.
    """
    kind, *details = loaded = _loaded(term)
    if kind == "literal" and any(details[0] in column for column in columns if column):
        # As it was typed: the usual case, at a fifth of the cost.
        return True

    texts = [fold(column) for column in columns if column]
    return _occurs(loaded, texts, WORD.findall(beside or ""))


def excerpt(match: str, snippet: str | None, *columns: str | None) -> str | None:
    """Return the *snippet* that FTS5 made of a match, never one of the words beside it.

    In its place is the first of *columns* where one of these occurs, with marks.
    """
    if snippet is not None and MARK not in snippet:
        return snippet

    pattern = _pattern_of(match)
    texts = [column for column in columns if column]
    for column in texts:
        text = column
        if not column.isascii():
            text = unicodedata.normalize("NFC", column)
        first = pattern.search(text)
        if first is not None:
            return _marked(text, first.start(), pattern)

    return texts[0][:_EXCERPT] if texts else ""


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


def _marked(text: str, first: int, pattern: re.Pattern[str]) -> str:
    begin = max(0, first - _BEFORE)
    end = begin + _EXCERPT
    opening, closing = SNIPPET_MARKS
    shown = pattern.sub(rf"{opening}\g<0>{closing}", text[begin:end])
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def _needles(words: list[str]) -> list[str]:
    """Return what *words*, of a query, are in a text: pairs of letters join again."""
    needles: list[str] = []
    for word in words:
        is_pair = len(word) == 2 and bool(RUN.fullmatch(word))
        if word.startswith(MARK):
            needles.append(chr(int(word.removeprefix(MARK), 16)))
        elif is_pair and needles and needles[-1][-1] == word[0]:
            needles[-1] += word[1]
        else:
            needles.append(word)
    return sorted(needles, key=len, reverse=True)


@lru_cache(maxsize=8)
def _loaded(term: str) -> Any:
    return json.loads(term)


def _occurs(term: Any, texts: list[str], beside: list[str]) -> bool:
    match term:
        case ["literal", text, _]:
            return _has_literal(text, texts)
        case ["words", text, is_prefix]:
            words = text.split()
            if len(words) == 1 and _has_words(words, is_prefix, beside):
                return True
            return any(_has_words(words, is_prefix, WORD.findall(x)) for x in texts)
        case ["either", terms]:
            return any(_occurs(each, texts, beside) for each in terms)
        case ["all", terms, excluded]:
            return all(_occurs(each, texts, beside) for each in terms) and not any(
                _occurs(each, texts, beside) for each in excluded
            )
    raise ValueError(f"not a term: {term!r}")


def _has_literal(literal: str, texts: Iterable[str]) -> bool:
    # The arguments of calls are indexed as JSON, in which a backslash is written twice;
    # the view of the index has a space in place of the second one.
    as_json = literal.replace("\\", "\\ ")
    return any(literal in text or as_json in text for text in texts)


def _has_words(words: list[str], is_prefix: bool, tokens: list[str]) -> bool:
    """Return whether *words* are in a row in *tokens*, the last one perhaps longer."""
    for place in range(len(tokens) - len(words) + 1):
        *first, last = tokens[place : place + len(words)]
        if first == words[:-1] and (
            last == words[-1] or (is_prefix and last.startswith(words[-1]))
        ):
            return True
    return False


def fold(text: str) -> str:
    """Return *text* without case and accents; signs of other scripts are letters."""
    if text.isascii():
        return text.lower()
    letters = _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", letters)
