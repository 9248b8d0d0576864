"""The language of searches: what a query means, whatever index answers it.

    half export            both words, in one message
    "half export"          these words in a row; with symbols the text itself: "foo("
    trim* OR split         either; a trailing * is the beginning of a word
    *illes*                these characters anywhere; *illes is the same
    Osaka -villes          without the second; NOT villes is the same
    (trim OR split) csv    parentheses group

A word with symbols means itself: ``lib/csv.mjs``, ``--no-such``. A word may be a part
of an identifier, a piece of a script without spaces, or an emoji. Anything without a
meaning here is refused in one line and never ignored: that would answer another
question.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.patterns import late_pattern

#: Groups in one query: an index may have a limit of its own for their nesting.
MAX_GROUPS = 50
#: Words that are no words in capitals.
OPERATORS = frozenset({"AND", "OR", "NOT"})
_QUOTED = late_pattern(r'-?\**"[^"]*"\**')
_SPACES = late_pattern(r"\s+")


@dataclass(frozen=True, slots=True)
class Text:
    """A word, or the words in a row that were quoted."""

    text: str
    #: Whether its last word may be longer.
    is_prefix: bool = False
    #: Whether it may be anywhere, also inside of words.
    is_substring: bool = False

    @property
    def words(self) -> list[str]:
        """The pieces without spaces."""
        return self.text.split()

    @property
    def is_literal(self) -> bool:
        """Whether it has symbols, which an index of words does not know."""
        return not all(word.isalnum() for word in self.words)


@dataclass(frozen=True, slots=True)
class All:
    """Terms of which each occurs, and others of which none does."""

    terms: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """Terms of which one occurs at least."""

    terms: tuple[Term, ...]


Term: TypeAlias = Text | All | Either


class Cover(NamedTuple):
    """Where to look for messages that have a query in several parts.

    Each of them has a part that matches ``match``, as a value of ``:match``. ``spread``
    is the value of ``:spread``, with which those parts are compared.
    """

    match: str
    spread: str


class SearchQuery(NamedTuple):
    """The terms of a query: the parameters of `engine.search_index.SearchIndex`.

    ``match`` is the value of ``:match``, opaque to the caller, None if the index knows
    nothing of it, so that texts are scanned; ``comparison`` that of ``:comparison``,
    with which texts that match are compared, None if the words of the index say
    everything. ``inside`` is all of a comparison, if it is a text that may be inside of
    words: whatever has it as it is needs no other. With ``scanned`` the index of titles
    and prompts does not know what is searched for, so all of them are compared with it.
    ``own_id`` is what may be the id of a session in its program, or its beginning.
    ``needles`` are what an excerpt of a scanned text shows.

    ``together`` is what no part of a message may have, or None. ``covers`` are the ways
    to find what several parts of a message have together, each of which is enough;
    there are none if one part has it all. For a scan that is ``spread``, of parts that
    have ``cover``.
    """

    match: str | None
    comparison: str | None = None
    inside: str | None = None
    scanned: str | None = None
    own_id: str | None = None
    needles: str | None = None
    together: str | None = None
    covers: tuple[Cover, ...] = ()
    spread: str | None = None
    cover: str | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters of a statement, without those that say nothing.

        They are about one part, title or prompt: see `of_messages` for messages.
        """
        params: dict[str, Any] = {"match": self.match}
        for name in ("comparison", "inside", "scanned", "own_id", "needles"):
            value = getattr(self, name)
            if value is not None:
                params[name] = value
        return params

    def of_messages(self) -> dict[str, Any]:
        """Return the further parameters for the parts of a message together."""
        params: dict[str, Any] = {}
        for name in ("together", "spread", "cover"):
            value = getattr(self, name)
            if value is not None:
                params[name] = value
        return params


def parse_query(query: object) -> Term:
    """Return what a query means; raises `InvalidInputError` if it means nothing."""
    if not isinstance(query, str):
        raise InvalidInputError(f"a query is a string, not {abridged(query)}")

    # Lone surrogates become "?", which is in no word.
    readable = query.replace("\0", " ").encode("utf-8", "replace").decode()
    reader = _Reader(list(_tokens_of(readable)))
    term = reader.read_either()
    if reader.has_more:
        raise _refused("a ) closes nothing")
    return term


def texts_in(term: Term) -> Iterator[Text]:
    """Yield every word and quoted text of a query, those that are excluded, too."""
    match term:
        case Text():
            yield term
        case All(terms, excluded):
            for each in (*terms, *excluded):
                yield from texts_in(each)
        case Either(terms):
            for each in terms:
                yield from texts_in(each)


def is_spread(term: Term) -> bool:
    """Return whether several parts of a message may have *term* together."""
    match term:
        case Text():
            return False
        case Either(terms):
            return any(is_spread(each) for each in terms)
        case All(terms):
            return len(terms) > 1 or is_spread(terms[0])


