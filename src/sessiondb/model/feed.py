"""Places in the feed of changes, as opaque strings.

A cursor names the database, by the beginning of its ``database_uuid``, and the number
of a change in it. Both are the engine's own business: another one may order its commits
by something else. So callers store a cursor and pass it on, and nothing more.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.patterns import late_pattern

#: The cursor before the first change, of any database.
BEGINNING = "beginning"
#: Characters of the database's UUID in a cursor.
NAME_LENGTH = 8
_CURSOR = late_pattern(r".*-[0-9a-f]{16}", re.DOTALL)
_HINT = (
    "pass the cursor of a Change of this database, or BEGINNING for every change; "
    "without since= only new changes follow"
)


class Position(NamedTuple):
    """The place after change *number* of a database, named by its UUID's beginning."""

    database: str
    number: int

    @classmethod
    def of(cls, cursor: str) -> Position:
        """Return the place of a cursor that is known to be one."""
        return cls(cursor[:-17], int(cursor[-16:], 16))

    @property
    def cursor(self) -> str:
        """The cursor of this place.

        All those of one database have the same length, and sort as its changes do.
        """
        return f"{self.database}-{self.number:016x}"


def position_of(cursor: str, newest: Position) -> Position:
    """Return the place of a cursor in the database whose last change is *newest*.

    Raises `InvalidInputError` unless it is a cursor of that database, and of a state
    that it has reached. After an older backup was restored, or in another file, a
    consumer would otherwise miss changes without notice.
    """
    if cursor == BEGINNING:
        return newest._replace(number=0)

    shown = abridged(cursor)
    if not _CURSOR.fullmatch(cursor):
        raise InvalidInputError(
            f"since is not a cursor of changes: {shown}", hint=_HINT
        )

    place = Position.of(cursor)
    if place.database != newest.database:
        raise InvalidInputError(
            f"since is a cursor of another database: {shown}", hint=_HINT
        )

    if place.number > newest.number:
        raise InvalidInputError(
            f"since is a cursor ahead of this database: {shown}", hint=_HINT
        )

    return place
