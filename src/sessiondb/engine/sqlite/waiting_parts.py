"""The numbers of parts: which was given out last, and which the search index covers."""

from __future__ import annotations

import sqlite3

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection
from sessiondb.engine.search_index import SearchedTexts
from sessiondb.engine.sqlite.search_tables import MARK_OF_INDEX, PUT_WAITING
from sessiondb.schema.rows import PartAddress

#: Parts that wait for the search index before it takes them in, and the bytes of their
#: texts. Each word of a batch is an entry to write, so in a batch of 48 a part takes
#: twice as long. Each search goes through those that wait: 6 ms for 190 KB. The log of
#: a busy writer is shortened more often, and they enter the index before that.
MOST_WAITING, MOST_WAITING_BYTES = 512, 256 * 1024
#: The last number that was given out. It is never below the mark, so that none is given
#: twice.
LAST_NUMBER = f"max(coalesce((SELECT max(rid) FROM part), 0), {MARK_OF_INDEX})"
RAISE_MARK = (
    "INSERT INTO meta (key, value) VALUES ('indexed_to', {}) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_NUMBERS = f"SELECT {LAST_NUMBER}, {MARK_OF_INDEX}"


def read_numbers(connection: Connection) -> tuple[int, int]:
    """Return the last number that was given out, and the last that is indexed.

    0 is none. The rows between the two wait.
    """
    last, indexed = connection.execute(_NUMBERS).fetchone()
    return last, indexed


def put_waiting(connection: Connection | sqlite3.Connection) -> None:
    """Index all that wait."""
    connection.execute(PUT_WAITING)
    connection.execute(RAISE_MARK.format(LAST_NUMBER))


@dataclass(slots=True)
class SQLiteWaitingParts:
    """SQLite's half of `engine.search_index.WaitingParts`.

    Numbers are given out here, so that it is known without a query how many wait.
    """

    #: Those of `read_numbers`; None if they are not known.
    _numbers: tuple[int, int] | None = None
    #: Whether parts came or went since `finish` was called.
    _are_changed: bool = False

    def add(
        self,
        connection: Connection,
        part: PartAddress,  # noqa: ARG002  the view of those that wait has it
        texts: SearchedTexts | None,  # noqa: ARG002
        *,
        is_searched: bool,  # noqa: ARG002
    ) -> int:
        """Return the number of a new part."""
        last, indexed = self._numbers or read_numbers(connection)
        self._numbers = last + 1, indexed
        self._are_changed = True
        return last + 1

    def reread(self) -> None:
        """Do nothing: the rows are read when they are indexed."""

    def forget(self) -> None:
        """Record that SQLite chose numbers, or that rows are gone."""
        self._numbers, self._are_changed = None, True

    def finish(self, connection: Connection, size: int) -> bool:
        """Have the index take in all that wait, if they are many."""
        if not self._are_changed:
            return False
        self._are_changed = False
        last, indexed = self._numbers = self._numbers or read_numbers(connection)
        if size < MOST_WAITING_BYTES and last - indexed < MOST_WAITING:
            return False
        put_waiting(connection)
        self._numbers = last, last
        return True
