"""The look of a session on a terminal or in a pipe: lines of styled spans, as values.

Nothing here knows a width or a colour; `cli.paint` makes rows and escape sequences of
it. A line that is ``cut`` is shortened to one row, any other is wrapped. All text
passes `visible` here, so a line contains no control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Command,
    Fold,
    Label,
    Note,
    Output,
    Picture,
    Prose,
    Todos,
)
from sessiondb.formats.transcript.composer import CUT_SHORT, Composer
from sessiondb.formats.transcript.detail import Detail, Limits
from sessiondb.formats.transcript.facts import model, parent_name, program
from sessiondb.formats.transcript.pictures import Album
from sessiondb.model import Message, Session
from sessiondb.words import count, excerpt, moment, money, tokens, visible

#: Folded texts keep a few lines, and of each what some rows hold.
FOLDED = Detail(limits=Limits(8, 1 << 30, 400), diffs=Limits(20, 1 << 30, 400))
UNFOLDED = Detail(records=True)
#: One line for each message: no bodies.
_PREVIEW = Detail(bodies=False)
#: Columns of a preview.
PREVIEW = 200
_TONES = {"ok": "good", "error": "bad"}
_DIFF_STYLES = {"+": "good", "-": "bad", "@": "dim"}
_USUAL_ENDS = frozenset({None, "stop", "tool-calls", *CUT_SHORT})
_PLAIN_TODOS = ("completed", "pending")


class Span(NamedTuple):
    """A piece of a line; ``style`` is the name of one, or empty."""

    text: str
    style: str = ""


_MARGIN = Span("")


@dataclass(frozen=True, slots=True)
class Line:
    """A line: each of its rows begins with *indent*, those after the first with *hang*.

    A text of several spans has no tabs.
    """

    spans: tuple[Span, ...] = ()
    indent: Span = _MARGIN
    hang: Span | None = None
    cut: bool = False


class Terminal:
    """Makes the lines of one session; *full* folds nothing and shows the bookkeeping."""

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._album = Album(takes=False)
        self._composer = Composer(UNFOLDED if full else FOLDED, self._album)
        self._writers: dict[type[Block], Callable[[Any, str], Iterator[Line]]] = {
            Prose: _prose,
            Code: self._code,
            Command: self._command,
            Output: self._output,
            Label: _label,
            Note: _note,
            Picture: _picture,
            Todos: _todos,
            Fold: self._fold,
        }
        self._folds: dict[str, Callable[[Fold, str], Iterator[Line]]] = {
            "call": self._call,
            "reasoning": _reasoning,
            # The line of the message says already that it is one.
            "system": lambda fold, indent: self._blocks(fold.blocks, indent),
        }

    def head(self, session: Session) -> Iterator[Line]:
        """Yield the facts that the columns of a session provide, and an empty line."""
        yield Line((Span(_flat(session.title or "(no title)"), "strong"),))
        for facts in _facts(session):
            line = " · ".join(filter(None, facts))
            if line:
                yield Line((Span(_flat(line), "dim"),))
        yield Line()

    def message(self, message: Message, labels: Iterable[str] = ()) -> Iterator[Line]:
        """Yield one message and an empty line, its own line also if nothing is shown."""
        entry = self._composer.entry(message)
        # What a look without pictures leaves out is not reported.
        self._album.losses.clear()

        yield _by(message, labels)
        yield from self._blocks(entry.blocks, "")
        yield Line()

    def _blocks(self, blocks: Iterable[Block], indent: str) -> Iterator[Line]:
        for block in blocks:
            yield from self._writers[type(block)](block, indent)

    def _fold(self, fold: Fold, indent: str) -> Iterator[Line]:
        yield from self._folds.get(fold.kind, self._named_fold)(fold, indent)

    def _call(self, fold: Fold, indent: str) -> Iterator[Line]:
        spans = [Span(f"{indent}▸ {_flat(fold.label)}", "strong")]
        if fold.state:
            spans += [Span(" "), Span(_flat(fold.state), _TONES.get(fold.tone, ""))]
        spans += [Span(f" {_flat(fact)}") for fact in fold.details]
        if not _is_repeated(fold):
            spans.append(Span(f" {_flat(fold.subject)}".rstrip()))
        yield Line(tuple(spans), cut=not self._full)
        yield from self._blocks(fold.blocks, f"{indent}  ")

    def _named_fold(self, fold: Fold, indent: str) -> Iterator[Line]:
        subject = "" if _is_repeated(fold) else fold.subject
        named = " ".join(filter(None, [fold.label, subject]))
        yield from _bracketed(indent, [named, *fold.facts], fold.address)
        for block in fold.blocks:
            bar = indent if isinstance(block, Prose) else f"{indent}  │ "
            yield from self._blocks([block], bar)

    def _code(self, code: Code, indent: str) -> Iterator[Line]:
        label = f"{_flat(code.label)}:" if code.label else ""
        if label and "\n" not in code.text:
            yield from self._rows(code, indent, f"{label} ")
            return

        if label:
            yield self._row(label, indent)
            indent += "  "
        yield from self._rows(code, indent)

    def _command(self, command: Command, indent: str) -> Iterator[Line]:
        yield from self._rows(command, indent, "$ ")

    def _output(self, output: Output, indent: str) -> Iterator[Line]:
        yield from self._rows(output, f"{indent}│ ")

    def _rows(self, code: Code, indent: str, before: str = "") -> Iterator[Line]:
        """Yield the lines of *code*, the first after *before*, the others below it."""
        style_of = _diff_style if code.language == "diff" else _no_style
        for line in visible(code.text).split("\n"):
            yield self._row(before + line, indent, style_of(line))
            before = " " * len(before)
        if code.left_out:
            yield self._row(f"… {code.left_out} (--full)", indent)

    def _row(self, text: str, indent: str, style: str = "") -> Line:
        return Line((Span(text, style),), Span(indent), cut=not self._full)


def _no_style(line: str) -> str:
    del line
    return ""


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "dim"
    return _DIFF_STYLES.get(line[:1], "")


def _facts(session: Session) -> Iterator[list[str]]:
    yield [session.id, session.slug]
    yield [session.directory]
    yield [program(session), session.agent or "", model(session)]

    used = tokens(session.tokens.columns())
    yield [
        _origin(session),
        count(session.message_count, "message"),
        f"tokens {used}" if used else "",
        "" if session.cost is None else f"cost {money(session.cost)}",
    ]

    period = f"{_clock(session.time_created)} to {_clock(session.time_updated)}"
    yield [period, "archived" if session.time_archived else ""]


def _origin(session: Session) -> str:
    if session.relation is None:
        return ""
    place = "" if session.parent_seq is None else f" at #{session.parent_seq}"
    return f"{session.relation} of {parent_name(session)}{place}"


def _by(message: Message, labels: Iterable[str]) -> Line:
    """Return the line of a message: its number, who speaks, and what is known about it."""
    who = " ".join(filter(None, [message.role, message.kind]))
    facts = [
        _clock(message.time_created),
        message.agent,
        message.model_id,
        None if message.cost is None else money(message.cost),
        None if message.finish in _USUAL_ENDS else message.finish,
        "open" if message.time_completed is None else None,
        "inherited" if message.inherited else None,
        *(f"label: {label}" for label in labels),
    ]
    name = Span(f"#{message.seq} {_flat(who)}", "name")
    rest = Span(f" · {_flat(' · '.join(filter(None, facts)))}", "dim")
    return Line((name, rest), Span("── "), Span("   ", "dim"))


def _prose(prose: Prose, indent: str) -> Iterator[Line]:
    yield from _paragraphs(prose.text.rstrip("\n"), Span(indent))


def _reasoning(fold: Fold, indent: str) -> Iterator[Line]:
    for block in fold.blocks:
        if isinstance(block, Prose):
            yield from _paragraphs(block.text, Span(f"{indent}│ ", "thought"))


def _paragraphs(text: str, indent: Span) -> Iterator[Line]:
    for line in visible(text).split("\n"):
        yield Line((Span(line, indent.style),), indent)


def _label(label: Label, indent: str) -> Iterator[Line]:
    yield Line((Span(_flat(label.text), "strong"),), Span(indent))


def _note(note: Note, indent: str) -> Iterator[Line]:
    yield Line((Span(_flat(note.text), "bad" if note.tone else ""),), Span(indent))


def _picture(picture: Picture, indent: str) -> Iterator[Line]:
    named = f"Image {picture.name}"
    yield from _bracketed(indent, [named, picture.facts], picture.address)


def _todos(todos: Todos, indent: str) -> Iterator[Line]:
    for status, text in todos.items:
        mark = "x" if status == "completed" else " "
        more = "" if status in _PLAIN_TODOS else f" ({status})"
        yield Line((Span(_flat(f"[{mark}] {text}{more}")),), Span(indent))


def _bracketed(indent: str, facts: Iterable[str], address: str) -> Iterator[Line]:
    """Yield a line for something that is not text itself."""
    named = " · ".join(filter(None, [*facts, excerpt(address)]))
    yield Line((Span(f"[{_flat(named)}]", "dim"),), Span(indent))


def _is_repeated(fold: Fold) -> bool:
    """Return whether the subject of *fold* begins its body, which is always open here."""
    first = fold.blocks[0] if fold.blocks else None
    # The result of a call may begin like its subject by chance.
    if not isinstance(first, Prose | Code) or isinstance(first, Output):
        return False
    subject = fold.subject.removesuffix("…")
    body = excerpt(first.text).removesuffix("…")
    return body.startswith(subject) or subject.startswith(body)


def preview(message: Message) -> str:
    """Return on one line what a message says; if nothing, what it does or thinks."""
    said = message.text
    if not said:
        blocks = Composer(_PREVIEW, Album(takes=False)).entry(message).blocks
        said = " · ".join(filter(None, map(_in_brief, blocks)))
    return excerpt(_flat(said), PREVIEW) or "(nothing said)"


def _in_brief(block: Block) -> str:
    if isinstance(block, Note):
        return block.text
    if isinstance(block, Picture):
        return _mentioned("Image", block.name, block.address)
    if isinstance(block, Fold):
        return _BRIEF_FOLDS.get(block.kind, _brief_fold)(block)
    return ""


def _brief_call(fold: Fold) -> str:
    state = "" if fold.state == "completed" else f"[{fold.state}]"
    return " ".join(filter(None, ["▸", fold.label, fold.subject, state]))


def _brief_thought(fold: Fold) -> str:
    return f"({fold.subject})"


def _brief_fold(fold: Fold) -> str:
    return _mentioned(fold.label, fold.subject, fold.address)


_BRIEF_FOLDS = {"call": _brief_call, "reasoning": _brief_thought}


def _mentioned(*words: str) -> str:
    return f"[{' '.join(filter(None, words))}]"


def _flat(text: str) -> str:
    """Return *text* as one visible line: runs of white space are one space."""
    return visible(" ".join(text.split()))


def _clock(ms: int) -> str:
    return moment(ms, zone=None)
