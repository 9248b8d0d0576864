"""A session in any of the layouts of Goose, as `reader` needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.goose.fields import time_of
from sessiondb.formats.goose.visibility import MessageEntry
from sessiondb.formats.kit.fields import as_list, value_at
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem
from sessiondb.model.namespaces import Namespace
from sessiondb.model.versions import digest

Record = dict[str, Any]
#: Reads the record of an entry, a new one each time; raises `OddRecordError`.
Fetch = Callable[[MessageEntry], Record]


@dataclass(slots=True)
class Contents:
    """The index of a session: its messages by name and place, without their content."""

    entries: list[MessageEntry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    #: Its requests by what they cost, oldest first.
    ledger: list[Record] = field(default_factory=list)
    #: The call that started it, if it is a subagent and its parent says which one did.
    call: str | None = None


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A session by its own record: as Goose exports it, or the first line of a log."""

    #: The file that it is in, its id there, and a digest of its state.
    path: Path
    source_id: str
    digest: str
    #: Its own record.
    record: Mapping[str, Any]
    #: The columns of its rows that are not part of that record.
    raw_rows: Mapping[str, Any] = field(default_factory=dict)
    is_log: bool = False
    is_export: bool = False
    #: Its first message, if that is known.
    first: Mapping[str, Any] | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the session, by the records that all layouts have.

        Goose counts the sessions of a day, and uses the number of a removed one again.
        """
        born = time_of_text(self.record.get("created_at"))
        marks = Namespace("" if born is None else str(born // 1000))
        if self.first is None:
            return str(marks)

        time = time_of(self.first.get("created")) or 0
        texts = [
            value_at(block, "text") for block in as_list(self.first.get("content"))
        ]
        facts = [time // 1000, self.first.get("role"), texts]
        return str(marks._replace(first=digest(facts)))


class Layout(Protocol):
    """One session: its messages are indexed once, and read one at a time."""

    def index_messages(self) -> Contents:
        """Index the messages; raises `OddRecordError` and OSError."""

    def open_records(self) -> AbstractContextManager[Fetch]:
        """Open the store to read messages; raises `OddRecordError` and OSError."""

    def place_of(self, entry: MessageEntry) -> int | None:
        """Return the line of a message; None for a layout without lines."""
