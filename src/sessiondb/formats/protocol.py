"""The contracts of a format: how its stores are found and read, how it is written.

A module that reads a format has a `Format` named ``FORMAT``, one that writes it an
`Exporter` named ``EXPORTER``; `registry` says which modules these are. Both know
`sessiondb.model` and nothing of our database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol

from sessiondb.dataclass import dataclass
from sessiondb.errors import SourceError
from sessiondb.model import Document, Export, Loss, Problem, Session, SourceItem

Reader = Callable[[Path], Iterator[SourceItem]]


@dataclass(frozen=True, slots=True)
class ForeignStore:
    """A store of another program."""

    source: str
    #: A file or a directory.
    path: Path
    #: Yields the sessions in the store at a path, and its problems.
    reader: Reader
    #: Other programs of the same format whose sessions are in it, too.
    other_sources: frozenset[str] = frozenset()

    @property
    def sources(self) -> frozenset[str]:
        """All programs whose sessions are in it."""
        return self.other_sources | {self.source}

    def read(self) -> Iterator[SourceItem]:
        """Yield its sessions, parents first, and what is wrong with it.

        Messages are read when a session's ``messages`` are iterated. Raises
        `SourceError` if the store cannot be opened, and nothing else: any other
        failure of its reader is the last problem.
        """
        try:
            yield from self.reader(self.path)
        except SourceError:
            raise
        except OSError as error:
            reason = error.strerror or error
            raise SourceError(f"cannot read {self.path}: {reason}") from error
        # A defect must not end the import of other stores.
        except Exception as error:  # noqa: BLE001
            reason = f"the rest cannot be read; its reader failed: {error!r:.300}"
            yield Problem(str(self.path), reason)


def late_reader(module: str, name: str) -> Reader:
    """Return the reader *name* of a *module*, which is loaded when a store is read.

    Every search tries all formats, and most find stores of two or three programs.
    """

    def read(path: Path) -> Iterator[SourceItem]:
        reader: Reader = getattr(import_module(module), name)
        return reader(path)

    return read


def unreadable_store(path: Path, reason: str) -> ForeignStore:
    """Return a placeholder for a file or folder that may hold a store."""
    problem = Problem(str(path), reason)
    return ForeignStore("unreadable", path, lambda _: iter([problem]))


def nowhere(env: Mapping[str, str]) -> list[Path]:
    """Return the default locations of files that have no fixed place: none."""
    del env
    return []


@dataclass(frozen=True, slots=True)
class Format:
    """How the stores of a program are found."""

    #: The endings of files that may be a store, as `Path.suffix` has them; without any,
    #: a file is looked at only if it is named.
    suffixes: frozenset[str]
    #: Returns the store that is exactly at a path, a file or a folder, None for any
    #: other path, and raises nothing. It decides by the structure of the complete file
    #: or folder, never by a record that may be in a log of another format: no other
    #: format may recognise the same path.
    at: Callable[[Path], ForeignStore | None]
    #: Returns the paths of the program's own stores in an environment, whether or not
    #: anything is there.
    default_locations: Callable[[Mapping[str, str]], list[Path]] = nowhere
    #: The names of files that it keeps in the folders of projects instead.
    in_projects: frozenset[str] = frozenset()
    #: Patterns of names (see `fnmatch`) by which a file counts as one that cannot be
    #: read.
    names: frozenset[str] = frozenset()


class WriteSessions(Protocol):
    """The function that writes sessions in a format."""

    def __call__(
        self, sessions: Iterable[Export], *, detail: str, together: bool = False
    ) -> Iterator[Document | Loss]:
        """Yield the files, parents first; each is read before the next one."""


class Outline(NamedTuple):
    """A message as far as its names in another program depend on it."""

    id: str
    seq: int
    time_created: int
    inherited: bool
    #: The number of its parts.
    parts: int


#: Returns every id that the records of a message of a session are written with.
NamesOf = Callable[[Session, Outline], Iterable[str]]


def own_name(_: Session, message: Outline) -> Iterable[str]:
    """Return the id of a message, for a program that takes it as it is."""
    return (message.id,)


@dataclass(frozen=True, slots=True)
class Written:
    """A session that was written for a program: its only file, held in memory."""

    #: The name of the document.
    name: str
    text: str
    #: The directory of the session.
    directory: str


@dataclass(frozen=True, slots=True)
class Handover:
    """How a program gets a file that was written for it, and continues the session.

    Without ``take_in`` and ``place`` the program has the session already.
    """

    #: The command that imports the file, in which `FILE` is its path; empty for a
    #: program without one.
    take_in: list[str]
    #: The command that continues the session then.
    resume: list[str]
    #: The path at which the file becomes a session of the program, if the sessions are
    #: files of its own store.
    place: Path | None = None


#: The place of the file in `Handover.take_in`.
FILE = "{file}"


@dataclass(frozen=True, slots=True)
class Exporter:
    """How sessions are written in a format."""

    write: WriteSessions
    #: The keywords of `Store.export` that the sessions are read with.
    read: Mapping[str, bool] = field(default_factory=lambda: {"branches": False})
    #: Whether several sessions can be one file.
    together: bool = False
    #: The levels of detail, the default first.
    details: tuple[str, ...] = ("full",)
    #: Returns how the program continues a session that was written for it; None if it
    #: cannot. It changes nothing, and raises `InvalidInputError` for a session that the
    #: program would not take.
    take_in: Callable[[Written, Mapping[str, str]], Handover] | None = None
    #: The level of detail of a file for `take_in`, empty for the default. At this level
    #: a session that the program does not have is one document.
    taken: str = ""
    #: Returns the ids that a message from elsewhere is written with. A session that was
    #: continued in the program is compared by them when it comes back: a record with
    #: such an id is not a new message. A record that names its message itself needs
    #: none (`SourceMessage.alias`).
    names_of: NamesOf = own_name
    #: Returns whether the program still has a session of its own, by its id there; None
    #: if that is not known.
    holds: Callable[[str, Mapping[str, str]], bool] | None = None
    #: Whether everything of a session can be read back from the format: then sessions
    #: that filters choose are written also if they have no message, since their
    #: subagents and forks would lose their parent.
    is_complete: bool = False
    #: Whether it shows costs to people, and so needs `Export.usage`.
    shows_cost: bool = False
