"""A query as FTS5 takes it, and the comparison of what FTS5 cannot know.

FTS5 splits a text at everything that is not a letter or a digit, so for it ``foo-bar``
is two words in a row, and ``foo, bar`` has the same two. A text with symbols is
therefore looked up by its words, and each candidate is then compared with the query
itself, without regard to case and accents, as the index does. For that the index must
never leave out what the query means: excluded texts with symbols are compared only.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sessiondb.engine.base import SearchQuery
from sessiondb.engine.query import All, Either, Term, Text, parse_query, texts_in
from sessiondb.errors import InvalidInputError

#: The SQL function of `is_meant`.
IS_MEANT = "sessiondb_is_meant"
_WORD = re.compile(r"[^\W_]+")


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
    is_exact = not any(text.is_literal for text in texts_in(term))
    return SearchQuery(match, None if is_exact else json.dumps(_as_json(term)))


def _candidates(term: Term) -> str | None:
    """Return FTS5's query for all that may be meant; None if that is everything."""
    match term:
        case Text(text, is_prefix):
            if not any(character.isalnum() for character in text):
                return None
            return f'"{text}"*' if is_prefix else f'"{text}"'
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


def _is_exact(term: Term) -> bool:
    return not any(text.is_literal for text in texts_in(term))


def _as_json(term: Term) -> Any:
    """Return a term as JSON values, its texts as they are compared."""
    match term:
        case Text(text, is_prefix):
            kind = "literal" if term.is_literal else "words"
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
    """Give *connection* the SQL function `IS_MEANT`, for queries with symbols."""
    connection.create_function(IS_MEANT, -1, is_meant, deterministic=True)


def is_meant(term: str, *columns: str | None) -> bool:
    """Return whether the text in *columns* is what *term*, as JSON, means."""
    texts = [fold(column) for column in columns if column]
    return _occurs(_loaded(term), texts)


@lru_cache(maxsize=8)
def _loaded(term: str) -> Any:
    return json.loads(term)


def _occurs(term: Any, texts: list[str]) -> bool:
    match term:
        case ["literal", text, _]:
            return _has_literal(text, texts)
        case ["words", text, is_prefix]:
            return any(_has_words(text.split(), is_prefix, each) for each in texts)
        case ["either", terms]:
            return any(_occurs(each, texts) for each in terms)
        case ["all", terms, excluded]:
            return all(_occurs(each, texts) for each in terms) and not any(
                _occurs(each, texts) for each in excluded
            )
    raise ValueError(f"not a term: {term!r}")


def _has_literal(literal: str, texts: Iterable[str]) -> bool:
    # The arguments of calls are indexed as JSON, in which a backslash is written twice;
    # the view of the index has a space in place of the second one.
    as_json = literal.replace("\\", "\\ ")
    return any(literal in text or as_json in text for text in texts)


def _has_words(words: list[str], is_prefix: bool, text: str) -> bool:
    """Return whether *words* are in a row in *text*, the last one perhaps longer."""
    tokens = _WORD.findall(text)
    for place in range(len(tokens) - len(words) + 1):
        *first, last = tokens[place : place + len(words)]
        if first == words[:-1] and (
            last == words[-1] or (is_prefix and last.startswith(words[-1]))
        ):
            return True
    return False


def fold(text: str) -> str:
    """Return *text* without case and accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
