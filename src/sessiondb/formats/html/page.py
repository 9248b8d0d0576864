"""The page: a header with the facts, a table of prompts, a section for each turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessiondb.formats.html.code import block as code_block
from sessiondb.formats.html.code import output as output_block
from sessiondb.formats.html.index import index_article
from sessiondb.formats.html.prose import prose as markdown
from sessiondb.formats.html.style import STYLE
from sessiondb.formats.html.text import escaped
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Fold,
    LabelBlock,
    Nested,
    Note,
    Picture,
    PromptLine,
    Prose,
    Todos,
    TranscriptEntry,
    TranscriptHead,
)
from sessiondb.formats.transcript.families import spool_pieces
from sessiondb.formats.transcript.look import Look
from sessiondb.formats.transcript.session import Transcript
from sessiondb.model import Export
from sessiondb.words import count, moment

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
_OPENING = f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
"""
_CLOSING = """\
</main>
<footer>Times are UTC. Written by sessiondb.</footer>
</body>
</html>
"""
_EXACT = dict.fromkeys(("Directory", "Session"), ' class="exact"')
_MARKS = {"completed": "✓", "in_progress": "▸", "cancelled": "✗"}
_DONE = ("completed", "cancelled")
_TONES = {
    "ok": ("✓", "completed"),
    "odd": ("!", "ended with an error code"),
    "error": ("✗", "failed"),
    "open": ("…", "no result"),
}
#: The class of a fold, if it is not its kind.
_CLASSES = {"system": "note"}


