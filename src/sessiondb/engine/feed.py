"""The interface of the feed of changes: in which order an engine has them.

Each write of a session is a change with a number, which its row keeps as ``change``; a
deletion is a row of ``deletion`` with one. Numbers grow from change to change of a
session. What orders the changes of different sessions is the engine's own, and only a
cursor tells it: a text that is stored and handed back, and never read.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sessiondb.engine.base import Connection
from sessiondb.engine.sql import Read


class ChangedSession(NamedTuple):
    """A session in the feed, as it is now."""

    #: The place behind it.
    cursor: str
    session_id: str
    revision: int
    last_seq: int
    #: 1 for a deletion.
    is_deleted: int
    #: The seqs of its first open message, and of the first message with an open call.
    open_message: int | None
    open_call: int | None


class ChangeNumbers(Protocol):
    """The numbers of changes, as a writer knows them from one transaction to the next.

    It is dropped after a commit of another process, and if a transaction fails.
    """

    def expect(self, connection: Connection) -> None:
        """Ask for what `take` needs, together with other statements.

        Only for an engine that `answers_late`.
        """

    def take(self, connection: Connection, session_id: str) -> tuple[int, str]:
        """Return the number of the next change of a session, and its cursor."""


class ChangeFeed(Protocol):
    """The feed of changes. All but `numbers` are reads."""

    def numbers(self) -> ChangeNumbers:
        """Return what a writer knows that has not read anything yet."""

    def newest(self) -> Read[str]:
        """Return the cursor behind the newest change."""

    def check(self, cursor: str) -> Read[str]:
        """Return the *cursor* where a consumer continues, `BEGINNING` for the first.

        Raises `InvalidInputError` unless it is one of this database, and of a state
        that it has reached. After an older backup was restored, or in another database,
        a consumer would otherwise miss changes without notice.
        """

    def changed_since(
        self, cursor: str, session_id: str | None, rows: int
    ) -> Read[list[ChangedSession]]:
        """Return up to *rows* changes behind *cursor*, the first of them first.

        Of one session if *session_id* is given. None is ``[]``. A change that is
        committed later has a place behind all that were returned.
        """
