"""The records of a store before any of them is interpreted.

A store is a list of session heads, small enough to keep, and for each session its
record and its messages, read one by one. Ids come from rows and file names, never from
inside a record: OpenCode moved records without rewriting them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sessiondb.dataclass import dataclass, field
from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import fitting, integer, text
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import Raw, usable_id
from sessiondb.model import Problem


class Head(NamedTuple):
    """A session without its messages."""

    id: str
    #: The id of the session that started it.
    parent: str | None
    #: In Unix ms; 0 is unknown.
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

    #: In Unix ms; 0 is unknown.
    time: int
    id: str


class RawPart(NamedTuple):
    """A part as stored."""

    id: str
    #: Its stored form alone: it is taken out to be decoded, so that it can be freed.
    raw: list[Raw]
    #: The times of its row, in Unix ms; None in a store without rows.
    time_created: int | None = None
    time_updated: int | None = None


@dataclass(slots=True)
class SessionRecord:
    """A session's own record, and the records beside it."""

    #: The record as OpenCode exports it.
    info: dict[str, Any]
    #: They change whenever anything of the session changed.
    facts: list[Any]
    #: The file that has the record, with its size and modification time.
    path: Path
    size: int | None = None
    mtime_ns: int | None = None
    #: The root of its project, as the store names it.
    worktree: str | None = None
    vcs: str | None = None
    #: The id of its project, in a git repository the first commit.
    root_commit: str | None = None
    #: The record of its project, and the permissions given there.
    project: Mapping[str, Any] = field(default_factory=dict)
    approved: Any = None
    #: Its todo list, None without one.
    todo: list[Any] | None = None
    #: The list of its file diffs, None without one.
    diff: list[Any] | None = None
    #: The record of its share, None without one, and the folder of that.
    share: dict[str, Any] | None = None
    share_folder: str | None = None
    #: Fields of a `SourceSession` that the record does not have.
    columns: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class Records(Protocol):
    """A store of one generation, whichever way it is written."""

    path: Path
    #: The directory of a store's side files.
    home: Path

    def path_of(self, session: str, message: str = "", part: str = "") -> Path:
        """The file that holds a record."""

    def reading(self) -> AbstractContextManager[object]:
        """Keep the store open, and its content as it is if that is possible."""

    def read_heads(self) -> Iterator[Head | Problem]:
        """All sessions; those created in the same ms in the order they were stored."""

    def read_session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created."""

    def list_messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order."""

    def read_message(self, session: str, message: str) -> Raw:
        """Read one message as stored."""

    def read_parts(self, session: str, message: str) -> Iterable[RawPart]:
        """Read the parts of a message as stored, in order."""

    def starting_calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session."""

    def find_orphans(self) -> Iterator[Problem]:
        """Records that belong to nothing."""


def stamp_of(path: Path) -> tuple[int | None, int | None]:
    """Return size and modification time (ns) of a file; None and None without one."""
    return file_stamp(path) or (None, None)


def ownerless_problem(path: Path, records: str, owner: str, name: Any) -> Problem:
    """Return the problem of *records* whose *owner* called *name* does not exist."""
    reason = f"{records} of {owner} {abridged(name)}, which does not exist"
    return Problem(str(path), reason)
