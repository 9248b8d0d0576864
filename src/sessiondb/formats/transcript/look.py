"""How a format writes a file of transcripts: one method for each kind of block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

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
from sessiondb.formats.transcript.session import Transcript


class Look(ABC):
    """Writes transcripts down in one format; text comes in pieces.

    ``SUFFIX`` ends the names of its files, ``PICTURES`` is whether these contain
    images.
    """

    SUFFIX: ClassVar[str]
    PICTURES: ClassVar[bool]

    def __init__(self) -> None:
        self._writers: dict[type[Block], Callable[[Any], Iterator[str]]] = {
            Prose: self._write_prose,
            Code: self._write_code,
            Command: self._write_code,
            Output: self._write_code,
            LabelBlock: self._write_label,
            Note: self._write_note,
            Picture: self._write_picture,
            Todos: self._write_todos,
            Fold: self._write_fold,
            Nested: self._write_nested,
        }

    def _write_blocks(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self._writers[type(block)](block)

    @abstractmethod
    def opening(self, title: str) -> str:
        """The beginning of a file; *title* is that of its first session."""

    @abstractmethod
    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session; the headings of a nested one are two levels lower."""

    @abstractmethod
    def closing(self) -> str:
        """The end of a file."""

    @abstractmethod
    def _write_prose(self, prose: Prose) -> Iterator[str]: ...

    def _write_code(self, code: Code) -> Iterator[str]:
        if code.label:
            yield from self._write_label(LabelBlock(code.label))
        yield self._verbatim_code(code)

        if code.left_out:
            yield self._cut_line(code.left_out)

    @abstractmethod
    def _verbatim_code(self, code: Code) -> str: ...

    @abstractmethod
    def _cut_line(self, left_out: str) -> str: ...

    @abstractmethod
    def _write_label(self, label: LabelBlock) -> Iterator[str]: ...

    @abstractmethod
    def _write_note(self, note: Note) -> Iterator[str]: ...

    @abstractmethod
    def _write_picture(self, picture: Picture) -> Iterator[str]: ...

    @abstractmethod
    def _write_todos(self, todos: Todos) -> Iterator[str]: ...

    @abstractmethod
    def _write_fold(self, fold: Fold) -> Iterator[str]: ...

    @abstractmethod
    def _write_nested(self, nested: Nested) -> Iterator[str]: ...
