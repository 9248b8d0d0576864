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
from functools import lru_cache
from typing import Any

from sessiondb.engine.base import SNIPPET_MARKS
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
from sessiondb.patterns import late_pattern

#: The SQL functions `is_meant`, `excerpt`, `excerpt_beside`, `passage` and
#: `is_meant_together`.
IS_MEANT, EXCERPT = "sessiondb_is_meant", "sessiondb_excerpt"
EXCERPT_BESIDE = "sessiondb_excerpt_beside"
PASSAGE, TOGETHER = "sessiondb_passage", "sessiondb_together"
#: Between two parts, and between two texts of one. A text that has them is split there.
PART_BORDER, TEXT_BORDER = "\x1e", "\x1f"
_ACCENTS = late_pattern("[\u0300-\u036f]+")
#: An id of an agent, or its beginning.
_ID = late_pattern(r"(?=[A-Za-z]*[0-9_-])[A-Za-z0-9_-]{6,}")
#: The covers of a query that are compared: beyond them the longest are rare enough.
_MOST_COVERS = 6
#: The words of a query for FTS5 that are beside a text.
_BESIDE = late_pattern(f'"{MARK}([^"]+)"')
#: The characters of an excerpt before the first match, and in all.
_BEFORE, _EXCERPT = 40, 120


def search_query(query: str) -> SearchQuery:
    """Return what `query` searches for; see `engine.query`.

    Raises `InvalidInputError` for a query without a letter or digit to look up.
    """
    term = parse_query(query)
    match = _candidates(term)
    texts = list(texts_in(term))
    if match is None and not any(text.is_substring for text in texts):
        raise InvalidInputError(
            "the query has no words", hint="search for letters or digits, too"
        )
    kind, *details = value = _as_json(term)
    compared = json.dumps(value)
    is_exact = _is_exact(term)
    is_scanned = match is None or any(_is_beside(text) for text in texts)
    own_id = None
    if isinstance(term, Text) and not term.is_substring and _ID.fullmatch(term.text):
        own_id = term.text
    search = SearchQuery(
        match,
        comparison=None if is_exact else compared,
        inside=details[0] if kind == "inside" and not is_exact else None,
        scanned=compared if is_scanned else None,
        own_id=own_id,
        together=_together(term) if has_exclusion(term) else None,
    )
    if match is None:
        search = search._replace(needles=json.dumps([text.text for text in texts]))
    if not is_spread(term):
        return search
    if match is not None:
        return search._replace(covers=_covers(term))
    cover = _cover(term)
    return search._replace(
        spread=_together(term, cover), cover=json.dumps(_as_json(cover))
    )


def _together(term: Term, cover: Term | None = None) -> str:
    """Return the value that the parts of a message are compared with."""
    return json.dumps([_as_json(term), None if cover is None else _as_json(cover)])


def _covers(term: Term) -> tuple[Cover, ...]:
    """Return the ways to find messages whose parts have *term* together."""
    choices = [_cover(term)]
    if isinstance(term, All):
        choices = [_cover(each) for each in dict.fromkeys(term.terms)]
        choices.sort(key=_least_length, reverse=True)
    covers: list[Cover] = []
    for choice in choices:
        match = _candidates(choice)
        if match is not None and len(covers) < _MOST_COVERS:
            covers.append(Cover(match, _together(term, choice)))
    return tuple(covers)


def _cover(term: Term) -> Term:
    """Return what one part at least has of every message that has *term*."""
    match term:
        case Text():
            return term
        case Either(terms):
            return Either(tuple([_cover(each) for each in terms]))
        case All(terms):
            return max([_cover(each) for each in terms], key=_least_length)


