"""What a user searches for: words for the index, and texts that must occur literally.

FTS5 splits a text at everything that is not a letter or a digit, so for it ``foo-bar``
is two words in a row, and ``foo, bar`` has the same two. A word with symbols is
therefore looked up by its letters, and the text of each candidate is then compared with
the word itself, without regard to case and accents, as the index does.

Quotes, parentheses, ``OR`` and ``-word`` have a meaning in every search language. Until
they have one here they are refused: to ignore one would return the opposite.
"""

from __future__ import annotations

import json
import sqlite3
import unicodedata

from sessiondb.engine.base import SearchQuery
from sessiondb.errors import InvalidInputError, abridged

#: The SQL function of `contains_literals`.
CONTAINS = "sessiondb_contains"
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_HINT = "search for words alone: all of them must occur"


def parse_query(query: str) -> SearchQuery:
    """Return what `query` searches for; every word of it must occur.

    A trailing ``*`` makes a word a prefix. Raises `InvalidInputError` for a query
    without a letter or digit, or with an operator.
    """
    if not isinstance(query, str):
        raise InvalidInputError(f"a query is a string, not {abridged(query)}")

    phrases, literals = [], []
    # Lone surrogates become "?", which no tokenizer takes for a letter.
    for word in query.replace("\0", " ").encode("utf-8", "replace").decode().split():
        _refuse_operator(word)
        stem = word.rstrip("*")
        has_words = any(character.isalnum() for character in stem)
        if has_words:
            phrases.append(f'"{stem}"*' if word.endswith("*") else f'"{stem}"')
        if not stem.isalnum() and stem:
            literals.append(fold(stem))

    if not phrases:
        raise InvalidInputError(
            "the query has no words", hint="search for letters or digits"
        )
    return SearchQuery(" ".join(phrases), json.dumps(literals) if literals else None)


def _refuse_operator(word: str) -> None:
    if word in _OPERATORS:
        raise InvalidInputError(f"search has no operator {word} yet", hint=_HINT)
    if word.startswith("-") and word[1:2].isalnum():
        raise InvalidInputError(
            f"search cannot exclude a word yet: {abridged(word)}", hint=_HINT
        )
    for symbol, purpose in (
        ('"', "quotes"),
        ("(", "parentheses"),
        (")", "parentheses"),
    ):
        if symbol in word:
            raise InvalidInputError(
                f"search has no {purpose} yet: {abridged(word)}", hint=_HINT
            )


def register(connection: sqlite3.Connection) -> None:
    """Give *connection* the SQL function `CONTAINS`, for queries with literals."""
    connection.create_function(CONTAINS, -1, contains_literals, deterministic=True)


def contains_literals(literals: str, *columns: str | None) -> bool:
    """Return whether each of *literals*, a JSON array, occurs in one of *columns*.

    The arguments of calls are indexed as JSON, in which a backslash is written twice;
    the view of the index has a space in place of the second one.
    """
    texts = [fold(column) for column in columns if column]
    for literal in json.loads(literals):
        as_json = literal.replace("\\", "\\ ")
        if not any(literal in text or as_json in text for text in texts):
            return False
    return True


def fold(text: str) -> str:
    """Return *text* without case and accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
