"""The input of a format's writer, and its output.

A writer takes `Export` objects and yields a `Document` for each file it makes
and a `Loss` for each thing that its format cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sessiondb.dataclass import dataclass, field
from sessiondb.model.records import (
    FileDiff,
    Label,
    Message,
    Project,
    Prompt,
    Session,
    Todo,
)
from sessiondb.model.usage import UsageRow
from sessiondb.model.versions import Version


@dataclass(frozen=True, slots=True)
class ExtensionRow:
    """A row that a program added to a session: see `schema.extensions`.

    ``columns`` are those that are not NULL, by name, without that of the session.
    """

    extension: str
    table: str
    columns: Mapping[str, str | int | float | bytes]


@dataclass(frozen=True, slots=True)
class Export:
    """One session to be written in some format.

    ``messages`` may be lazy and can be read once: the live path oldest first, or
    every message in order of seq. Directories are absolute. ``parent`` is the
    session it belongs to, None for a root or if that is unknown. ``prompts`` is
    what the prompt history has of it, ``base`` the versions of its fields that this
    database last agreed on with a log (see `model.versions`). ``usage`` has what is
    estimated of its cost, None if that was not asked for, ``subagents`` those that it
    started, none if they were not. ``origin`` is the session of a program that a fork
    goes back to: the head of a transcript names that program. ``extension_tables`` are
    the tables in which programs added rows to it, ``extension_rows`` these rows, which
    may be lazy and can be read once.
    """

    session: Session
    project: Project | None
    messages: Iterable[Message]
    todos: tuple[Todo, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    labels: tuple[Label, ...] = ()
    parent: Session | None = None
    prompts: tuple[Prompt, ...] = ()
    base: Mapping[str, Version] = field(default_factory=dict)
    usage: UsageRow | None = None
    subagents: tuple[Session, ...] = ()
    origin: Session | None = None
    extension_tables: tuple[str, ...] = ()
    extension_rows: Iterable[ExtensionRow] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A file that a writer makes: its relative ``name``, and its text, made lazily.

    A chunk is bytes if it is not UTF-8, as it was in a file that is written again.
    """

    name: str
    chunks: Iterable[str | bytes]

    def encoded(self) -> Iterator[bytes]:
        """Yield the contents of the file."""
        for chunk in self.chunks:
            if isinstance(chunk, str):
                chunk = chunk.encode("utf-8", "surrogatepass")  # noqa: PLW2901
            yield chunk


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a format cannot hold, of a session: one field of its records.

    ``of`` is the sort of the records: ``session``, ``todos``, ``diffs``, ``labels``,
    ``extension_rows``; a message by its role, and its kind if it has one
    (``assistant``, ``event:compaction``); a part by its message and its type
    (``assistant/tool``).
    ``field`` is the field of these records (``cost``, ``data``), empty if the records
    themselves are lost; ``order`` is their place, and ``branches`` of a session are its
    messages off the live path. It happened ``times``, of ``message_id`` first; None if
    it is of no message. ``why`` has the words for people.
    """

    session_id: str
    why: str
    message_id: str | None = None
    of: str = "session"
    field: str = ""
    times: int = 1
