"""Sessions as ``opencode session import`` of version 2 takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.formats.opencode.exporter import documents, take_in
from sessiondb.formats.opencode.ids import names_of
from sessiondb.formats.opencode.v2.writer import WriterV2
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session."""
    del detail, together  # a session is a file, and nothing can be left out of it
    return documents(sessions, lambda *given: WriterV2(*given).json())


EXPORTER = Exporter(write, take_in=take_in, names_of=names_of)
