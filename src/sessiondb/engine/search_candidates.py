"""The words that a query asks an index for.

The index must never leave out what the query means: it names candidates, which are
compared with the query if the words do not say everything. So what must not occur is
left to the comparison as well, unless the words say all of it.

A word is also looked up among the words beside a text, see `search_words`. Texts of
scripts without spaces and emoji are known only there.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from sessiondb.engine.query import (
    All,
    Cover,
    Either,
    SearchQuery,
    Term,
    Text,
    has_exclusion,
    is_spread,
    parse_query,
    texts_in,
)
from sessiondb.engine.search_comparison import (
    ACCENTS,
    comparison_of,
    fold,
    spread_comparison_of,
)
from sessiondb.engine.search_words import (
    EMOJI,
    PAIR,
    RUN,
    WORD,
    is_beside,
    name_of_emoji,
    pieces_of_run,
)
from sessiondb.errors import InvalidInputError
from sessiondb.patterns import late_pattern

#: An id of an agent, or its beginning.
_ID = late_pattern(r"(?=[A-Za-z]*[0-9_-])[A-Za-z0-9_-]{6,}")
#: The covers of a query that are compared: beyond them the longest are rare enough.
_MOST_COVERS = 6


class Words(NamedTuple):
    """A word, or several in a row, that an index looks up."""

    text: str
    #: Whether the last one may be longer.
    is_prefix: bool = False
    #: Whether they are looked up in the text, and among the words beside it.
    is_in_text: bool = True
    is_in_words: bool = False


class Every(NamedTuple):
    """Candidates that have each of the terms, and none of those that are excluded."""

    terms: tuple[Candidates, ...]
    excluded: tuple[Candidates, ...] = ()


class Some(NamedTuple):
    """Candidates that have one of the terms at least."""

    terms: tuple[Candidates, ...]


Candidates: TypeAlias = Words | Every | Some


def read_query(
    query: str,
    match_of: Callable[[Term], str | None],
    is_exact: Callable[[Text], bool],
) -> SearchQuery:
    """Return what `query` searches for; see `engine.query`.

    *match_of* returns an engine's query for the candidates of a term, None if that is
    everything; *is_exact* whether it says everything of a text. Raises
    `InvalidInputError` for a query without a letter or digit to look up.
    """
    term = parse_query(query)
    match = match_of(term)
    texts = list(texts_in(term))
    if match is None and not any(text.is_substring for text in texts):
        raise InvalidInputError(
            "the query has no words", hint="search for letters or digits, too"
        )
    comparison = None if all(map(is_exact, texts)) else comparison_of(term)
    inside = own_id = None
    if isinstance(term, Text):
        if comparison is not None and (term.is_substring or is_beside(term.text)):
            inside = fold(term.text)
        if not term.is_substring and _ID.fullmatch(term.text):
            own_id = term.text
    is_scanned = match is None or any(is_beside(text.text) for text in texts)
    search = SearchQuery(
        match,
        comparison=comparison,
        inside=inside,
        scanned=comparison_of(term) if is_scanned else None,
        own_id=own_id,
        together=spread_comparison_of(term) if has_exclusion(term) else None,
    )
    if match is None:
        search = search._replace(needles=json.dumps([text.text for text in texts]))
    if not is_spread(term):
        return search
    if match is not None:
        return search._replace(covers=_covers(term, match_of))
    cover = _cover_of(term, match_of)
    return search._replace(
        spread=spread_comparison_of(term, cover), cover=comparison_of(cover)
    )


def _covers(term: Term, match_of: Callable[[Term], str | None]) -> tuple[Cover, ...]:
    """Return the ways to find messages whose parts have *term* together."""
    choices = [_cover_of(term, match_of)]
    if isinstance(term, All):
        choices = [_cover_of(each, match_of) for each in dict.fromkeys(term.terms)]
        choices.sort(key=_least_length, reverse=True)
    covers: list[Cover] = []
    for choice in choices:
        match = match_of(choice)
        if match is not None and len(covers) < _MOST_COVERS:
            covers.append(Cover(match, spread_comparison_of(term, choice)))
    return tuple(covers)


def _cover_of(term: Term, match_of: Callable[[Term], str | None]) -> Term:
    """Return what one part at least has of every message that has *term*.

    An index knows it, if it knows *term*.
    """
    match term:
        case Text():
            return term
        case Either(terms):
            return Either(tuple([_cover_of(each, match_of) for each in terms]))
        case All(terms):
            covers = [_cover_of(each, match_of) for each in terms]
            indexed = [cover for cover in covers if match_of(cover) is not None]
            return max(indexed or covers, key=_least_length)


def _least_length(cover: Term) -> int:
    # Long words are rare: that is only for speed.
    return min(len(text.text) for text in texts_in(cover))


def candidates_of(term: Term, is_exact: Callable[[Text], bool]) -> Candidates | None:
    """Return the candidates for all that may be meant; None if that is everything."""
    match term:
        case Text():
            return _candidates_of_text(term)
        case Either(terms):
            alternatives = [candidates_of(each, is_exact) for each in terms]
            if None in alternatives:
                return None
            return Some(_known(alternatives))
        case All(terms, excluded):
            required = _known(candidates_of(each, is_exact) for each in terms)
            if not required:
                return None
            without = [
                candidates_of(each, is_exact)
                for each in excluded
                if all(map(is_exact, texts_in(each)))
            ]
            return Every(required, _known(without))


def _known(candidates: Iterable[Candidates | None]) -> tuple[Candidates, ...]:
    return tuple([each for each in candidates if each is not None])


def _candidates_of_text(term: Text) -> Candidates | None:
    text = unicodedata.normalize("NFC", term.text)
    if term.is_substring:
        return _candidates_of_substring(text)

    words = WORD.findall(text)
    if not is_beside(term.text):
        if not words:
            return None
        if len(words) > 1:
            return Words(text, term.is_prefix)
        return Words(words[0], term.is_prefix, is_in_words=True)

    pieces = _emoji_in(text)
    for run in re.findall(RUN, text):
        # The last letter of the text may be followed by others.
        pairs = list(pieces_of_run(run))
        pieces += [
            Words(pair, is_in_text=False, is_in_words=True) for pair in pairs[:-1]
        ]
        if len(pairs) == 1:
            pieces.append(Words(pairs[0], True, is_in_words=True))
    for word in WORD.findall(re.sub(RUN, " ", text)):
        pieces.append(Words(word, True, is_in_words=True))
    return Every(tuple(pieces)) if pieces else None


def _candidates_of_substring(text: str) -> Candidates | None:
    """Return what is certain of a text inside of words, or None.

    A symbol is before a word that begins there; all that precedes it may go on.
    """
    pieces = _emoji_in(text)
    for run in re.findall(RUN, text):
        for pair in pieces_of_run(run):
            if len(pair) == 2:
                pieces.append(Words(pair, is_in_text=False, is_in_words=True))
    # A mark of its own belongs to the word, for an index.
    if not ACCENTS.search(text):
        for word in WORD.finditer(text):
            if word.start() > 0 and not re.search(RUN, word[0]):
                pieces.append(Words(word[0], word.end() == len(text)))
    return Every(tuple(pieces)) if pieces else None


def _emoji_in(text: str) -> list[Words]:
    emoji = EMOJI.findall(text)
    return [
        Words(name_of_emoji(each), is_in_text=False, is_in_words=True) for each in emoji
    ]


def is_known_word(text: Text) -> bool:
    """Return whether words, and those beside a text, say everything of *text*."""
    if text.is_literal or text.is_substring:
        return False
    composed = unicodedata.normalize("NFC", text.text)
    return not is_beside(text.text) or bool(re.fullmatch(PAIR, composed))