class HtmlPage(Look):
    """The look of a page, see `Look`."""

    SUFFIX = ".html"
    PICTURES = True

    def opening(self, title: str) -> str:
        """The head of the document."""
        head = f"<title>{escaped(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        return f"{_OPENING}{head}<body>\n<main>\n"

    def closing(self) -> str:
        """The end of the document."""
        return _CLOSING

    def index(self, pages: Sequence[tuple[str, Export]]) -> str:
        """The page that links to all others."""
        title = count(len(pages), "session")
        return f"{self.opening(title)}{index_article(pages)}{_CLOSING}"

    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session; the headings of a nested one are two levels lower."""
        level = transcript.level
        turns = self._turns(transcript, level + 1)

        # The head counts what the turns contain: it is made after them.
        yield f'<article id="{transcript.anchor}">\n'
        yield from spool_pieces(turns, lambda: _head(transcript.head(), level))

        tail = "".join(self._write_blocks(transcript.tail()))
        if tail:
            yield f'<section class="tail">\n{tail}</section>\n'
        yield "</article>\n"

    def _turns(self, transcript: Transcript, level: int) -> Iterator[str]:
        # There is none to close before the first one.
        end = ""
        for entry in transcript.entries():
            if entry.role == "user" or not end:
                yield f'{end}<section class="turn">\n'
                end = "</section>\n"
            yield from self._entry(entry, level)

        yield end

    def _entry(self, entry: TranscriptEntry, level: int) -> Iterator[str]:
        yield f'<div class="entry {entry.role}" id="{escaped(entry.anchor)}">\n'
        if entry.is_named:
            yield _again(entry) if entry.continues else _by(entry, level)

        yield from self._write_blocks(entry.blocks)
        yield "</div>\n"

    def _write_block(self, block: Block) -> Iterator[str]:
        match block:
            case Prose(text):
                yield markdown(text)
            case Code(text, language, label, left_out, styles):
                if label:
                    yield f'<p class="label">{escaped(label)}</p>\n'
                if styles:
                    yield output_block(block.styled_lines()) + "\n"
                else:
                    yield code_block(text, language) + "\n"
                if left_out:
                    yield f'<p class="cut">… {escaped(left_out)} left out</p>\n'
            case LabelBlock(text):
                yield f'<p class="label">{escaped(text)}</p>\n'
            case Note(text, tone):
                yield f'<p class="note {tone}">{escaped(text)}</p>\n'
            case Picture():
                yield _figure(block)
            case Todos(items):
                yield '<ul class="todos">\n'
                for status, text in items:
                    done = "done" if status in _DONE else ""
                    mark = _mark(_MARKS.get(status, "○"), status)
                    item = f"{mark}<span>{escaped(text)}</span>"
                    yield f'<li class="{done}">{item}</li>\n'
                yield "</ul>\n"
            case Fold():
                yield from self._write_fold(block)
            case Nested():
                yield from self._write_nested(block)

    def _write_fold(self, fold: Fold) -> Iterator[str]:
        line = _line(fold)
        kind = _CLASSES.get(fold.kind, fold.kind)
        names = escaped(f"fold {kind} {fold.tone}".rstrip())

        if not fold.blocks:
            yield f'<div class="{names}"><div class="line">{line}</div></div>\n'
            return

        yield f'<details class="{names}"><summary class="line">{line}</summary>\n'
        yield '<div class="inner">\n'
        yield from self._write_blocks(fold.blocks)
        yield "</div>\n</details>\n"

    def _write_nested(self, nested: Nested) -> Iterator[str]:
        name = escaped(nested.name)
        yield '<details class="fold nested"><summary class="line">'
        yield "<strong>Subagent</strong>"
        yield f'<span class="subject">{name}</span></summary>\n'

        yield '<div class="inner">\n'
        yield from self.article(nested.transcript)
        yield "</div>\n</details>\n"


def _figure(picture: Picture) -> str:
    name = escaped(picture.name)
    if picture.data is None:
        facts = escaped(picture.facts)
        # One that could run something, or too large: its name and size are all.
        return f'<p class="note">Image {name} ({facts}) is not in this page.</p>\n'

    source = f"data:{picture.mime};base64,{picture.data}"
    caption = f"<figcaption>{name}</figcaption>"
    return f'<figure><img src="{source}" alt="{name}">{caption}</figure>\n'


def _line(fold: Fold) -> str:
    """Return what is visible of a fold before it is opened."""
    mark = _mark(*_TONES[fold.tone]) if fold.tone else ""
    label = f"<strong>{escaped(fold.label)}</strong>"
    subject = escaped(fold.subject)
    if subject:
        subject = f'<span class="subject">{subject}</span>'

    facts = [f'<span class="fact">{escaped(fact)}</span>' for fact in fold.facts]
    return "".join([mark, label, subject, *facts])


def _head(head: TranscriptHead, level: int) -> str:
    facts = "".join(_fact(name, value) for name, value in head.facts)
    title = f'<h{level} dir="auto">{escaped(head.title)}</h{level}>'

    header = f"<header>\n{title}\n<dl>\n{facts}</dl>\n</header>\n"
    return header + _table(head.prompts) if head.prompts else header


def _fact(name: str, value: str) -> str:
    value = f"<dd{_EXACT.get(name, '')}>{escaped(value)}</dd>"
    return f"<div><dt>{escaped(name)}</dt> {value}</div>\n"


def _table(prompts: list[PromptLine]) -> str:
    items = []
    for line in prompts:
        anchor, text = escaped(line.anchor), escaped(line.text)
        items.append(f'<li><a href="#{anchor}" dir="auto">{text}</a></li>\n')

    label = '<p class="label">Prompts</p>'
    return f'<nav aria-label="Prompts">{label}\n<ol>\n{"".join(items)}</ol></nav>\n'


def _by(entry: TranscriptEntry, level: int) -> str:
    """Return the line that names who speaks; a prompt is a heading, with its date."""
    tag = f"h{level}" if entry.role == "user" else "strong"
    name = f"<{tag}>{escaped(entry.who)}</{tag}>"
    model = f"<span>{escaped(entry.model)}</span>" if entry.model else ""
    return f'<div class="by">{name}{model}{_facts(entry)}{_time(entry)}</div>\n'


def _again(entry: TranscriptEntry) -> str:
    """Return that line for a speaker who continues: the new facts, if there are any."""
    if not entry.facts:
        return ""
    return f'<p class="by again">{_facts(entry)}{_time(entry)}</p>\n'


def _facts(entry: TranscriptEntry) -> str:
    return "".join(f"<span>{escaped(fact)}</span>" for fact in entry.facts)


def _time(entry: TranscriptEntry) -> str:
    exact = moment(entry.time, "%Y-%m-%dT%H:%M:%SZ")
    form = "%Y-%m-%d %H:%M:%S" if entry.role == "user" else "%H:%M:%S"
    time = f'<time datetime="{exact}">{moment(entry.time, form)}</time>'
    return f'<a href="#{escaped(entry.anchor)}">{time}</a>'


def _mark(sign: str, spoken: str) -> str:
    return f'<span class="mark" role="img" aria-label="{escaped(spoken)}">{sign}</span>'
