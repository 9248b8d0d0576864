"""Code in a page, coloured if its language is known and it is not too long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from sessiondb.formats.html.text import escaped
from sessiondb.patterns import late_pattern
from sessiondb.words import visible

#: Characters that are coloured; the time a lexer takes is not bounded otherwise.
LONGEST = 30_000
_LONGEST_LINE = 2_000
_FORMATTER = HtmlFormatter(nowrap=True)
_DIFFS = ("diff", "patch", "udiff")
_DIFF_HEADS = ("+++", "---", "***", "diff ", "Index: ", "index ", "====")
#: The classes of a diff: head, hunk, added and removed lines.
_DIFF_KINDS = dict.fromkeys(_DIFF_HEADS, "dh") | {"@": "dh", "+": "di", "-": "dd"}
_DIFF_START = late_pattern("|".join(map(re.escape, _DIFF_KINDS)))


def output(lines: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return a ``pre`` with lines of pieces, each in the style of an output."""
    inner = "\n".join(["".join([_piece(*piece) for piece in line]) for line in lines])
    return f"<pre><code>{inner}</code></pre>"


def _piece(text: str, style: str) -> str:
    if not style:
        return escaped(text)
    names = " ".join([f"o-{word}" for word in style.split()])
    return f'<span class="{names}">{escaped(text)}</span>'


def block(text: str, language: str | None) -> str:
    """Return a ``pre`` with *text*; a diff is coloured line by line."""
    inner = _diff(text) if language in _DIFFS else coloured(text, language)
    return f"<pre><code>{inner}</code></pre>"


def coloured(text: str, language: str | None) -> str:
    """Return *text* escaped, and coloured if possible."""
    lexer = _lexer(language or "")
    # A text without an end, or a line without one, could keep a lexer busy.
    longest_line = max(map(len, text.split("\n")))
    if lexer is None or len(text) > LONGEST or longest_line > _LONGEST_LINE:
        return escaped(text)

    lines = highlight(visible(text), lexer, _FORMATTER)
    return str(lines).rstrip("\n")


@lru_cache(64)
def _lexer(language: str) -> Any:
    """Return the lexer of a language, named or by the ending of its files, or None."""
    finders = (
        (get_lexer_by_name, language),
        (get_lexer_for_filename, f"file.{language}"),
    )
    for find, name in finders:
        with suppress(ClassNotFound, ValueError):
            return find(name, stripnl=False)
    return None


def _diff(text: str) -> str:
    return "\n".join(map(_diff_line, text.split("\n")))


def _diff_line(line: str) -> str:
    start = _DIFF_START.match(line)
    if start is None:
        return escaped(line)
    return f'<span class="{_DIFF_KINDS[start[0]]}">{escaped(line)}</span>'
