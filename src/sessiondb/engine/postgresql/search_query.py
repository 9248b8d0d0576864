"""A query as a vector of words takes it.

The value of ``match`` is a `Match` as JSON: besides the words that a part must have it
says what they mean, for everything that is compared here and not in the database.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.engine.postgresql.search_entries import LONGEST_WORD, words_in
from sessiondb.engine.query import SearchQuery, Term, Text, parse_query, texts_in
from sessiondb.engine.search_candidates import (
    Candidates,
    Every,
    Some,
    Words,
    candidates_of,
    is_known_word,
    read_query,
)
from sessiondb.engine.search_comparison import comparison_of, fold, loaded
from sessiondb.engine.search_words import MARK
from sessiondb.engine.sql import as_list


class Match(NamedTuple):
    """What the entries of candidates have, each as the text of a ``tsquery``."""

    #: The words.
    words: str
    #: The words, some of them in a row; None if no words have to be.
    in_order: str | None
    #: A word that one chunk at least has of each part with several.
    in_chunk: str
    #: The words of a title or prompt, which is compared with what must not occur.
    in_title: str
    #: What the candidates are compared with: see `comparison_of`.
    comparison: str


def search_query(query: str) -> SearchQuery:
    """Return what `query` searches for: see `read_query`."""
    search = read_query(query, _match_of, _is_exact)
    if search.comparison is None or search.together is not None:
        return search
    # Of words in a row an entry says as much, unless it lost places, and that it knows.
    texts = texts_in(parse_query(query))
    if all(_is_exact(text) or _is_in_a_row(text) for text in texts):
        return search._replace(comparison=None)
    return search


@lru_cache(maxsize=32)
def read_match(match: str) -> Match:
    """Return the value of ``match`` of a `SearchQuery`."""
    return Match._make(json.loads(match))


def _is_exact(text: Text) -> bool:
    """Return whether the words of an entry say everything of *text*."""
    words = words_in(text.text)
    return is_known_word(text) and len(words) == 1 and len(words[0]) < LONGEST_WORD


def _is_in_a_row(text: Text) -> bool:
    """Return whether an entry with all places says everything of words in a row."""
    is_whole = all(len(word) < LONGEST_WORD for word in words_in(text.text))
    return is_whole and is_known_word(text) and len(text.words) > 1


def _match_of(term: Term) -> str | None:
    candidates = candidates_of(term, _is_exact)
    if candidates is None:
        return None
    words = _as_tsquery(candidates, " & ")
    in_order = _as_tsquery(candidates, " <-> ")
    match = Match(
        words,
        None if in_order == words else in_order,
        _as_tsquery(_word_of(candidates), " & "),
        _as_tsquery(_required(candidates), " & "),
        comparison_of(term),
    )
    return json.dumps(match)


def _as_tsquery(candidates: Candidates, in_a_row: str) -> str:
    """Return the text of a ``tsquery``; *in_a_row* is the operator between words."""
    match candidates:
        case Words(text, is_prefix, is_in_text, is_in_words):
            alternatives = []
            if is_in_text:
                words = [f"'{word}'" for word in words_in(text)]
                if is_prefix:
                    words[-1] += ":*"
                alternatives.append(in_a_row.join(words))
            if is_in_words:
                word = (MARK + fold(text))[:LONGEST_WORD]
                alternatives.append(f"'{word}'{':*' if is_prefix else ''}")
            return f"({' | '.join(alternatives)})"
        case Some(terms):
            return f"({' | '.join(_each_once(terms, in_a_row))})"
        case Every(terms, excluded):
            # Words in a row are not excluded: that is left to the comparison.
            without = [f"!{each}" for each in _each_once(excluded, in_a_row)]
            return f"({' & '.join([*_each_once(terms, in_a_row), *without])})"


def _required(candidates: Candidates) -> Candidates:
    """Return *candidates* without what must not occur."""
    match candidates:
        case Words():
            return candidates
        case Some(terms):
            return Some(tuple([_required(each) for each in terms]))
        case Every(terms):
            return Every(tuple([_required(each) for each in terms]))


def _each_once(terms: tuple[Candidates, ...], in_a_row: str) -> list[str]:
    return list(dict.fromkeys(_as_tsquery(each, in_a_row) for each in terms))


def _word_of(candidates: Candidates) -> Candidates:
    """Return a word that all *candidates* have, or several of which they have one."""
    match candidates:
        case Words(text, is_prefix, _, is_in_words):
            words = words_in(text)
            if is_in_words or len(words) == 1:
                return candidates
            longest = max(words, key=len)
            return Words(longest, is_prefix and longest == words[-1])
        case Some(terms):
            return Some(tuple([_word_of(each) for each in terms]))
        case Every(terms):
            return max([_word_of(each) for each in terms], key=_least_length)


def _least_length(word: Candidates) -> int:
    match word:
        case Words(text):
            return len(text)
        case Some(terms) | Every(terms):
            return min(_least_length(each) for each in terms)


class Possible(NamedTuple):
    """What a text has that may be meant, as the server finds out."""

    #: Texts in small letters, of which it has one, unless it has one of ``letters``.
    #: Nothing in them is spelled otherwise in JSON.
    texts: tuple[str, ...]
    #: The pattern of letters that are folded to those of ``texts``.
    letters: str

    def params(self) -> dict[str, str]:
        """Return the parameters of a statement."""
        return {"possible": as_list(self.texts), "letters": self.letters}


@lru_cache(maxsize=32)
def read_possible(comparison: str) -> Possible:
    """Return what a text has that is what *comparison* means."""
    return _possible(loaded(comparison))


#: The pattern of the letters that are folded to ASCII, and the marks of letters.
FOLDED_TO_ASCII = (
    "[\u00c0-\u024f\u0300-\u036f\u037e\u1e00-\u1eff\u1fef\u212a\u212b"
    "\u2260\u226e\u226f\ufb00-\ufb06]"
)
_ANY = "."
#: What JSON writes in another way.
_ESCAPED = dict.fromkeys([*range(33), ord('"'), ord("\\"), 127], " ")


def _possible(term: Any) -> Possible:
    match term:
        case ["either", terms]:
            choices = [_possible(each) for each in terms]
            texts = [text for choice in choices for text in choice.texts]
            are_ascii = all(choice.letters == FOLDED_TO_ASCII for choice in choices)
            return Possible(tuple(texts), FOLDED_TO_ASCII if are_ascii else _ANY)
        case ["all", terms, _]:
            return max(map(_possible, terms), key=_least_length_of_texts)
        case [_, str(text), _]:
            if not text.isascii():
                # No ASCII text has it.
                return Possible((), _ANY)
            longest = max(text.translate(_ESCAPED).split(), key=len, default="")
            return Possible((longest,), FOLDED_TO_ASCII)
    raise ValueError(f"not a term: {term!r}")


def _least_length_of_texts(possible: Possible) -> float:
    return min(map(len, possible.texts), default=float("inf"))
