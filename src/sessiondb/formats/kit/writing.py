"""Formats in which each session is written for itself, with nothing left out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.protocol import WriteSessions
from sessiondb.model import Document, Export, Loss

#: Yields the files of a session, and adds to its losses while these are read.
Make = Callable[[Export, Losses], Iterable[Document]]


def one_by_one(make: Make) -> WriteSessions:
    """Return the function that writes sessions, of which *make* writes one."""

    def write(
        sessions: Iterable[Export], *, detail: str = "full", together: bool = False
    ) -> Iterator[Document | Loss]:
        del detail, together
        for export in sessions:
            losses = Losses()
            yield from make(export, losses)
            yield from losses

    return write
