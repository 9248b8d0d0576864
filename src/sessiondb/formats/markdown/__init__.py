"""markdown: a transcript as text that renders everywhere and is readable as it is.

The structure is ours: headings, ``details``, fences. `prose` makes sure that nothing
in a transcript adds to it. Needs no extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sessiondb.formats.markdown.prose import (
    attribute,
    code,
    fenced,
    inline,
    prose,
    summary,
)
from sessiondb.formats.protocol import Exporter
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Command,
    Entry,
    Fold,
    Head,
    Label,
    Nested,
    Note,
    Output,
    Picture,
    Prose,
    Todos,
)
from sessiondb.formats.transcript.detail import DETAILS
from sessiondb.formats.transcript.families import documents, spooled
from sessiondb.formats.transcript.session import Transcript
from sessiondb.model import Document, Export, Loss
from sessiondb.words import moment

__all__ = ["EXPORTER"]

_EXACT = ("Directory", "Session")
_TONES = {"ok": "✓ ", "odd": "! ", "error": "✗ ", "open": "… "}
#: Entries without a line that names who speaks: what they contain names itself.
_UNNAMED = ("event", "system")
_PLAIN_TODOS = ("completed", "pending")


def write(
    sessions: Iterable[Export], *, detail: str = "normal", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session that is not nested, *together* one for all."""
    yield from documents(sessions, _Markdown(), detail, together)


class _Markdown:
    """The look of a Markdown file, see `Look`."""

    SUFFIX = ".md"
    PICTURES = False

    def __init__(self) -> None:
        self._writers: dict[type[Block], Callable[[Any], Iterator[str]]] = {
            Prose: _prose,
            Code: _code,
            Command: _code,
            Output: _code,
            Label: _label,
            Note: _note,
            Picture: _picture,
            Todos: _todos,
            Fold: self._fold,
            Nested: self._nested,
        }

    def opening(self, title: str) -> str:
        """Nothing: each session has its own title."""
        del title
        return ""

    def closing(self) -> str:
        """The end of the file."""
        return "---\n\n*Times are UTC. Written by sessiondb.*\n"

    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session; the headings of a nested one are two levels lower."""
        level = min(transcript.depth * 2 + 1, 5)

        pieces = (
            piece
            for entry in transcript.entries()
            for piece in self._entry(entry, level + 1)
        )
        yield from spooled(pieces, lambda: _head(transcript.head(), level))
        yield from self._blocks(transcript.tail())

    def _entry(self, entry: Entry, level: int) -> Iterator[str]:
        if entry.role == "user":
            heading = _joined(entry.who, moment(entry.time), *entry.facts)
            yield f'<a id="{attribute(entry.anchor)}"></a>\n\n'
            yield f"{'#' * level} {heading}\n\n"
        elif entry.role not in _UNNAMED and (entry.facts or not entry.continues):
            facts = [entry.model, *entry.facts, moment(entry.time, "%H:%M:%S")]
            yield f"**{inline(entry.who)}** · {_joined(*facts)}\n\n"

        yield from self._blocks(entry.blocks)

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self._writers[type(block)](block)

    def _fold(self, fold: Fold) -> Iterator[str]:
        mark = _TONES.get(fold.tone, "")
        if not fold.blocks:
            line = _joined(fold.subject, *fold.facts)
            # A quote: `details` without content would offer to open nothing.
            yield f"> {mark}**{inline(fold.label)}** {line}".rstrip() + "\n\n"
            return

        label = summary(fold.label)
        line = " · ".join(filter(None, map(summary, (fold.subject, *fold.facts))))
        yield f"<details><summary>{mark}<b>{label}</b> {line}</summary>\n\n"
        yield from self._blocks(fold.blocks)
        yield "</details>\n\n"

    def _nested(self, nested: Nested) -> Iterator[str]:
        session = nested.transcript.export.session
        name = summary(session.title or session.id)

        yield f"<details><summary><b>Subagent</b> {name}</summary>\n\n"
        yield from self.article(nested.transcript)
        yield "</details>\n\n"


def _prose(block: Prose) -> Iterator[str]:
    yield f"{prose(block.text)}\n\n"


def _code(block: Code) -> Iterator[str]:
    if block.label:
        yield f"**{inline(block.label)}**\n\n"
    yield f"{fenced(block.text, block.language)}\n\n"

    if block.left_out:
        yield f"*… {inline(block.left_out)} left out*\n\n"


def _label(label: Label) -> Iterator[str]:
    yield f"**{inline(label.text)}**\n\n"


def _note(note: Note) -> Iterator[str]:
    mark = "✗ " if note.tone else ""
    yield f"> {mark}{inline(note.text)}\n\n"


def _picture(picture: Picture) -> Iterator[str]:
    yield f"> Image: {_joined(picture.name, picture.facts)}\n\n"


def _todos(todos: Todos) -> Iterator[str]:
    for status, text in todos.items:
        mark = "x" if status == "completed" else " "
        more = "" if status in _PLAIN_TODOS else f" *({inline(status)})*"
        yield f"- [{mark}] {inline(text)}{more}\n"
    yield "\n"


def _joined(*texts: str) -> str:
    return " · ".join(inline(text) for text in texts if text)


def _head(head: Head, level: int) -> str:
    out = [f"{'#' * level} {inline(head.title)}\n\n"]
    for name, value in head.facts:
        shown = code(value) if name in _EXACT else inline(value)
        out.append(f"- **{name}:** {shown}\n")
    out.append("\n")

    if head.prompts:
        out.append("**Prompts**\n\n")
        for number, line in enumerate(head.prompts, 1):
            text = inline(line.text) or "…"
            out.append(f"{number}. [{text}](#{attribute(line.anchor)})\n")
        out.append("\n")
    return "".join(out)


EXPORTER = Exporter(write, together=True, details=DETAILS)
