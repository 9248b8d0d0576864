"""What a transcript is made of once it is decided what to show: values, and no markup.

Every string is as it was said. Whoever writes it down makes it harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sessiondb.formats.transcript.words import size

if TYPE_CHECKING:
    from sessiondb.formats.transcript.session import Transcript


@dataclass(frozen=True, slots=True)
class Prose:
    """Text that is meant as Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text as it is. ``language`` is a name or a file's ending; ``left_out`` says what was cut."""

    text: str
    language: str | None = None
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A few words over the next block."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """One line about what happened; ``tone`` is ``error`` or empty."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image: ``data`` in base64, None where it stays out."""

    name: str
    mime: str
    data: str | None
    bytes: int

    @property
    def facts(self) -> str:
        """Its type and, where it is known, its size."""
        return f"{self.mime}, {size(self.bytes)}" if self.bytes else self.mime


@dataclass(frozen=True, slots=True)
class Todos:
    """A todo list: (status, text) of each."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Nested:
    """The session of a subagent, where its call stands."""

    transcript: Transcript


@dataclass(frozen=True, slots=True)
class Fold:
    """Something folded: what is seen is ``label``, ``subject`` and ``facts``.

    ``tone`` is ``ok``, ``odd`` (a command ended with an error code), ``error``,
    ``open`` (no result) or empty. Without ``blocks`` there is nothing to unfold.
    """

    kind: str
    label: str
    subject: str = ""
    facts: tuple[str, ...] = ()
    tone: str = ""
    blocks: tuple[Block, ...] = ()


Block: TypeAlias = "Prose | Code | Label | Note | Picture | Todos | Nested | Fold"


@dataclass(frozen=True, slots=True)
class Entry:
    """One message.

    ``continues`` says that the same one spoke just before; ``time`` in Unix ms.
    """

    anchor: str
    role: str
    who: str
    time: int
    model: str = ""
    facts: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A prompt in the table of prompts."""

    anchor: str
    text: str
    time: int


@dataclass(slots=True)
class Head:
    """What stands over a transcript: its title, its facts, its prompts when they are many."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    prompts: list[Line] = field(default_factory=list)
