"""Lines of styled spans as rows for this screen: wrapped or cut, coloured or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
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
    """Yield the rows of *lines*; in a pipe without colours, a line at a time."""
    if not (screen.terminal or screen.color):
        yield from map(_piped, lines)
        return

    written = partial(_coloured, screen=screen) if screen.color else _plain
    rows = _rows if screen.terminal else _row
    for line in chain.from_iterable(map(_separate, lines)):
        indent = line.indent
        for row in rows(line, screen):
            yield written((indent, *row))
            indent = line.hang or indent


def _piped(line: Line) -> str:
    indent, text = line.indent.text, _plain(line.spans)
    return indent + text.replace("\n", f"\n{indent}")


def _separate(line: Line) -> list[Line]:
    """Return each of the lines that a line of one span contains."""
    if len(line.spans) != 1:
        return [line]

    span = line.spans[0]
    rows = span.text.split("\n")
    return [line._replace(spans=(span._replace(text=row),)) for row in rows]


def _row(line: Line, _: Screen) -> Iterator[Sequence[Span]]:
    yield line.spans


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


def _plain(spans: Sequence[Span]) -> str:
    # Most lines are one span.
    return spans[0].text if len(spans) == 1 else "".join([s.text for s in spans])


def _coloured(spans: Iterable[Span], screen: Screen) -> str:
    filled = filter(attrgetter("text"), spans)

    # Neighbours of one style share its escape sequences.
    pieces = []
    for style, group in groupby(filled, key=attrgetter("style")):
        pieces.append(screen.style(_plain(list(group)), **_STYLES[style]))
    return "".join(pieces)
