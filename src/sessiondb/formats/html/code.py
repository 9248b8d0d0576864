"""Code in a page, coloured if its language is known and it is not too long."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from sessiondb.formats.html.text import escaped
from sessiondb.words import visible

#: Characters that are coloured; the time a lexer takes is not bounded otherwise.
LONGEST = 30_000
_LONGEST_LINE = 2_000
_FORMATTER = HtmlFormatter(nowrap=True)
_DIFFS = ("diff", "patch", "udiff")
_DIFF_HEADS = ("+++", "---", "***", "diff ", "Index: ", "index ", "====")
_DIFF_KINDS = {"+": "di", "-": "dd", "@": "dh"}


def block(text: str, language: str | None) -> str:
    """Return a ``pre`` with *text*; a diff is coloured line by line."""
    inner = _diff(text) if language in _DIFFS else coloured(text, language)
    return f"<pre><code>{inner}</code></pre>"


def coloured(text: str, language: str | None) -> str:
    """Return *text* escaped, and coloured if possible."""
    lexer = _lexer(language) if language and len(text) <= LONGEST else None
    if lexer is None or max(map(len, text.split("\n"))) > _LONGEST_LINE:
        return escaped(text)
    return str(highlight(visible(text), lexer, _FORMATTER)).rstrip("\n")


@lru_cache(64)
def _lexer(language: str) -> Any:
    """Return the lexer of a language, by its name or the ending of its files, or None."""
    options = {"stripnl": False}
    try:
        return get_lexer_by_name(language, **options)
    except ClassNotFound:
        pass

    try:
        return get_lexer_for_filename(f"file.{language}", **options)
    except (ClassNotFound, ValueError):
        return None


def _diff(text: str) -> str:
    return "\n".join(map(_diff_line, text.split("\n")))


def _diff_line(line: str) -> str:
    head = line.startswith(_DIFF_HEADS)
    kind = "dh" if head else _DIFF_KINDS.get(line[:1])
    return f'<span class="{kind}">{escaped(line)}</span>' if kind else escaped(line)
