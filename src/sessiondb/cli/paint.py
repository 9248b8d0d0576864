"""Lines of styled spans as rows for this screen: wrapped or cut, coloured or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sessiondb.cli.text import TAB, cut, wrap

if TYPE_CHECKING:
    from sessiondb.cli.output import Screen
    from sessiondb.formats.transcript.terminal import Line, Span

#: Columns that a text keeps, however deep it is indented.
MIN_COLUMN = 8
_STYLES: dict[str, dict[str, Any]] = {
    "": {},
    "bad": {"fg": "red"},
    "dim": {"dim": True},
    "good": {"fg": "green"},
    "name": {"fg": "cyan", "bold": True},
    "strong": {"bold": True},
    "thought": {"dim": True, "italic": True},
}


def painted(lines: Iterable[Line], screen: Screen) -> Iterator[str]:
    """Yield the rows of *lines*, without line ends; in a pipe one row for each line."""
    written: Callable[[Iterable[Span]], str] = _plain
    if screen.color:
        written = partial(_coloured, screen=screen)

    if not screen.terminal:
        for line in lines:
            yield written((line.indent, *line.spans))
        return

    for line in lines:
        indent = line.indent
        for row in _rows(line, screen):
            yield written((indent, *row))
            indent = line.hang or indent


def _rows(line: Line, screen: Screen) -> Iterator[Sequence[Span]]:
    text = _plain(line.spans)
    room = max(screen.width - len(line.indent.text), MIN_COLUMN)
    if line.cut:
        yield _slice(line, 0, cut(text.expandtabs(TAB), room))
        return

    start = 0
    for row in wrap(text, room):
        # Between rows the spaces are dropped; a text of one span need not be found.
        start = text.find(row, start) if len(line.spans) > 1 else 0
        yield _slice(line, start, row)
        start += len(row)


def _slice(line: Line, start: int, row: str) -> list[Span]:
    """Return *row*, which begins at *start* of the text, in the styles of its spans."""
    if len(line.spans) == 1:
        return [line.spans[0]._replace(text=row)]

    pieces, end = [], 0
    for span in line.spans:
        begin, end = end, end + len(span.text)
        piece = row[max(begin - start, 0) : max(end - start, 0)]
        pieces.append(span._replace(text=piece))
    return pieces


def _plain(spans: Iterable[Span]) -> str:
    return "".join([span.text for span in spans])


def _coloured(spans: Iterable[Span], screen: Screen) -> str:
    filled = filter(attrgetter("text"), spans)

    # Neighbours of one style share its escape sequences.
    pieces = []
    for style, group in groupby(filled, key=attrgetter("style")):
        pieces.append(screen.style(_plain(group), **_STYLES[style]))
    return "".join(pieces)
