"""The input history of aider: all input as it was typed, with its time.

A file of prompt_toolkit: an entry is a line ``# TIME`` and its text, each line of it
after a ``+``. It has answers to questions, too, so an entry belongs to a prompt only if
it is recorded alike. A prompt between braces has an entry for each line that it was
typed in. Empty input has no entry, nor has input that equals the entry before it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, reduce
from itertools import chain, filterfalse, islice, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sessiondb.errors import SourceError
from sessiondb.formats.aider.conventions import prompt, prompt_of, time_of
from sessiondb.formats.aider.scanner import TOP
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.lines import Line, Lines, opened

#: A header has no milliseconds: input of its second may be of the run before.
_SECOND = 1000


class InputEntry(NamedTuple):
    """An entry: its time in Unix ms and as it is written, and its text."""

    time: int
    stamp: str
    text: str


class Input(NamedTuple):
    """The input of a prompt: its time in Unix ms, its stamp, and its text.

    A prompt between braces has the time of its end but no stamp, because its entries
    stay what they are. One that repeats the entry before it has neither.
    """

    time: int | None
    stamp: str | None
    text: str


class _InputPlace(NamedTuple):
    """The place of an entry, its time, and a digest of its text."""

    time: int
    stamp: str
    line: Line
    digest: bytes


class Inputs:
    """The entries of the file at *path*; memory holds where they are.

    Raises `SourceError` for a file that cannot be read; one that is missing is empty.
    """

    def __init__(self, path: Path, *, is_readable: bool = True) -> None:
        self._path = path
        places = _places(path) if is_readable else ()
        self._places = sorted(places, key=attrgetter("time"))

    def of_runs(self, starts: Sequence[int | None]) -> Iterator[TypedInputs]:
        """Yield the entries of each run, by the times at which they began.

        They end when the next run begins, wherever that is in the file.
        """
        order = sorted(range(len(starts)), key=lambda index: starts[index] or 0)
        ends = {index: starts[next_index] for index, next_index in pairwise(order)}
        for index, start in enumerate(starts):
            yield self._between(start, ends.get(index))

    def _between(self, start: int | None, end: int | None) -> TypedInputs:
        time = attrgetter("time")
        first = bisect_left(self._places, start or 0, key=time)
        last = until = len(self._places)
        if end is not None:
            until = bisect_left(self._places, end, key=time)
            last = bisect_left(self._places, end + _SECOND, key=time)
        return TypedInputs(self, self._places[first:last], first, until - first)

    def numbers(self, key: bytes) -> list[int]:
        """Return the numbers of the entries that are recorded alike, in order."""
        return self._by_key.get(key, [])

    def entry(self, number: int, text: str) -> InputEntry | None:
        """Return the entry with that number; it is read unless it has the *text*."""
        place = self._places[number]
        if place.digest == _text_digest(text):
            return InputEntry(place.time, place.stamp, text)
        return next(self.entries([number]), None)

    def time(self, number: int) -> int:
        """Return the time of an entry."""
        return self._places[number].time

    def entries(self, numbers: Iterable[int]) -> Iterator[InputEntry]:
        """Yield the entries with these numbers, unless they were removed since."""
        with suppress(SourceError), opened(self._path) as lines:
            for number in numbers:
                parsed = _entries(lines, self._places[number].line)
                yield from (entry for _, entry in islice(parsed, 1))

    @cached_property
    def _by_key(self) -> dict[bytes, list[int]]:
        """The numbers of all entries, in order, by the prompts that end with them."""
        numbers = {place.line: number for number, place in enumerate(self._places)}
        keys: list[tuple[int, bytes]] = []
        with suppress(SourceError), opened(self._path) as lines:
            for line, key in _keys(_entries(lines, TOP)):
                if line in numbers:
                    keys.append((numbers[line], key))

        by_key: dict[bytes, list[int]] = {}
        for number, key in sorted(keys):
            by_key.setdefault(key, []).append(number)
        return by_key


class TypedInputs:
    """The entries of one run, each of which belongs to one prompt at most.

    Their numbers begin with *first*, and *own* of them cannot be of the next run.
    """

    def __init__(
        self, inputs: Inputs, places: list[_InputPlace], first: int, count: int
    ) -> None:
        self._inputs = inputs
        self._places = places
        self._first = self._next = first
        self._own = range(first, first + count)
        self._taken: set[int] = set()

    @property
    def is_known(self) -> bool:
        """Whether the history has any input of the run."""
        return bool(self._places)

    @property
    def digest(self) -> str:
        """A digest that changes with any of the entries."""
        hasher = hashlib.sha256()
        for place in self._places:
            hasher.update(b"%d %s" % (place.time, place.digest))
        return hasher.hexdigest()[:16]

    def rewind(self) -> None:
        """Begin again with the first entry."""
        self._next = self._first
        self._taken.clear()

    def left(self) -> list[list[str]]:
        """Return the time and text of each entry that was not taken."""
        left = filterfalse(self._taken.__contains__, self._own)
        return [[entry.stamp, entry.text] for entry in self._inputs.entries(left)]

    def take(self, block: str) -> Input | None:
        """Return the input of a recorded prompt, none of which is before the last one.

        None if there is none; the block is unchanged then.
        """
        if not self.is_known:
            return None

        text = prompt_of(block)
        key = _key(text)
        number = self._number(key)
        if number is not None:
            self._taken.add(number)
            entry = self._inputs.entry(number, text)
            return entry and Input(*entry)

        number = self._number(reduce(_with_line, text.split("\n"), _NO_LINES)[0])
        if number is not None:
            return Input(self._inputs.time(number), None, text)

        is_repeated = self._next - 1 in self._inputs.numbers(key)
        return Input(None, None, text) if is_repeated else None

    def _number(self, key: bytes) -> int | None:
        """Return the number of the next entry with that key, and go to the one after.

        None if the run has none.
        """
        numbers = self._inputs.numbers(key)
        place = bisect_left(numbers, self._next)
        if place == len(numbers) or numbers[place] >= self._first + len(self._places):
            return None

        self._next = numbers[place] + 1
        return numbers[place]


# -- keys ----------------------------------------------------------------------


def _key(text: str) -> bytes:
    # A recorded prompt has lost its last spaces.
    return _digest(text.rstrip())


def _digest(text: str, prefix: bytes = b"") -> bytes:
    return hashlib.sha256(prefix + text.encode("utf-8", "replace")).digest()[:12]


def _keys(entries: Iterable[tuple[Line, InputEntry]]) -> Iterator[tuple[Line, bytes]]:
    """Yield the keys of the prompts that may end with each of the *entries*."""
    braces: _Braces | None = None
    for line, entry in entries:
        yield line, _key(prompt_of(prompt(entry.text)))
        if entry.text.startswith("{") and (braces is None or braces.is_closed):
            braces = _Braces(entry.text)
        elif braces is not None:
            yield from ((line, key) for key in braces.add(entry.text))


#: A digest of some lines that were typed, and the last one of them.
_Typed: TypeAlias = tuple[bytes, str]
_NO_LINES: _Typed = (b"{", "")


def _with_line(lines: _Typed, line: str) -> _Typed:
    """Return *lines* and one more; an empty or repeated one has no entry."""
    bare = line.rstrip()
    return lines if bare in {"", lines[1]} else (_digest(bare, lines[0]), bare)


class _Braces:
    """The entries of a prompt between braces, the first of which begins with one.

    Before 0.64 the text may begin beside that brace, and ends with a brace at the end
    of a line. Since then both braces have a line of their own, and may have a tag.
    """

    def __init__(self, first: str) -> None:
        self.is_closed = False
        self._closing = f"{first[1:]}}}"
        self._between = _NO_LINES
        self._beside = _with_line(_NO_LINES, first[1:])

    def add(self, line: str) -> Iterator[bytes]:
        """Add an entry, and yield the keys of the prompts that may end with it."""
        if line == self._closing:
            self.is_closed = True
            yield self._between[0]

        if line.endswith("}"):
            self.is_closed = True
            yield _with_line(self._beside, line[:-1])[0]

        self._between = _with_line(self._between, line)
        self._beside = _with_line(self._beside, line)


# -- the file --------------------------------------------------------------------


def _places(path: Path) -> Iterator[_InputPlace]:
    if file_stamp(path) is None:
        return

    with opened(path) as lines:
        for line, entry in _entries(lines, TOP):
            yield _InputPlace(entry.time, entry.stamp, line, _text_digest(entry.text))


def _text_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:12]


def _entries(lines: Lines, line: Line) -> Iterator[tuple[Line, InputEntry]]:
    """Yield the entries from *line* on, each with the line of its time.

    Lines that are not of an entry with a time are passed over.
    """
    head, text_lines = b"", list[bytes]()
    number, offset = line
    for raw in chain(lines.lines_from(offset), [b""]):
        if raw.startswith(b"+"):
            text_lines.append(raw)
        else:
            # Any line without a plus ends an entry, also one that is not a time.
            entry = _entry(head, text_lines) if text_lines else None
            if entry is not None:
                yield line, entry
            head, line, text_lines = raw, Line(number, offset), []
        number, offset = number + 1, offset + len(raw)


def _entry(head: bytes, lines: list[bytes]) -> InputEntry | None:
    """Return the entry with these lines after its *head*, if that is a time."""
    # The program writes no "\r" of its own, not even on Windows: unless all of the file
    # was converted, it is one that was typed.
    is_converted = head.endswith(b"\r\n")
    mark, _, when = _text(head, is_converted).partition("# ")
    time = None if mark else time_of(when)
    if time is None:
        return None
    return InputEntry(
        time, when, "\n".join(_text(line, is_converted)[1:] for line in lines)
    )


def _text(line: bytes, is_converted: bool) -> str:
    text = line.decode("utf-8", "replace").removesuffix("\n")
    return text.removesuffix("\r") if is_converted else text
