"""The result of looking for a format: a store of some program's sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sessiondb.errors import SourceError
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
        `SourceError` when the store cannot be opened, and nothing else: where its
        reader fails otherwise, that is the last problem.
        """
        try:
            yield from self.reader(self.path)
        except SourceError:
            raise
        except OSError as error:
            raise SourceError(
                f"cannot read {self.path}: {error.strerror or error}"
            ) from error
        except Exception as error:  # noqa: BLE001  no reader may end the import of other stores
            why = f"the rest cannot be read; its reader failed: {error!r:.300}"
            yield Problem(str(self.path), why)


def unreadable(path: Path, why: str) -> Store:
    """Return a placeholder for a file or folder that may hold a store and cannot be read."""
    return Store("unreadable", path, lambda path: iter([Problem(str(path), why)]))
