"""The words of parts, titles and prompts as vectors: see `search_tables`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sessiondb.engine.search_comparison import fold
from sessiondb.engine.search_words import WORD, is_beside, words_beside

#: Characters of a word in the index, where a longer one is cut short. A word of a
#: vector has at most 2,046 bytes.
LONGEST_WORD = 400
#: The most positions that a vector keeps of one word, and the last one that it tells
#: from those after it.
_MOST_POSITIONS, _LAST_POSITION = 255, 16_383
#: Bytes of the words of one entry, with their positions; a vector has at most 1 MB.
_MOST_BYTES = 800_000
#: Characters of a text from which its words are taken one by one. A list of them would
#: take ten times the bytes of the text.
_LARGE = 1 << 20
#: What has a meaning in the text of a vector or of an array: words beside a text may be
#: those of another program.
_NO_SIGNS = str.maketrans(dict.fromkeys("'\"\\", " "))
#: Characters of the texts of a part that are tried as one vector first.
_SMALL = 100_000


class IndexEntry(NamedTuple):
    """A row of the index, without its place."""

    chunk: int
    is_in_order: bool
    #: The text of a vector.
    words: str


def words_in(text: str) -> list[str]:
    """Return the words of a text in their order, as the index has them."""
    words: list[str] = WORD.findall(fold(text))
    if max(map(len, words), default=0) > LONGEST_WORD:
        return [word[:LONGEST_WORD] for word in words]
    return words


def _each_word(text: str) -> Iterable[str]:
    """Return what `words_in` returns, but without a list for a large text."""
    if len(text) < _LARGE:
        return words_in(text)
    return (found[0][:LONGEST_WORD] for found in WORD.finditer(fold(text)))


def entries_of(texts: Iterable[str | None], words: str | None) -> list[IndexEntry]:
    """Return the entries of a part with these texts, and *words* beside them."""
    every = [text or "" for text in texts]
    pieces = fold(words or "").translate(_NO_SIGNS).split()
    more_words = [word[:LONGEST_WORD] for word in pieces]
    if sum(map(len, every)) <= _SMALL:
        vector = _whole_vector(every, more_words)
        if vector is not None:
            return [IndexEntry(0, is_in_order=True, words=vector)]
    return _entries_of_large(every, more_words)


def _whole_vector(texts: Sequence[str], more_words: Sequence[str]) -> str | None:
    """Return the text of a vector that loses nothing; None if one may not hold it all.

    Each word is in it as often as in the texts. The server brings its places together:
    to do so here takes four times as long as all of this.
    """
    lexemes: list[str] = []
    all_words: list[str] = []
    first = 1
    for text in texts:
        of_text = words_in(text)
        all_words += of_text
        lexemes += [f"'{word}':{place}" for place, word in enumerate(of_text, first)]
        # A gap: no phrase begins in one text and ends in the next.
        first += len(of_text) + 1
    if len(all_words) > _MOST_POSITIONS and (
        first > _LAST_POSITION or max(Counter(all_words).values()) > _MOST_POSITIONS
    ):
        return None
    lexemes += [f"'{word}'" for word in more_words]
    vector = " ".join(lexemes)
    # A character has at most 4 bytes.
    return vector if 4 * len(vector) <= _MOST_BYTES else None


def _entries_of_large(
    texts: Sequence[str], more_words: Sequence[str]
) -> list[IndexEntry]:
    """Return the entries of a part of whose words a vector may not hold all."""
    positions: defaultdict[str, list[int]] = defaultdict(list)
    first = 1
    for text in texts:
        place = first - 1
        for place, word in enumerate(_each_word(text), first):
            places = positions[word]
            # One more than a vector keeps shows that some are lost. To list all would
            # take many times the bytes of a large text.
            if len(places) <= _MOST_POSITIONS:
                places.append(place)
        first = place + 2
    for word in more_words:
        positions.setdefault(word, [])

    is_in_order = first <= _LAST_POSITION and all(
        len(each) <= _MOST_POSITIONS for each in positions.values()
    )
    chunks = list(_chunks_of(positions))
    if len(chunks) == 1:
        return [IndexEntry(0, is_in_order, chunks[0])]
    return [IndexEntry(number, False, chunk) for number, chunk in enumerate(chunks, 1)]


def words_of_text(text: str) -> str | None:
    """Return the text of a vector for a title or prompt; None if it is too large.

    Of words beside a text it has those that scripts without spaces and emoji need. The
    others are of identifiers, of which titles and prompts are not found by a part.
    """
    beside = words_beside([piece for piece in text.split() if is_beside(piece)])
    words = {word[:LONGEST_WORD] for word in _each_word(text)}
    words.update(word[:LONGEST_WORD] for word in fold(beside or "").split())
    if sum([4 * len(word) + 8 for word in words]) > _MOST_BYTES:
        return None
    return " ".join([f"'{word}'" for word in sorted(words)])


def _chunks_of(positions: dict[str, list[int]]) -> Iterator[str]:
    """Yield the texts of the vectors for these words, at least one text."""
    lexemes: list[str] = []
    size = 0
    for word, numbers in positions.items():
        kept = [min(each, _LAST_POSITION) for each in numbers[:_MOST_POSITIONS]]
        # A character has at most 4 bytes.
        size += 4 * len(word) + 2 * len(kept) + 8
        if size > _MOST_BYTES and lexemes:
            yield " ".join(lexemes)
            lexemes, size = [], 0
        places = f":{','.join(map(str, kept))}" if kept else ""
        lexemes.append(f"'{word}'{places}")
    yield " ".join(lexemes)