def _least_length(cover: Term) -> int:
    # Long words are rare: that is only for speed.
    return min(len(text.text) for text in texts_in(cover))


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
    if term.is_substring:
        return _candidates_of_substring(text)

    words = WORD.findall(text)
    star = "*" if term.is_prefix else ""
    if not _is_beside(term):
        if not words:
            return None
        if len(words) > 1:
            return f'"{text}"{star}'
        return f'("{words[0]}"{star} OR "{MARK}{words[0]}"{star})'

    pieces = [f'"{MARK}{name_of_emoji(emoji)}"' for emoji in EMOJI.findall(text)]
    for run in re.findall(RUN, text):
        # The last letter of the text may be followed by others.
        pairs = list(pieces_of_run(run))
        pieces += [f'"{MARK}{pair}"' for pair in pairs[:-1]]
        if len(pairs) == 1:
            pieces.append(f'("{pairs[0]}"* OR "{MARK}{pairs[0]}"*)')
    for word in WORD.findall(re.sub(RUN, " ", text)):
        pieces.append(f'("{word}"* OR "{MARK}{word}"*)')
    return f"({' AND '.join(pieces)})" if pieces else None


def _candidates_of_substring(text: str) -> str | None:
    """Return FTS5's query for what is certain of a text inside of words, or None.

    A symbol is before a word that begins there; all that precedes it may go on.
    """
    pieces = [f'"{MARK}{name_of_emoji(emoji)}"' for emoji in EMOJI.findall(text)]
    for run in re.findall(RUN, text):
        pieces += [f'"{MARK}{pair}"' for pair in pieces_of_run(run) if len(pair) == 2]
    # A mark of its own belongs to the word, for FTS5.
    if not _ACCENTS.search(text):
        for word in WORD.finditer(text):
            if word.start() > 0 and not re.search(RUN, word[0]):
                pieces.append(f'"{word[0]}"{"*" if word.end() == len(text) else ""}')
    return f"({' AND '.join(pieces)})" if pieces else None


def _is_beside(text: Text) -> bool:
    """Return whether a text is not made of words of FTS5, but of those beside it."""
    return not text.text.isascii() and bool(
        re.search(RUN, text.text) or EMOJI.search(text.text)
    )


def _is_exact(term: Term) -> bool:
    """Return whether the words of the index, and those beside it, say everything."""
    for text in texts_in(term):
        is_pair = re.fullmatch(PAIR, unicodedata.normalize("NFC", text.text))
        if text.is_literal or text.is_substring or (_is_beside(text) and not is_pair):
            return False
    return True


def _as_json(term: Term) -> Any:
    """Return a term as JSON values, its texts as they are compared."""
    match term:
        case Text(text, is_prefix):
            kind = "literal" if term.is_literal else "words"
            if term.is_substring or _is_beside(term):
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


def register(connection: sqlite3.Connection) -> None:
    """Give *connection* the SQL functions of queries."""
    connection.create_function(IS_MEANT, -1, is_meant, deterministic=True)
    connection.create_function(EXCERPT, -1, excerpt, deterministic=True)
    connection.create_function(EXCERPT_BESIDE, -1, excerpt_beside, deterministic=True)
    connection.create_function(PASSAGE, -1, passage, deterministic=True)
    connection.create_function(TOGETHER, 4, is_meant_together, deterministic=True)


def is_meant(term: str, beside: str | None, *columns: str | None) -> bool:
    """Return whether the text in *columns* is what *term*, as JSON, means.

    *beside* are the words beside it.
    """
    kind, *details = loaded = _loaded(term)
    if kind == "inside" and any(details[0] in column for column in columns if column):
        # As it was typed: the usual case, at a fifth of the cost.
        return True

    texts = [fold(column) for column in columns if column]
    return _occurs(loaded, texts, fold(beside or ""))


