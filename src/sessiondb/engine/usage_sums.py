"""The interface of the sums of usage that an engine keeps."""

from __future__ import annotations

from typing import Protocol

from sessiondb.engine.base import Connection


class UsageSums(Protocol):
    """The cells of `schema.usage`, and which messages they cover.

    The database itself, by triggers, follows every change and delete of a message that
    a cell covers, also of a shell; new messages wait for `put_waiting`.
    """

    #: The query for the ``rid`` of each session whose cells are not what its messages
    #: add up to.
    wrong_sessions: str

    def is_behind(self, connection: Connection) -> bool:
        """Return whether messages or sessions wait."""

    def put_waiting(self, connection: Connection) -> None:
        """Bring the cells up to date; in a transaction that writes."""
