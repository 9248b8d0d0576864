"""The page: header with the facts, a table of the prompts, a section for each turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.formats.html.code import block as code_block
from sessiondb.formats.html.prose import prose
from sessiondb.formats.html.style import STYLE
from sessiondb.formats.html.text import escaped
from sessiondb.formats.transcript import Transcript, spooled
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Entry,
    Fold,
    Head,
    Label,
    Nested,
    Note,
    Picture,
    Prose,
    Todos,
)
from sessiondb.formats.transcript.words import moment

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
_EXACT = dict.fromkeys(("Directory", "Session"), ' class="exact"')
_MARKS = {"completed": "✓", "in_progress": "▸", "cancelled": "✗"}
_TONES = {
    "ok": ("✓", "completed"),
    "odd": ("!", "ended with an error code"),
    "error": ("✗", "failed"),
    "open": ("…", "no result"),
}


class Page:
    """How a page is written: a `Look`."""

    SUFFIX = ".html"
    PICTURES = True

    def opening(self, title: str) -> str:
        """The head of the document."""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escaped(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        )

    def closing(self) -> str:
        """The end of the document."""
        return "</main>\n<footer>Times are UTC. Written by sessiondb.</footer>\n</body>\n</html>\n"

    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session."""
        level = min(transcript.depth * 2 + 1, 5)
        yield f'<article id="{transcript.anchor}">\n'
        yield from spooled(
            self._turns(transcript, level + 1), lambda: _head(transcript.head(), level)
        )
        tail = "".join(
            piece for block in transcript.tail() for piece in self._block(block)
        )
        if tail:
            yield f'<section class="tail">\n{tail}</section>\n'
        yield "</article>\n"

    def _turns(self, transcript: Transcript, level: int) -> Iterator[str]:
        opened = False
        for entry in transcript.entries():
            if entry.role == "user" or not opened:
                yield "</section>\n" if opened else ""
                yield '<section class="turn">\n'
                opened = True
            yield from self._entry(entry, level)
        yield "</section>\n" if opened else ""

    def _entry(self, entry: Entry, level: int) -> Iterator[str]:
        yield f'<div class="entry {entry.role}" id="{escaped(entry.anchor)}">\n'
        if entry.role not in ("event", "system"):
            yield _by(entry, level)
        for block in entry.blocks:
            yield from self._block(block)
        yield "</div>\n"

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self._block(block)

    def _block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Prose):
            yield prose(block.text)
        elif isinstance(block, Code):
            yield code_block(block.text, block.language) + "\n"
            if block.left_out:
                yield f'<p class="cut">… {escaped(block.left_out)}</p>\n'
        elif isinstance(block, Label):
            yield f'<p class="label">{escaped(block.text)}</p>\n'
        elif isinstance(block, Note):
            yield f'<p class="note {block.tone}">{escaped(block.text)}</p>\n'
        elif isinstance(block, Picture):
            yield _picture(block)
        elif isinstance(block, Todos):
            yield _todos(block)
        elif isinstance(block, Fold):
            yield from self._fold(block)
        else:
            yield from self._nested(block)

    def _fold(self, fold: Fold) -> Iterator[str]:
        subject = (
            f'<span class="subject">{escaped(fold.subject)}</span>'
            if fold.subject
            else ""
        )
        facts = "".join(
            f'<span class="fact">{escaped(fact)}</span>' for fact in fold.facts
        )
        mark = _mark(*_TONES[fold.tone]) if fold.tone else ""
        line = f"{mark}<strong>{escaped(fold.label)}</strong>{subject}{facts}"
        names = escaped(" ".join(filter(None, ["fold", fold.kind, fold.tone])))
        if not fold.blocks:
            yield f'<div class="{names}"><div class="line">{line}</div></div>\n'
            return
        yield f'<details class="{names}"><summary class="line">{line}</summary>\n'
        yield '<div class="inner">\n'
        yield from self._blocks(fold.blocks)
        yield "</div>\n</details>\n"

    def _nested(self, nested: Nested) -> Iterator[str]:
        session = nested.transcript.export.session
        name = escaped(session.title or session.id)
        yield '<details class="fold nested"><summary class="line"><strong>Subagent</strong>'
        yield f'<span class="subject">{name}</span></summary>\n<div class="inner">\n'
        yield from self.article(nested.transcript)
        yield "</div>\n</details>\n"


def _head(head: Head, level: int) -> str:
    facts = "".join(
        f"<div><dt>{escaped(name)}</dt> <dd{_EXACT.get(name, '')}>{escaped(value)}</dd></div>\n"
        for name, value in head.facts
    )
    title = f'<h{level} dir="auto">{escaped(head.title)}</h{level}>'
    out = f"<header>\n{title}\n<dl>\n{facts}</dl>\n</header>\n"
    if head.prompts:
        lines = "".join(
            f'<li><a href="#{escaped(line.anchor)}" dir="auto">{escaped(line.text)}</a></li>\n'
            for line in head.prompts
        )
        out += f'<nav aria-label="Prompts"><p class="label">Prompts</p>\n<ol>\n{lines}</ol></nav>\n'
    return out


def _by(entry: Entry, level: int) -> str:
    at = moment(entry.time, "%Y-%m-%dT%H:%M:%SZ")
    shown = moment(
        entry.time, "%H:%M:%S" if entry.role != "user" else "%Y-%m-%d %H:%M:%S"
    )
    time = (
        f'<a href="#{escaped(entry.anchor)}"><time datetime="{at}">{shown}</time></a>'
    )
    facts = "".join(f"<span>{escaped(fact)}</span>" for fact in entry.facts)
    if entry.continues:
        return f'<p class="by again">{facts}{time}</p>\n' if facts else ""
    who = escaped(entry.who)
    name = (
        f"<h{level}>{who}</h{level}>"
        if entry.role == "user"
        else f"<strong>{who}</strong>"
    )
    model = f"<span>{escaped(entry.model)}</span>" if entry.model else ""
    return f'<div class="by">{name}{model}{facts}{time}</div>\n'


def _mark(sign: str, spoken: str) -> str:
    return f'<span class="mark" role="img" aria-label="{escaped(spoken)}">{sign}</span>'


def _picture(picture: Picture) -> str:
    name = escaped(picture.name)
    if picture.data is None:
        facts = escaped(picture.facts)
        return f'<p class="note">Image {name} ({facts}) is not in this page.</p>\n'
    source = f"data:{picture.mime};base64,{picture.data}"
    return f'<figure><img src="{source}" alt="{name}"><figcaption>{name}</figcaption></figure>\n'


def _todos(todos: Todos) -> str:
    items = "".join(
        f'<li class="{"done" if status in ("completed", "cancelled") else ""}">'
        f"{_mark(_MARKS.get(status, '○'), status)}<span>{escaped(text)}</span></li>\n"
        for status, text in todos.items
    )
    return f'<ul class="todos">\n{items}</ul>\n'