def is_meant_together(wanted: str, place: int, places: str, parts: str) -> bool:
    """Return whether the parts of a message have together what a query means.

    *wanted* is the value of `engine.query.Cover.spread`, or of ``:together``, *place*
    the number of the part that is asked for. *places* are the numbers of all parts,
    with commas; *parts* has their words, text, input and title, as SQL joins them with
    `PART_BORDER` and `TEXT_BORDER`. With a cover it is the newest part with that, of a
    message no part of which has it all alone.
    """
    term, cover = _loaded(wanted)
    stored = [part.split(TEXT_BORDER) for part in fold(parts).split(PART_BORDER)]
    beside = " ".join([words for words, *_ in stored if words])
    if not _occurs(term, [text for _, *texts in stored for text in texts], beside):
        return False
    if cover is None:
        return True

    newest = 0
    for number, (words, *texts) in zip(places.split(","), stored, strict=False):
        if _occurs(term, texts, words):
            return False
        if int(number) > newest and _occurs(cover, texts, words):
            newest = int(number)
    return place == newest


def passage(needles: str, *columns: str | None) -> str:
    """Return the text around the first of *needles*, a JSON list, with marks."""
    pattern = _pattern_of_needles(needles)
    texts = [unicodedata.normalize("NFD", column) for column in columns if column]
    for text in texts:
        first = pattern.search(text)
        if first is not None:
            marked = _marked(text, first.start(), pattern)
            return unicodedata.normalize("NFC", marked)
    return unicodedata.normalize("NFC", texts[0][:_EXCERPT]) if texts else ""


@lru_cache(maxsize=8)
def _pattern_of_needles(needles: str) -> re.Pattern[str]:
    alternatives = []
    for needle in sorted(_loaded(needles), key=len, reverse=True):
        letters = unicodedata.normalize("NFD", fold(needle))
        accents = f"{_ACCENTS.pattern[:-1]}*"
        alternatives.append("".join(re.escape(letter) + accents for letter in letters))
    return re.compile("|".join(alternatives), re.IGNORECASE)


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
    # Not a template: `re` fills it in by four calls for each match.
    shown = pattern.sub(lambda found: f"{opening}{found[0]}{closing}", text[begin:end])
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


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


@lru_cache(maxsize=8)
def _loaded(term: str) -> Any:
    return json.loads(term)


def _occurs(term: Any, texts: list[str], beside: str) -> bool:
    """Return whether a term is true of *texts* together; *beside* are their words."""
    match term:
        case ["inside", text, _]:
            return any(each in stored for each in _spellings(text) for stored in texts)
        case ["literal", text, is_prefix]:
            return any(
                _has_literal(each, is_prefix, texts) for each in _spellings(text)
            )
        case ["words", text, is_prefix]:
            return _has_words(text, is_prefix, texts) or (
                " " not in text and _has_beside(text, is_prefix, beside)
            )
        case ["either", terms]:
            return any(_occurs(each, texts, beside) for each in terms)
        case ["all", terms, excluded]:
            return all(_occurs(each, texts, beside) for each in terms) and not any(
                _occurs(each, texts, beside) for each in excluded
            )
    raise ValueError(f"not a term: {term!r}")


def _spellings(literal: str) -> list[str]:
    """Return a text as it may be stored."""
    # The arguments of calls are indexed as JSON, in which a backslash is written twice;
    # the view of the index has a space in place of the second one.
    as_json = literal.replace("\\", "\\ ")
    return [literal] if as_json == literal else [literal, as_json]


def _has_literal(literal: str, is_prefix: bool, texts: list[str]) -> bool:
    """Return whether *literal* is in a text, from the beginning to the end of words."""
    for text in texts:
        if literal in text and _bordered(literal, is_prefix).search(text):
            return True
    return False


def _has_words(phrase: str, is_prefix: bool, texts: list[str]) -> bool:
    """Return whether words are in a row in a text, the last one perhaps longer."""
    first = phrase.split(" ", 1)[0]
    for text in texts:
        # Nearly every text is decided by this, in C.
        if first in text and _bordered(phrase, is_prefix, r"[\W_]+").search(text):
            return True
    return False


def _has_beside(word: str, is_prefix: bool, beside: str) -> bool:
    end = "" if is_prefix else " "
    return f" {MARK}{word}{end}" in f" {beside} "


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
    letters = _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", letters)
