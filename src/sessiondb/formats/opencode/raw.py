"""The records of a store before any of them is interpreted.

A store is a list of session heads, small enough to keep, and for each session its
record and its messages, read one by one. Ids come from rows and file names, never from
inside a record: OpenCode moved records without rewriting them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import fitting, integer, text
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import Raw, usable_id
from sessiondb.model import Problem


class Head(NamedTuple):
    """A session without its messages; times in Unix ms, 0 is unknown."""

    id: str
    parent: str | None
    time_created: int
    title: str

    @classmethod
    def of(cls, name: str, parent: Any, created: Any, title: Any) -> Head:
        """Return the head of a session; a value of another type counts as unknown."""
        return cls(
            name,
            fitting(parent, usable_id),
            fitting(created, integer, 0),
            fitting(title, text, ""),
        )


class Opened(NamedTuple):
    """A message's place in its session: by time, then id, as OpenCode orders them."""

    time: int
    id: str


class RawPart(NamedTuple):
    """A part as stored; the times of its row are None without rows."""

    id: str
    raw: Raw
    time_created: int | None = None
    time_updated: int | None = None


@dataclass(slots=True)
class SessionRecord:
    """A session's own record, and what lies beside it.

    ``info`` is the record as OpenCode exports it. ``facts`` change whenever anything of
    the session changed. ``project`` is the record of its project, ``approved`` the
    permissions given there. ``todo``, ``diff`` and ``share`` are None if there are
    none, ``columns`` are fields of a `SourceSession` that the record does not have.
    """

    info: dict[str, Any]
    facts: list[Any]
    path: Path
    size: int | None = None
    mtime_ns: int | None = None
    worktree: str | None = None
    vcs: str | None = None
    root_commit: str | None = None
    project: Mapping[str, Any] = field(default_factory=dict)
    approved: Any = None
    todo: list[Any] | None = None
    diff: list[Any] | None = None
    share: dict[str, Any] | None = None
    share_folder: str | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class Records(Protocol):
    """A store of one generation, whichever way it is written."""

    path: Path
    #: The directory of a store's side files.
    home: Path

    def where(self, session: str, message: str = "", part: str = "") -> Path:
        """The file that holds a record."""

    def reading(self) -> AbstractContextManager[object]:
        """Keep the store open, and its content as it is if that is possible."""

    def heads(self) -> Iterator[Head | Problem]:
        """All sessions; those created in the same ms in the order they were stored."""

    def session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created."""

    def messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order."""

    def message(self, session: str, message: str) -> Raw:
        """Read one message as stored."""

    def parts(self, session: str, message: str) -> Iterable[RawPart]:
        """Read the parts of a message as stored, in order."""

    def calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session."""

    def orphans(self) -> Iterator[Problem]:
        """Records that belong to nothing."""


def stamp_of(path: Path) -> tuple[int | None, int | None]:
    """Return size and modification time (ns) of a file; None and None without one."""
    return stamp(path) or (None, None)


def missing(path: Path, what: str, owner: str, name: Any) -> Problem:
    """Return the problem of records whose *owner* called *name* does not exist."""
    why = f"{what} of {owner} {abridged(name)}, which does not exist"
    return Problem(str(path), why)
