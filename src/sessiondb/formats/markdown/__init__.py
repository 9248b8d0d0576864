"""markdown: a transcript as text that renders everywhere and is readable as it is.

The structure is ours: headings, ``details``, fences. `prose` makes sure that nothing
in a transcript adds to it. Needs no extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.formats.markdown.prose import (
    attribute,
    code,
    fenced,
    inline,
    summary,
)
from sessiondb.formats.markdown.prose import prose as markdown
from sessiondb.formats.protocol import Exporter
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Fold,
    LabelBlock,
    Nested,
    Note,
    Picture,
    Prose,
    Todos,
    TranscriptEntry,
    TranscriptHead,
)
from sessiondb.formats.transcript.detail import DETAILS
from sessiondb.formats.transcript.families import spool_pieces, transcript_documents
from sessiondb.formats.transcript.look import Look
from sessiondb.formats.transcript.session import Transcript
from sessiondb.model import Document, Export, Loss
from sessiondb.words import moment

__all__ = ["EXPORTER"]

_EXACT = ("Directory", "Session")
_TONES = {"ok": "✓ ", "odd": "! ", "error": "✗ ", "open": "… "}


def write(
    sessions: Iterable[Export], *, detail: str = "normal", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session that is not nested, *together* one for all."""
    yield from transcript_documents(sessions, _Markdown(), detail, together)


class _Markdown(Look):
    """The look of a Markdown file, see `Look`."""

    SUFFIX = ".md"
    PICTURES = False

    def opening(self, title: str) -> str:
        """Nothing: each session has its own title."""
        del title
        return ""

    def closing(self) -> str:
        """The end of the file."""
        return "---\n\n*Times are UTC. Written by sessiondb.*\n"

    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session; the headings of a nested one are two levels lower."""
        level = transcript.level
        pieces = (
            piece
            for entry in transcript.entries()
            for piece in self._entry(entry, level + 1)
        )
        yield from spool_pieces(pieces, lambda: _head(transcript.head(), level))
        yield from self._write_blocks(transcript.tail())

    def _entry(self, entry: TranscriptEntry, level: int) -> Iterator[str]:
        if entry.role == "user":
            heading = _joined(entry.who, moment(entry.time), *entry.facts)
            yield f'<a id="{attribute(entry.anchor)}"></a>\n\n'
            yield f"{'#' * level} {heading}\n\n"
        elif entry.is_named and (entry.facts or not entry.continues):
            facts = [entry.model, *entry.facts, moment(entry.time, "%H:%M:%S")]
            yield f"**{inline(entry.who)}** · {_joined(*facts)}\n\n"

        yield from self._write_blocks(entry.blocks)

    def _write_block(self, block: Block) -> Iterator[str]:
        match block:
            case Prose(text):
                yield f"{markdown(text)}\n\n"
            case Code(text, language, label, left_out):
                if label:
                    yield f"**{inline(label)}**\n\n"
                yield f"{fenced(text, language)}\n\n"
                if left_out:
                    yield f"*… {inline(left_out)} left out*\n\n"
            case LabelBlock(text):
                yield f"**{inline(text)}**\n\n"
            case Note(text, tone):
                yield f"> {_TONES.get(tone, '')}{inline(text)}\n\n"
            case Picture(name):
                yield f"> Image: {_joined(name, block.facts)}\n\n"
            case Todos():
                for mark, text, status in block.marked_items():
                    more = f" *({inline(status)})*" if status else ""
                    yield f"- [{mark}] {inline(text)}{more}\n"
                yield "\n"
            case Fold():
                yield from self._write_fold(block)
            case Nested():
                yield from self._write_nested(block)

    def _write_fold(self, fold: Fold) -> Iterator[str]:
        mark = _TONES.get(fold.tone, "")
        if not fold.blocks:
            line = _joined(fold.subject, *fold.facts)
            # A quote: `details` without content would offer to open nothing.
            yield f"> {mark}**{inline(fold.label)}** {line}".rstrip() + "\n\n"
            return

        label = summary(fold.label)
        line = " · ".join(filter(None, map(summary, (fold.subject, *fold.facts))))
        yield f"<details><summary>{mark}<b>{label}</b> {line}</summary>\n\n"
        yield from self._write_blocks(fold.blocks)
        yield "</details>\n\n"

    def _write_nested(self, nested: Nested) -> Iterator[str]:
        name = summary(nested.name)
        yield f"<details><summary><b>Subagent</b> {name}</summary>\n\n"
        yield from self.article(nested.transcript)
        yield "</details>\n\n"


def _joined(*texts: str) -> str:
    return " · ".join(inline(text) for text in texts if text)


def _head(head: TranscriptHead, level: int) -> str:
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


EXPORTER = Exporter(write, together=True, details=DETAILS, shows_cost=True)
