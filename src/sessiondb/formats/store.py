"""What every format finds: a store of some program's sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sessiondb.model import Problem, SourceSession


@dataclass(frozen=True, slots=True)
class Store:
    """A store of *source* at *path*, a file or a directory."""

    source: str
    path: Path
    reader: Callable[[Path], Iterator[SourceSession | Problem]]

    def read(self) -> Iterator[SourceSession | Problem]:
        """Yield its sessions, parents first, and what is wrong with it.

        Messages are read when a session's ``messages`` are iterated. Raises
        `SourceError` when the store cannot be opened, and nothing else.
        """
        return self.reader(self.path)
