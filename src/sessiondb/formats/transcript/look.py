"""How a format writes a file of transcripts: beginning, sessions, blocks, end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from sessiondb.formats.transcript.blocks import Block
from sessiondb.formats.transcript.session import Transcript
from sessiondb.model import Export


class Look(ABC):
    """Writes transcripts down in one format; text comes in pieces.

    ``SUFFIX`` ends the names of its files, ``PICTURES`` is whether these contain
    images.
    """

    SUFFIX: ClassVar[str]
    PICTURES: ClassVar[bool]

    def _write_blocks(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self._write_block(block)

    @abstractmethod
    def opening(self, title: str) -> str:
        """The beginning of a file; *title* is that of its first session."""

    @abstractmethod
    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session; the headings of a nested one are two levels lower."""

    def index(self, pages: Sequence[tuple[str, Export]]) -> str:
        """The file that lists *pages*, each with its name; empty for a look without."""
        del pages
        return ""

    @abstractmethod
    def closing(self) -> str:
        """The end of a file."""

    @abstractmethod
    def _write_block(self, block: Block) -> Iterator[str]: ...
