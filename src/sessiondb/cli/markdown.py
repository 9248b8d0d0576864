"""Markdown on a terminal: its headings, code, lists and emphasis are styled.

The text stays as it was written, marks included, so that it can be copied, and is the
same in a pipe and without colours. https://spec.commonmark.org/0.31.2/
"""

from __future__ import annotations

from collections.abc import Iterator

from sessiondb.formats.transcript.terminal import Span
from sessiondb.patterns import late_pattern

#: The first line of fenced code; an info string behind backticks has none in it.
_FENCE = late_pattern(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = late_pattern(r" {0,3}#{1,6}(?: |$)")
_QUOTE = late_pattern(r" {0,3}>")
#: A bullet or a number before an item of a list.
_ITEM = late_pattern(r" *(?:[-*+]|[0-9]{1,9}[.)])(?= )")
_INLINE = late_pattern(
    r"(?P<code>(?<!`)`[^`\n]+`(?!`))"
    r"|(?P<strong>\*\*(?=[^\s*])[^*\n]*[^\s*]\*\*)"
    r"|(?<![\w*])(?P<emphasis>\*(?=[^\s*])[^*\n]*(?<![\s*])\*(?![\w*]))"
)


def styled_lines(text: str) -> Iterator[tuple[Span, ...]]:
    """Yield the spans of each line of a Markdown text."""
    fence = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if fence:
            yield (Span(line, "code"),)
            if _closes(fence, line):
                fence = ""
        elif opening is not None:
            fence = opening[1]
            yield (Span(line, "code"),)
        elif _HEADING.match(line):
            yield (Span(line, "strong"),)
        elif _QUOTE.match(line):
            yield (Span(line, "dim"),)
        else:
            yield tuple(_inline_spans(line))


def _closes(fence: str, line: str) -> bool:
    mark = line.strip()
    is_indented = line.startswith("    ")
    return not is_indented and len(mark) >= len(fence) and not mark.strip(fence[0])


def _inline_spans(line: str) -> Iterator[Span]:
    end = 0
    item = _ITEM.match(line)
    if item is not None:
        end = item.end()
        yield Span(line[:end], "name")

    for match in _INLINE.finditer(line, end):
        yield Span(line[end : match.start()])
        yield Span(match[0], str(match.lastgroup))
        end = match.end()
    yield Span(line[end:])
