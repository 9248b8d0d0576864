"""The look of a session on a terminal or in a pipe: lines of styled spans, as values.

Nothing here knows a width or a colour; `cli.paint` makes rows and escape sequences of
it. A line that is ``cut`` is shortened to one row, any other is wrapped. All text
passes `visible` here, so a line contains no control characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sessiondb.dataclass import replace
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Command,
    Fold,
    LabelBlock,
    Nested,
    Note,
    Output,
    Picture,
    Prose,
    Todos,
)
from sessiondb.formats.transcript.calls import FAILURES
from sessiondb.formats.transcript.changes import without_heading
from sessiondb.formats.transcript.composer import Composer
from sessiondb.formats.transcript.detail import LEVELS, Detail, Limits
from sessiondb.formats.transcript.facts import (
    counted_purposes,
)
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.turns import with_last_answers
from sessiondb.model import Message
from sessiondb.model.purposes import (
    ANSWER,
    BOOKKEEPING,
    PROMPT,
    RESULT,
    SUMMARY,
)
from sessiondb.words import (
    TAB,
    count,
    excerpt,
    moment,
    one_line,
    price,
    visible,
)

#: Of a text that is not a prompt or an answer a few lines are kept, and of each what
#: some rows hold.
_FEW = Limits(8, width=400)
#: The levels of a session on a terminal.
_LEVELS = {
    **LEVELS,
    "normal": Detail(
        asides=False,
        arguments=False,
        results=False,
        limits=_FEW,
        diffs=Limits(20, width=400),
    ),
}
#: One line for each message: no bodies.
_PREVIEW = Detail(bodies=False)
#: Columns of a preview.
PREVIEW = 200
_TONES = {"ok": "good", "error": "bad", "odd": "bad"}
#: How a call ended.
_CALL_MARKS = {"ok": "✓", "odd": "✗", "error": "✗", "open": "…"}
#: Milliseconds after which an answer that continues another one has a heading again.
_PAUSE = 60_000
_CODE_STYLES: dict[str | None, str] = {"diff": "diff"}
#: Ends that no note names, and that are not the usual ones.
_ENDS: dict[str | None, str] = {"other": "ended otherwise"}


class Span(NamedTuple):
    """A piece of a line; ``style`` is the name of one, or empty."""

    text: str
    style: str = ""


#: The blocks that may begin with the subject of their fold.
_REPEATING = (Prose, Code)
_MARGIN, _SPACE = Span(""), Span(" ")
#: Before the line that begins a message, and before its further rows.
_HEAD, _BELOW_HEAD = Span("── "), Span("   ", "dim")


class TerminalLine(NamedTuple):
    r"""A line: its rows begin with *indent*, those after the first with *hang*.

    Most texts are made and written as they are: a text of one style may be several
    lines with ``\n`` between them. A line of several styles has *spans* too, which
    are its text in pieces, and contains no tabs. The styles ``diff`` and ``markdown``
    are those of each line of a diff, and of what is marked in a text. The *end* of a
    line with spans is never cut.
    """

    text: str = ""
    style: str = ""
    indent: Span = _MARGIN
    hang: Span | None = None
    cut: bool = False
    spans: tuple[Span, ...] = ()
    end: Span = _MARGIN

    def styled_spans(self) -> tuple[Span, ...]:
        """Return the spans of the line but for its end; one if it has one style."""
        return self.spans or (Span(self.text, self.style),)


_EMPTY = TerminalLine()


class Terminal:
    """Makes the lines of one session, in one of `detail.LEVELS`.

    ``normal`` is a conversation: prompts, answers, a line for what was thought, one for
    each call, with the changes that it made and why it failed. ``brief`` has of each
    turn the last answer, and the first line of each call alone, ``full`` everything
    that is recorded. Files below *directory* are named by their place in it.
    """

    def __init__(self, level: str = "normal", directory: str = "") -> None:
        self._level, self._full = level, level == "full"
        self._album = Album(takes=False)
        self._composer = Composer(_LEVELS[level], self._album, directory=directory)
        #: The number of messages left out, by purpose.
        self._left_out: Counter[str] = Counter()
        #: The answer that the next one may continue.
        self._last_answer: Message | None = None

    def conversation(
        self,
        messages: Iterable[Message],
        labels: Mapping[int, Sequence[str]],
        prompts: int = 0,
    ) -> Iterator[list[TerminalLine]]:
        """Yield the lines of each message, then those of `tail`.

        *labels* are those of the messages by seq, *prompts* is how many prompts there
        are together with those that are not on the path.
        """
        if not _LEVELS[self._level].earlier_answers:
            messages = with_last_answers(messages)
        for message in messages:
            if message.purpose == PROMPT:
                prompts -= 1
            yield self.message(message, labels.get(message.seq, ()))
        yield self.tail(prompts)

    def message(
        self, message: Message, labels: Sequence[str] = ()
    ) -> list[TerminalLine]:
        """Return the lines of one message.

        One with nothing to show has none, and is counted: see `tail`.
        """
        blocks, purpose = self._composer.blocks(message), message.purpose
        if purpose == RESULT and not self._full:
            # It belongs to its call, which shows why it failed.
            blocks = []
        # Images are always left out here, which is not worth a report.
        self._album.losses.clear()

        lines = self._thought_lines(message)
        lines += self._block_lines(blocks, _MARGIN)
        if not lines and not labels and not self._full:
            # A brief look has no earlier answers, which goes without saying.
            if self._level != "brief" or purpose != ANSWER:
                self._left_out[purpose] += 1
            return []

        is_aside = purpose in (BOOKKEEPING, SUMMARY) and not self._full
        if is_aside and len(lines) == 1 and not labels:
            # Such as that the user stopped the answer: no heading of its own.
            return [TerminalLine(f"#{message.seq} {lines[0].text}", "dim", _HEAD)]

        is_answer = purpose == ANSWER
        continues = is_answer and self._continues(message) and not labels
        self._last_answer = message if is_answer else None
        if not continues:
            return [_EMPTY, _message_line(message, purpose, labels), *lines]
        if any(isinstance(block, Prose) for block in blocks):
            return [TerminalLine(f"#{message.seq}", "dim", _HEAD), *lines]
        # Its number is at the end of its first line.
        first, *others = lines
        end = Span(f"{first.end.text} #{message.seq}", "dim")
        first = first._replace(style="", spans=first.styled_spans(), end=end)
        return [first, *others]

    def tail(self, prompts: int = 0) -> list[TerminalLine]:
        """Return lines that count what was left out, and *prompts* off the live path.

        There are none if nothing was left out.
        """
        texts = []
        if self._left_out:
            texts.append(f"{counted_purposes(self._left_out)} (--detail full)")
        if prompts > 0:
            texts.append(f"{count(prompts, 'prompt')} off the live path (--branches)")
        lines = [TerminalLine(f"… {text}", "dim") for text in texts]
        return [_EMPTY, *lines] if lines else []

    def _continues(self, answer: Message) -> bool:
        """Return whether an answer is one more of the same model."""
        last = self._last_answer
        if self._full or last is None:
            return False
        is_same = (last.agent, last.model_id) == (answer.agent, answer.model_id)
        return is_same and abs(answer.time_created - last.time_created) < _PAUSE

    def _thought_lines(self, message: Message) -> list[TerminalLine]:
        """Return a line for what was thought; in full the blocks have all of it."""
        if self._level != "normal":
            return []
        thoughts = [part.text for part in message.parts if part.type == "reasoning"]
        text = excerpt(" ".join(thought for thought in thoughts if thought), 200)
        if not text:
            return []
        return [TerminalLine(one_line(f"· thought: {text}"), "dim", cut=True)]

    def _block_lines(self, blocks: Iterable[Block], indent: Span) -> list[TerminalLine]:
        lines: list[TerminalLine] = []
        for block in blocks:
            match block:
                case Prose(text):
                    lines.append(_paragraph_line(text.rstrip("\n"), indent))
                case Command():
                    lines += self._verbatim_lines(block, indent, "$ ")
                case Output():
                    bar = Span(f"{indent.text}│ ")
                    lines += self._verbatim_lines(block, bar)
                case Code():
                    lines += self._code_lines(block, indent)
                case LabelBlock(text):
                    lines.append(TerminalLine(one_line(text), "strong", indent))
                case Note(text, tone):
                    style = "bad" if tone else ""
                    lines.append(TerminalLine(one_line(text), style, indent))
                case Picture(name, address=address):
                    facts = f"Image {name}", block.facts, address
                    lines.append(_bracketed_line(indent, *facts))
                case Todos():
                    lines += _todo_lines(block, indent)
                case Fold():
                    lines += self._fold_lines(block, indent)
        return lines

    def _fold_lines(self, fold: Fold, indent: Span) -> list[TerminalLine]:
        match fold.kind:
            case "call":
                return self._call_lines(fold, indent)
            case "reasoning":
                bar = Span(f"{indent.text}│ ", "thought")
                thoughts = [block for block in fold.blocks if isinstance(block, Prose)]
                return [_paragraph_line(thought.text, bar) for thought in thoughts]
            case "system":
                # The line of the message names it already.
                return self._block_lines(fold.blocks, indent)
            case _:
                return self._named_fold(fold, indent)

    def _call_lines(self, fold: Fold, indent: Span) -> list[TerminalLine]:
        command, blocks = "", fold.blocks
        if not self._full:
            command, blocks = _command_shown(fold), _essential_blocks(fold)
        name = Span(f"{indent.text}▸ {one_line(fold.label)}", "strong")
        subject = Span(one_line(_subject_shown(fold.subject, blocks)))
        mark = _CALL_MARKS.get(fold.tone, "")
        if fold.tone == "error":
            mark = f"{mark} {fold.state}"
        ended = Span(one_line(mark), _TONES.get(fold.tone, ""))
        ran = Span(one_line(command), "dim")
        details = "".join([f" {detail}" for detail in fold.details])

        # The spaces between them have no style.
        spans = [name]
        for span in (ended, subject, ran):
            if span.text:
                spans += (_SPACE, span)
        text = "".join(span.text for span in spans)
        line = TerminalLine(
            text,
            cut=not self._full,
            spans=tuple(spans),
            end=Span(visible(details), "dim"),
        )

        return [line, *self._block_lines(blocks, Span(f"{indent.text}  "))]

    def _named_fold(self, fold: Fold, indent: Span) -> list[TerminalLine]:
        name = f"{fold.label} {_subject_shown(fold.subject, fold.blocks)}".rstrip()
        lines = [_bracketed_line(indent, name, *fold.facts, excerpt(fold.address))]

        # Prose stays what it is; anything else is marked as something quoted.
        bar = Span(f"{indent.text}  │ ")
        for block in fold.blocks:
            lines += self._block_lines(
                [block], indent if isinstance(block, Prose) else bar
            )
        return lines

    def _code_lines(self, code: Code, indent: Span) -> list[TerminalLine]:
        label = f"{one_line(code.label)}:"

        if not code.label:
            return self._verbatim_lines(code, indent)
        if "\n" in code.text:
            inner = Span(f"{indent.text}  ")
            first = TerminalLine(label, indent=indent, cut=not self._full)
            return [first, *self._verbatim_lines(code, inner)]
        return self._verbatim_lines(code, indent, f"{label} ")

    def _verbatim_lines(
        self, code: Code, indent: Span, prefix: str = ""
    ) -> list[TerminalLine]:
        """Return the lines of *code*, the first after *prefix*, the others below it."""
        if code.styles:
            lines, margin = [], prefix
            for pieces in code.styled_lines():
                line = [(margin, ""), *pieces]
                lines.append(_styled_line(line, indent, is_cut=not self._full))
                margin = " " * len(prefix)
            return lines + self._left_out_lines(code, indent)

        line_break = "\n" + " " * len(prefix)
        text = prefix + visible(code.text).replace("\n", line_break)

        style, is_cut = _CODE_STYLES.get(code.language, ""), not self._full
        lines = [TerminalLine(text, style, indent, None, is_cut)]
        return lines + self._left_out_lines(code, indent)

    def _left_out_lines(self, code: Code, indent: Span) -> list[TerminalLine]:
        if not code.left_out:
            return []
        left_out = f"… {code.left_out} (--detail full)"
        return [TerminalLine(left_out, "", indent, None, not self._full)]


def _message_line(
    message: Message, purpose: str, labels: Iterable[str]
) -> TerminalLine:
    """Return the line of a message: its number, who speaks, what is known about it."""
    who = f"{purpose} {message.kind or ''}"
    if purpose == BOOKKEEPING and message.kind:
        # Its type says more than its purpose.
        who = message.kind
    facts = [
        moment(message.time_created, zone=None),
        # A prompt only records which ones were chosen.
        *(() if purpose == PROMPT else (message.agent, message.model_id)),
        price(message.cost),
        _ENDS.get(message.finish),
        "open" if message.time_completed is None else "",
        "inherited" if message.inherited else "",
        *(f"label: {label}" for label in labels),
    ]

    name = f"#{message.seq} {one_line(who)}"
    details = f" · {one_line(' · '.join(fact for fact in facts if fact))}"
    spans = (Span(name, "name"), Span(details, "dim"))
    return TerminalLine(name + details, "", _HEAD, _BELOW_HEAD, False, spans)


def _essential_blocks(fold: Fold) -> tuple[Block, ...]:
    """Return what a conversation shows of a call: changes, and why it failed."""
    blocks: list[Block] = []
    for block in fold.blocks:
        is_failure = isinstance(block, Output) and fold.tone in FAILURES
        if isinstance(block, Code) and block.language == "diff":
            text = without_heading(block.text, fold.about)
            blocks.append(replace(block, text=text))
        elif is_failure or isinstance(block, Nested | Todos):
            blocks.append(block)
    return tuple(blocks)


def _command_shown(fold: Fold) -> str:
    """Return the command line of a call that other words describe, or nothing."""
    for block in fold.blocks:
        if isinstance(block, Command):
            command = excerpt(block.text, PREVIEW)
            is_subject = command.startswith(fold.subject.removesuffix("…"))
            return "" if is_subject else f"$ {command}"
    return ""


def _paragraph_line(text: str, indent: Span) -> TerminalLine:
    return TerminalLine(visible(text), indent.style or "markdown", indent)


def _styled_line(
    pieces: Iterable[tuple[str, str]], indent: Span, *, is_cut: bool
) -> TerminalLine:
    spans: list[Span] = []
    column = 0
    for piece, style in pieces:
        # A tab ends at a column of the line, not of the piece.
        margin = " " * (column % TAB)
        text = (margin + visible(piece)).expandtabs(TAB)[len(margin) :]
        spans.append(Span(text, style))
        column += len(text)
    text = "".join([span.text for span in spans])
    return TerminalLine(text, "", indent, None, is_cut, tuple(spans))


def _todo_lines(todos: Todos, indent: Span) -> list[TerminalLine]:
    lines = []
    for mark, text, status in todos.marked_items():
        more = f" ({status})" if status else ""
        lines.append(TerminalLine(one_line(f"[{mark}] {text}{more}"), indent=indent))
    return lines


def _bracketed_line(indent: Span, *facts: str) -> TerminalLine:
    """Return a line for something that is not text itself."""
    text = " · ".join(fact for fact in facts if fact)
    return TerminalLine(f"[{one_line(text)}]", "dim", indent)


def _subject_shown(subject: str, blocks: Sequence[Block]) -> str:
    """Return a *subject*, unless it begins the body *blocks*, which are always open."""
    first = blocks[0] if blocks else None
    # The result of a call may begin like its subject by chance.
    if not isinstance(first, _REPEATING) or isinstance(first, Output):
        return subject

    words, body = subject.removesuffix("…"), excerpt(first.text).removesuffix("…")
    is_repeated = body.startswith(words) or words.startswith(body)
    return "" if is_repeated else subject


def preview_of(message: Message) -> str:
    """Return on one line what a message says; if nothing, what it does or thinks."""
    text = message.text
    if not text:
        blocks = Composer(_PREVIEW, Album(takes=False)).blocks(message)
        words = [_in_brief(block) for block in blocks]
        text = " · ".join(word for word in words if word)
    return excerpt(one_line(text), PREVIEW) or "(nothing said)"


def _in_brief(block: Block) -> str:
    """Return a block in a few words; nothing for one that is not mentioned."""
    if isinstance(block, Note):
        return block.text
    if isinstance(block, Picture):
        return _bracketed_words("Image", block.name, block.address)
    if not isinstance(block, Fold):
        return ""
    if block.kind == "reasoning":
        return f"({block.subject})"
    if block.kind != "call":
        return _bracketed_words(block.label, block.subject, block.address)
    state = "" if block.state == "completed" else f"[{block.state}]"
    words = ["▸", block.label, block.subject, state]
    return " ".join(word for word in words if word)


def _bracketed_words(*words: str) -> str:
    return f"[{' '.join(word for word in words if word)}]"
