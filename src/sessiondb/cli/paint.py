"""Lines of styled spans as rows for this screen: wrapped or cut, coloured or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sessiondb.cli.text import TAB, cut, wrap

if TYPE_CHECKING:
    from sessiondb.cli.output import Screen
    from sessiondb.formats.transcript.terminal import Line, Span

_STYLE = attrgetter("style")
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
    joined = _coloured if screen.color else _plain
    for line in lines:
        indent = line.indent
        for row in _rows(line, screen):
            yield joined([indent, *row], screen)
            indent = line.hang or indent


def _rows(line: Line, screen: Screen) -> Iterator[Sequence[Span]]:
    if not screen.terminal:
        yield line.spans
        return

    text = "".join([span.text for span in line.spans])
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


def _plain(spans: list[Span], screen: Screen) -> str:
    del screen
    return "".join([span.text for span in spans])


def _coloured(spans: list[Span], screen: Screen) -> str:
    filled = [span for span in spans if span.text]
    pieces = []
    for style, group in groupby(filled, key=_STYLE):
        text = "".join([span.text for span in group])
        pieces.append(screen.style(text, **_STYLES[style]))
    return "".join(pieces)
