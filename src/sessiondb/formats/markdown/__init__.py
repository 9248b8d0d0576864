"""markdown: a transcript as text that renders everywhere, and reads well where it does not.

The structure is ours: headings, ``details``, fences. `prose` makes sure that nothing
of a transcript adds to it. Needs no extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.formats.markdown.prose import (
    attribute,
    code,
    fenced,
    inline,
    prose,
    summary,
)
from sessiondb.formats.protocol import Exporter
from sessiondb.formats.transcript import DETAILS, Transcript, documents, spooled
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Entry,
    Fold,
    Head,
    Label,
    Note,
    Picture,
    Prose,
    Todos,
)
from sessiondb.formats.transcript.words import moment
from sessiondb.model import Document, Export, Loss

__all__ = ["EXPORTER"]

_EXACT = ("Directory", "Session")
_TONES = {"ok": "✓ ", "odd": "! ", "error": "✗ ", "open": "… "}


def write(
    sessions: Iterable[Export], *, detail: str = "normal", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session that is not in another, *together* one for all of them."""
    yield from documents(sessions, _Text(), detail, together)


class _Text:
    """How Markdown is written: a `Look`."""

    SUFFIX = ".md"
    PICTURES = False

    def opening(self, title: str) -> str:
        """Nothing: each session has its title."""
        del title
        return ""

    def closing(self) -> str:
        """The end of the file."""
        return "---\n\n*Times are UTC. Written by sessiondb.*\n"

    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session."""
        level = min(transcript.depth * 2 + 1, 5)
        yield from spooled(
            (
                piece
                for entry in transcript.entries()
                for piece in self._entry(entry, level + 1)
            ),
            lambda: _head(transcript.head(), level),
        )
        for block in transcript.tail():
            yield from self._block(block)

    def _entry(self, entry: Entry, level: int) -> Iterator[str]:
        if entry.role == "user":
            time = moment(entry.time)
            yield f'<a id="{attribute(entry.anchor)}"></a>\n\n'
            yield f"{'#' * level} {_joined(entry.who, time, *entry.facts)}\n\n"
        elif entry.role not in ("event", "system") and (
            not entry.continues or entry.facts
        ):
            facts = [entry.model, *entry.facts, moment(entry.time, "%H:%M:%S")]
            yield f"**{inline(entry.who)}** · {_joined(*facts)}\n\n"
        for block in entry.blocks:
            yield from self._block(block)

    def _block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Prose):
            yield f"{prose(block.text)}\n\n"
        elif isinstance(block, Code):
            yield f"{fenced(block.text, block.language)}\n\n"
            if block.left_out:
                yield f"*… {inline(block.left_out)}*\n\n"
        elif isinstance(block, Label):
            yield f"**{inline(block.text)}**\n\n"
        elif isinstance(block, Note):
            mark = "✗ " if block.tone else ""
            yield f"> {mark}{inline(block.text)}\n\n"
        elif isinstance(block, Picture):
            yield f"> Image: {_joined(block.name, block.facts)}\n\n"
        elif isinstance(block, Todos):
            for status, text in block.items:
                mark = "x" if status == "completed" else " "
                more = (
                    ""
                    if status in ("completed", "pending")
                    else f" *({inline(status)})*"
                )
                yield f"- [{mark}] {inline(text)}{more}\n"
            yield "\n"
        elif isinstance(block, Fold):
            yield from self._fold(block)
        else:
            session = block.transcript.export.session
            name = summary(session.title or session.id)
            yield f"<details><summary><b>Subagent</b> {name}</summary>\n\n"
            yield from self.article(block.transcript)
            yield "</details>\n\n"

    def _fold(self, fold: Fold) -> Iterator[str]:
        mark = _TONES.get(fold.tone, "")
        if not fold.blocks:
            line = _joined(fold.subject, *fold.facts)
            yield f"> {mark}**{inline(fold.label)}** {line}".rstrip() + "\n\n"
            return
        line = " · ".join(filter(None, map(summary, (fold.subject, *fold.facts))))
        yield f"<details><summary>{mark}<b>{summary(fold.label)}</b> {line}</summary>\n\n"
        for block in fold.blocks:
            yield from self._block(block)
        yield "</details>\n\n"


def _joined(*texts: str) -> str:
    return " · ".join(inline(text) for text in texts if text)


def _head(head: Head, level: int) -> str:
    out = [f"{'#' * level} {inline(head.title)}\n\n"]
    for name, value in head.facts:
        out.append(
            f"- **{name}:** {code(value) if name in _EXACT else inline(value)}\n"
        )
    out.append("\n")
    if head.prompts:
        out.append("**Prompts**\n\n")
        for number, line in enumerate(head.prompts, 1):
            out.append(
                f"{number}. [{inline(line.text) or '…'}](#{attribute(line.anchor)})\n"
            )
        out.append("\n")
    return "".join(out)


EXPORTER = Exporter(write, together=True, details=DETAILS)