def has_exclusion(term: Term) -> bool:
    """Return whether there is something in *term* that must not occur."""
    match term:
        case Text():
            return False
        case Either(terms):
            return any(has_exclusion(each) for each in terms)
        case All(terms, excluded):
            return bool(excluded) or any(has_exclusion(each) for each in terms)


def _tokens_of(query: str) -> Iterator[str]:
    """Yield parentheses, operators, and words or quoted texts with their marks.

    A parenthesis groups at the edge of a word alone: ``parse()`` is a word.
    """
    place, is_open = 0, 0
    while place < len(query):
        spaces = _SPACES.match(query, place)
        quoted = _QUOTED.match(query, place)
        if spaces:
            place = spaces.end()
        elif query[place] == "(" or query.startswith("-(", place):
            is_open += 1
            yield query[place : place + 2].rstrip() if query[place] == "-" else "("
            place += 2 if query[place] == "-" else 1
        elif quoted:
            place = quoted.end()
            yield quoted[0]
        elif query[place] == ")" and is_open:
            is_open -= 1
            place += 1
            yield ")"
        else:
            word = _word_at(query, place, is_open)
            if '"' in word:
                raise _refused(f"a quote is not closed: {abridged(word)}")
            place += len(word)
            yield word


def _word_at(query: str, place: int, is_open: int) -> str:
    """Return the word at *place*, without parentheses that close a group."""
    end = _SPACES.search(query, place)
    word = query[place : end.start() if end else len(query)]
    while is_open and word.endswith(")") and word.count(")") > word.count("("):
        word, is_open = word[:-1], is_open - 1
    return word


class _Reader:
    """Tokens that become a term, from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = self._groups = 0

    @property
    def has_more(self) -> bool:
        return self._place < len(self._tokens)

    @property
    def _next(self) -> str:
        return self._tokens[self._place] if self.has_more else ""

    def read_either(self) -> Term:
        """Read terms that OR separates, up to the end of the query or of a group."""
        terms = [self._read_all()]
        while self._next == "OR":
            self._place += 1
            terms.append(self._read_all())
        return terms[0] if len(terms) == 1 else Either(tuple(terms))

    def _read_all(self) -> Term:
        terms: list[Term] = []
        excluded: list[Term] = []
        while self.has_more and self._next not in ("OR", ")"):
            if self._next == "AND":
                self._place += 1
                if not terms or self._next in ("", "OR", "AND", ")"):
                    raise _refused("AND stands between two words")
                continue
            if self._next == "NOT":
                self._place += 1
                excluded.append(self._read_term("NOT"))
            elif _is_excluded(self._next):
                self._tokens[self._place] = self._next[1:]
                excluded.append(self._read_term("-"))
            else:
                terms.append(self._read_term(""))

        if not terms and excluded:
            raise _refused(
                "a query needs a word that must occur, beside those that must not",
                'a word that begins with - is quoted: "-x"',
            )
        if not terms:
            raise _refused("the query has no words", "search for letters or digits")
        if len(terms) == 1 and not excluded:
            return terms[0]
        return All(tuple(terms), tuple(excluded))

    def _read_term(self, operator: str) -> Term:
        token = self._next
        if token in ("", ")") or token in OPERATORS:
            raise _refused(f"{operator} needs a word after it")
        self._place += 1
        is_group = token == "("  # noqa: S105  not a password
        if not is_group:
            return _text_of(token)

        self._groups += 1
        if self._groups > MAX_GROUPS:
            raise _refused(f"the query has more than {MAX_GROUPS} groups")
        term = self.read_either()
        if self._next != ")":
            raise _refused("a ( is not closed", 'symbols are quoted: "foo("')
        self._place += 1
        return term


def _is_excluded(token: str) -> bool:
    """Return whether a token begins with the sign for NOT.

    ``--no-such`` is a word, and so is a dash between others.
    """
    after = token[1:2]
    is_text = after.isalnum() or after in ('"', "(", "*") or not after.isascii()
    return token.startswith("-") and bool(after) and is_text


def _text_of(word: str) -> Text:
    if word == "NEAR":
        raise _refused("search has no operator NEAR", 'quote it: "NEAR"')

    is_substring = word.startswith("*")
    is_prefix = word.endswith("*") and not is_substring
    text = word.strip("*")
    if text.startswith('"'):
        text = " ".join(text.strip('"').split())
    if not text:
        raise _refused("the query has no words", "search for letters or digits")
    return Text(text, is_prefix, is_substring)


def _refused(reason: str, hint: str | None = None) -> InvalidInputError:
    return InvalidInputError(
        reason, hint=hint or 'words, "a phrase", OR, -word, word*, *part*, ( )'
    )
