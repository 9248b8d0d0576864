"""The blocks of a transcript: values, decided but not yet written down in any format.

Every string is verbatim. The look that writes it makes it harmless. No block changes
after it was made; they are not frozen, because a frozen one takes three times as long
to make, and a session has hundreds of thousands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.transcript.ansi import OutputStyles, styled_pieces
from sessiondb.model import Message
from sessiondb.words import excerpt, size

if TYPE_CHECKING:
    from sessiondb.formats.transcript.session import Transcript


#: The states of a call that need no words.
_USUAL = {"completed": ""}
#: The todo items whose box alone shows their status.
_MARKS = {"completed": ("x", ""), "pending": (" ", "")}


@dataclass(slots=True)
class Prose:
    """Text that is meant as Markdown."""

    text: str


@dataclass(slots=True)
class Code:
    """Verbatim text. ``language`` is a name or the ending of a file.

    ``label`` is a few words above it, ``left_out`` counts the cut: ``3 more lines``.
    ``styles`` are those of the lines of an output that its program coloured.
    """

    text: str
    language: str | None = None
    label: str = ""
    left_out: str = ""
    styles: OutputStyles | None = None

    def styled_lines(self) -> Iterator[list[tuple[str, str]]]:
        """Yield each line as pieces with their styles, see `ansi`."""
        styles = self.styles or {}
        for number, line in enumerate(self.text.split("\n")):
            yield list(styled_pieces(line, styles.get(number, [])))


@dataclass(slots=True)
class Command(Code):
    """A command line that a call ran."""


@dataclass(slots=True)
class Output(Code):
    """The result of a call."""


@dataclass(slots=True)
class LabelBlock:
    """A few words above the next blocks."""

    text: str


@dataclass(slots=True)
class Note:
    """One line about an event; ``tone`` is ``error`` or empty."""

    text: str
    tone: str = ""


@dataclass(slots=True)
class Picture:
    """An image: ``data`` in base64, None if left out; ``address`` may be empty."""

    name: str
    mime: str
    data: str | None
    bytes: int
    address: str = ""

    @property
    def facts(self) -> str:
        """Its type and, if known, its size."""
        return f"{self.mime}, {size(self.bytes)}" if self.bytes else self.mime


@dataclass(slots=True)
class Todos:
    """A todo list: (status, text) of each item."""

    items: tuple[tuple[str, str], ...]

    def marked_items(self) -> Iterator[tuple[str, str, str]]:
        """Yield the mark in the box of each item, its text, and its status if needed.

        An open box and a checked one need no word.
        """
        for status, text in self.items:
            mark, more = _MARKS.get(status, (" ", status))
            yield mark, text, more


@dataclass(slots=True)
class Nested:
    """The session of a subagent, at the call that started it."""

    transcript: Transcript

    @property
    def name(self) -> str:
        """The title of the session, or its id."""
        session = self.transcript.export.session
        return session.title or session.id


@dataclass(slots=True)
class Fold:
    """Something folded: ``label``, `subject`, `facts` outside, ``blocks`` inside.

    ``kind`` is ``call``, ``reasoning``, ``system``, ``change`` or ``note``. ``state``
    is that of a call, empty elsewhere. ``tone`` is ``ok``, ``odd`` (a command ended
    with an error code), ``error``, ``open`` (no result yet) or empty. Without
    ``blocks`` there is nothing to unfold. ``address`` is that of a file, or empty.
    ``about`` is a text of any length; the subject is an excerpt of it.
    """

    kind: str
    label: str
    about: str = ""
    details: tuple[str, ...] = ()
    state: str = ""
    tone: str = ""
    blocks: tuple[Block, ...] = ()
    address: str = ""

    @property
    def subject(self) -> str:
        """A few words about it, on one line; may be empty."""
        return excerpt(self.about)

    @property
    def facts(self) -> tuple[str, ...]:
        """The details, and the state before them unless it is the usual one."""
        state = _USUAL.get(self.state, self.state)
        return tuple(filter(None, (state, *self.details)))


Block: TypeAlias = (
    "Prose | Code | Command | Output | LabelBlock | Note | Picture | Todos | Nested "
    "| Fold"
)


@dataclass(slots=True)
class TranscriptEntry:
    """One message, or (``message`` is None) something between two of them.

    ``continues`` marks a message of the same speaker as the one before; ``time`` is in
    Unix ms. ``blocks`` is empty if nothing of it is shown.
    """

    anchor: str
    role: str
    who: str
    time: int
    model: str = ""
    facts: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    continues: bool = False
    message: Message | None = None

    @property
    def is_named(self) -> bool:
        """Whether a line names who speaks.

        A result belongs to its call, and an event or a system text names itself.
        """
        return self.role in ("user", "assistant")


@dataclass(slots=True)
class PromptLine:
    """A prompt in the table of prompts."""

    anchor: str
    text: str
    time: int


@dataclass(slots=True)
class TranscriptHead:
    """The head of a transcript: title, facts, and its prompts if there are many."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    prompts: list[PromptLine] = field(default_factory=list)
