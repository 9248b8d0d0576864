"""Code in a page, coloured where its language is known and it is not too long."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from sessiondb.formats.html.text import escaped
from sessiondb.formats.transcript.words import visible

#: Characters that are coloured; the time a lexer takes is not bounded otherwise.
LONGEST = 30_000
_LONGEST_LINE = 2_000
_FORMATTER = HtmlFormatter(nowrap=True)


def block(text: str, language: str | None) -> str:
    """Return a ``pre`` with *text*; ``diff`` is coloured line by line."""
    inner = (
        _diff(text)
        if language in ("diff", "patch", "udiff")
        else coloured(text, language)
    )
    return f"<pre><code>{inner}</code></pre>"


def coloured(text: str, language: str | None) -> str:
    """Return *text* escaped, and coloured if it can be."""
    lexer = _lexer(language) if language and len(text) <= LONGEST else None
    if lexer is None or max(map(len, text.split("\n"))) > _LONGEST_LINE:
        return escaped(text)
    return str(highlight(visible(text), lexer, _FORMATTER)).rstrip("\n")


@lru_cache(64)
def _lexer(language: str) -> Any:
    """Return the lexer of a language, by its name or the ending of its files."""
    how = {"stripnl": False}
    try:
        return get_lexer_by_name(language, **how)
    except ClassNotFound:
        pass
    try:
        return get_lexer_for_filename(f"file.{language}", **how)
    except (ClassNotFound, ValueError):
        return None


def _diff(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        kind = _kind(line)
        lines.append(
            f'<span class="{kind}">{escaped(line)}</span>' if kind else escaped(line)
        )
    return "\n".join(lines)


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "***", "diff ", "Index: ", "index ", "====")):
        return "dh"
    return {"+": "di", "-": "dd", "@": "dh"}.get(line[:1], "")
