"""Markdown in a page: no HTML passes, links go to the web or mail, images are links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from sessiondb.formats.html.code import block
from sessiondb.formats.html.text import allowed, escaped
from sessiondb.formats.transcript.words import visible

#: Characters that are rendered; what is longer was pasted, and is shown as it is.
LONGEST = 60_000


class _Renderer(RendererHTML):
    """What the library would write, with our links, images, headings and code."""

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = str(tokens[idx].attrGet("href") or "")
        if allowed(address):
            return f'<a href="{escaped(address)}" rel="noopener noreferrer">'
        return f'<a title="{escaped(address)}">'

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = str(tokens[idx].attrGet("src") or "")
        name = escaped(f"[image: {tokens[idx].content or address}]")
        inside = sum(
            t.nesting for t in tokens[:idx] if t.type in ("link_open", "link_close")
        )
        if inside or not allowed(address):
            return f'<span title="{escaped(address)}">{name}</span>'
        return f'<a href="{escaped(address)}" rel="noopener noreferrer">{name}</a>'

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<{_lower(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"</{_lower(tokens[idx].tag)}>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Code, coloured as all of it."""
        name = tokens[idx].info.split()
        return (
            block(tokens[idx].content.rstrip("\n"), name[0].lower() if name else None)
            + "\n"
        )

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Code that is indented: no language."""
        return self.fence(tokens, idx)

    def table_open(self, *_: Any) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _lower(tag: str) -> str:
    """Return a heading below ours: what was said does not structure the page."""
    return f"h{min(int(tag[1:]) + 3, 6)}"


_DEEPEST = 60


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Take every address for a link: where one may go is decided when it is written."""
        del url
        return True


_MARKDOWN = _Markdown("js-default", {"maxNesting": _DEEPEST}, renderer_cls=_Renderer)


def prose(text: str) -> str:
    """Return *text*, which is Markdown, as HTML."""
    tokens = _MARKDOWN.parse(visible(text)) if len(text) <= LONGEST else None
    # Of what is nested deeper the parser leaves out the rest without a word.
    if tokens is None or any(token.level > _DEEPEST - 4 for token in tokens):
        inner = f'<pre class="wrap">{escaped(text)}</pre>'
    else:
        inner = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return f'<div class="said" dir="auto">{inner}</div>\n'
