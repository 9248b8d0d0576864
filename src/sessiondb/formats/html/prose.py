"""Markdown in a page: HTML is text, links lead to the web or mail, images are links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from sessiondb.formats.html.code import block
from sessiondb.formats.html.text import allowed, escaped
from sessiondb.words import visible

#: Characters that are rendered; a longer text was pasted, and is shown verbatim.
LONGEST = 60_000
_DEEPEST = 60
_LINKS = ("link_open", "link_close")


class _Renderer(RendererHTML):
    """The renderer of the library, with our links, images, headings and code."""

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = _attribute(tokens[idx], "href")
        return f"<a {_target(address)}>"

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = _attribute(tokens[idx], "src")
        name = escaped(f"[image: {tokens[idx].content or address}]")

        # A link cannot contain a link.
        linked = sum(token.nesting for token in tokens[:idx] if token.type in _LINKS)
        if linked or not allowed(address):
            return f'<span title="{escaped(address)}">{name}</span>'
        return f"<a {_target(address)}>{name}</a>"

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<{_lower(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"</{_lower(tokens[idx].tag)}>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Code, coloured like all other code."""
        token = tokens[idx]
        language = next(iter(token.info.lower().split()), None)
        return block(token.content.rstrip("\n"), language) + "\n"

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Indented code, which has no language."""
        return self.fence(tokens, idx)

    def table_open(self, *_: Any) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _attribute(token: Token, name: str) -> str:
    return str(token.attrGet(name) or "")


def _target(address: str) -> str:
    """Return the attributes of a link; one to a forbidden place only shows it."""
    if allowed(address):
        return f'href="{escaped(address)}" rel="noopener noreferrer"'
    return f'title="{escaped(address)}"'


def _lower(tag: str) -> str:
    """Return a heading below ours: a text does not structure the page."""
    return f"h{min(int(tag[1:]) + 3, 6)}"


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Accept every address: where a link may lead is decided when it is written."""
        del url
        return True


_MARKDOWN = _Markdown("js-default", {"maxNesting": _DEEPEST}, renderer_cls=_Renderer)


def prose(text: str) -> str:
    """Return *text*, which is Markdown, as HTML."""
    inner = None
    if len(text) <= LONGEST:
        inner = _rendered(visible(text))

    # Nothing is lost: a text that cannot be rendered is shown as it is.
    if inner is None:
        inner = f'<pre class="wrap">{escaped(text)}</pre>'
    return f'<div class="said" dir="auto">{inner}</div>\n'


def _rendered(text: str) -> str | None:
    """Return Markdown as HTML; None of one that is nested too deep."""
    tokens = _MARKDOWN.parse(text)

    # The parser leaves out deeper levels without a report.
    if max((token.level for token in tokens), default=0) > _DEEPEST - 4:
        return None
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
