"""Lines of styled spans as rows for this screen: wrapped or cut, coloured or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sessiondb.cli.markdown import styled_lines
from sessiondb.cli.text import TAB, cut, wrap

if TYPE_CHECKING:
    from sessiondb.cli.output import Screen
    from sessiondb.formats.transcript.terminal import Span, TerminalLine

#: Columns that a text keeps, however deep it is indented.
MIN_COLUMN = 8
#: The words of a style; an output has styles of several, and colours of its own.
_STYLES: dict[str, dict[str, Any]] = {
    "bad": {"fg": "red"},
    "blue": {"fg": "blue"},
    "code": {"fg": "yellow"},
    "cyan": {"fg": "cyan"},
    "dim": {"dim": True},
    "emphasis": {"italic": True},
    "good": {"fg": "green"},
    "green": {"fg": "green"},
    "magenta": {"fg": "magenta"},
    "markdown": {},
    "name": {"fg": "cyan", "bold": True},
    "red": {"fg": "red"},
    "strong": {"bold": True},
    "thought": {"dim": True, "italic": True},
    "underline": {"underline": True},
    "yellow": {"fg": "yellow"},
}
_DIFF_STYLES = {"+": "good", "-": "bad", "@": "dim"}


def painted(lines: Iterable[TerminalLine], screen: Screen) -> Iterator[str]:
    """Return the rows of *lines*; in a pipe without colours, a line at a time."""
    if screen.terminal or screen.color:
        return _styled_rows(lines, screen)
    return (_plain_line(line) for line in lines)


def _plain_line(line: TerminalLine) -> str:
    indent, text = line.indent.text, line.text + line.end.text
    # Most lines have no indent.
    return indent + text.replace("\n", f"\n{indent}") if indent else text


def _styled_rows(lines: Iterable[TerminalLine], screen: Screen) -> Iterator[str]:
    for text in lines:
        for line in _separate_lines(text):
            indent = line.indent
            rows = (
                _wrapped_rows(line, screen)
                if screen.terminal
                else [(*line.styled_spans(), line.end)]
            )
            for row in rows:
                spans = (indent, *row)
                yield (
                    _colored_text(spans, screen) if screen.color else _plain_text(spans)
                )
                indent = line.hang or indent


def _separate_lines(line: TerminalLine) -> Iterator[TerminalLine]:
    """Yield each line of a text; in a diff and in Markdown each has its own style."""
    if line.spans:
        yield line
        return

    if line.style == "markdown":
        for spans in styled_lines(line.text.expandtabs(TAB)):
            text = "".join(span.text for span in spans)
            yield line._replace(text=text, style="", spans=spans)
        return

    for text in line.text.split("\n"):
        style = _diff_style(text) if line.style == "diff" else line.style
        yield line._replace(text=text, style=style)


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "dim"
    return _DIFF_STYLES.get(line[:1], "")


def _wrapped_rows(line: TerminalLine, screen: Screen) -> Iterator[Sequence[Span]]:
    from rich.cells import cell_len

    room = max(screen.width - len(line.indent.text), MIN_COLUMN)
    if line.cut:
        least = max(room - cell_len(line.end.text), MIN_COLUMN)
        text = cut(line.text.expandtabs(TAB), least)
        yield (*_slice_spans(line, 0, text), line.end)
        return
    if line.end.text:
        spans = (*line.styled_spans(), line.end)
        line = line._replace(text=line.text + line.end.text, spans=spans)

    start = 0
    for row in wrap(line.text, room):
        # Between rows the spaces are dropped; a text of one style need not be found.
        start = line.text.find(row, start) if line.spans else 0
        yield _slice_spans(line, start, row)
        start += len(row)


def _slice_spans(line: TerminalLine, start: int, row: str) -> Sequence[Span]:
    """Return *row*, which begins at *start* of the text, in the styles of its spans."""
    if not line.spans:
        return line._replace(text=row).styled_spans()

    pieces, end = [], 0
    for span in line.spans:
        begin, end = end, end + len(span.text)
        piece = row[max(begin - start, 0) : max(end - start, 0)]
        pieces.append(span._replace(text=piece))
    return pieces


def _plain_text(spans: Iterable[Span]) -> str:
    return "".join([span.text for span in spans])


def _colored_text(spans: Iterable[Span], screen: Screen) -> str:
    filled = [span for span in spans if span.text]
    # Neighbours of one style share its escape sequences.
    pieces = []
    for style, group in groupby(filled, key=lambda span: span.style):
        looks: dict[str, Any] = {}
        for word in style.split():
            looks |= _STYLES[word]
        pieces.append(screen.style(_plain_text(group), **looks))
    return "".join(pieces)
