"""Sessions as logs of oh-my-pi, in whose own logs a title comes before the header."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.formats.pi.exporter import documents
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a log for each session, and what it does not hold."""
    del detail, together  # a session is a file, and nothing can be left out of it
    return documents(sessions, titled=True)


EXPORTER = Exporter(write, read={"branches": True})
