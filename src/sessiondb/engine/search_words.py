"""Words beside a text: what is in it, and is not a word of the index.

An index takes every run of letters and digits as one word. People also search for
a part of an identifier (``old`` in ``oldString``), for a piece of a script without
spaces, and for an emoji. These are the column ``words`` of a part, NULL where there are
none, as nearly always in English prose:

* the parts of identifiers, in lower case;
* the pairs of letters of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese, with
  the last letter alone, so that every letter begins a word; and what is beside them;
* emoji, in hexadecimal, since an index drops them.

Each begins with `MARK`, a letter for private use, which an index keeps: so they
are in no phrase, and no text has them. An identifier is at most 64 characters long, and
has at most one number if it is longer than 24: others are hashes and encoded bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from sessiondb.patterns import late_pattern

#: The first character of each word.
MARK = "\ue000"
_LONGEST, _LONGEST_WITH_NUMBERS, _SHORTEST = 64, 24, 2
WORD = late_pattern(r"[^\W_]+")
#: Letters and marks of scripts without spaces, and of Korean.
RUN = (
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007"
    "\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]+"
)
#: As much of a run as one pair of letters says, in scripts without marks.
PAIR = (
    "[\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3]{1,2}"
)
EMOJI = late_pattern("[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_BORDER = late_pattern(
    r"(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[0-9])(?=[A-Z][a-z])"
)
#: The same, from the capital: capitals are rare, so that prose is scanned at once.
_CAPITAL = late_pattern(
    r"[A-ZÀ-ÖØ-Þ](?:(?<=[a-zß-öø-ÿ].)|(?<=[0-9A-Z].)(?=[a-z]))", re.DOTALL
)
_NUMBER = late_pattern("[0-9]+")
#: The kind of each letter of an ASCII text: small, capital, digit, other.
_KINDS = bytes(
    ord("a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else " ")
    for c in map(chr, range(256))
)
#: Where `_CAPITAL` finds a capital, by kinds of letters.
_NAMES = (b"aA", b"AAa", b"0Aa")


def words_of_part(text: str | None, input: str | None, title: str | None) -> str | None:
    """Return the words beside the texts of a part; *input* is JSON."""
    return words_beside((text, words_of_json(input), title))


def words_of_json(json_text: str | None) -> str | None:
    """Return a JSON text as an index has it: spaces in place of its escapes."""
    if json_text is None or "\\" not in json_text:
        return json_text
    words = json_text.replace("\\\\", "\\ ")
    for escape in "ntrbf":
        words = words.replace(f"\\{escape}", " ")
    return words


def words_beside(texts: Iterable[str | None]) -> str | None:
    """Return the words beside *texts*, separated by spaces; None if there are none."""
    # Nothing that is looked for has a space in it, and most pieces occur again.
    pieces: set[str] = set()
    for text in texts:
        if text and not (text.isascii() and not _has_name(text)):
            pieces.update(text.split())
    if not pieces:
        return None

    tokens: set[str] = set()
    words: set[str] = set()
    for piece in pieces:
        if not piece.isascii():
            composed = unicodedata.normalize("NFC", piece)
            tokens.update(WORD.findall(composed))
            words.update(name_of_emoji(emoji) for emoji in EMOJI.findall(composed))
            for run in re.findall(RUN, composed):
                words.update(pieces_of_run(run))
        elif _CAPITAL.search(piece):
            tokens.update(WORD.findall(piece))

    for token in tokens:
        words.update(_parts_of_token(token))
    return " ".join(MARK + word for word in sorted(words)) or None


def is_beside(text: str) -> bool:
    """Return whether a text is not made of words of the index, but of those beside."""
    return not text.isascii() and bool(re.search(RUN, text) or EMOJI.search(text))


def _has_name(text: str) -> bool:
    """Return whether `_CAPITAL` finds something in an ASCII text, much faster.

    Every text of every turn gets here, and most have no such name.
    """
    kinds = text.encode().translate(_KINDS)
    return b"A" in kinds and any(name in kinds for name in _NAMES)


def pieces_of_run(run: str) -> Iterator[str]:
    """Yield the pairs of letters of a run of `RUN`, and its last letter."""
    # Without vowel signs and tones, at which words are split.
    letters = "".join(letter for letter in run if letter.isalnum())
    for place in range(len(letters)):
        yield letters[place : place + 2]


def name_of_emoji(emoji: str) -> str:
    """Return the word of an emoji, which no text has."""
    return f"{MARK}{ord(emoji):x}"


def _parts_of_token(token: str) -> Iterator[str]:
    pieces = [token]
    if not token.isascii():
        # Letters beside a run are one word with it.
        pieces = [piece for piece in re.split(RUN, token) if piece]
        if pieces != [token]:
            yield from (piece.lower() for piece in pieces)

    for piece in pieces:
        if len(piece) <= _LONGEST and _CAPITAL.search(piece):
            yield from _parts_of_identifier(piece)


def _parts_of_identifier(name: str) -> list[str]:
    if len(name) > _LONGEST_WITH_NUMBERS and len(_NUMBER.findall(name)) > 1:
        return []
    parts = [part.lower() for part in _BORDER.split(name)]
    return [part for part in parts if len(part) >= _SHORTEST]
