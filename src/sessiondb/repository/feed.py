"""The feed of changes to sessions, in the order of the database.

Each change has a number. The row of a session keeps only that of its last change, since
the row shows the effect of all of them. A deletion is a row of ``deletion``, which
remains after the session's rows were removed or it was imported again, so that a
consumer gets every deletion, whenever it continues.
"""

from __future__ import annotations

from sessiondb.engine.sql import Statement
from sessiondb.model import Change
from sessiondb.model.feed import Position
from sessiondb.repository import Read

#: Changes read at once.
CHANGES = 500


_CHANGES = Statement("repository.feed.CHANGED")
_NEWEST = Statement("repository.feed.NEWEST")


def newest_change() -> Read[Position]:
    """Return the place of the newest change."""
    rows = yield _NEWEST, {}
    database, number = rows[0]
    return Position(database or "", number)


def changes_since(
    since: Position, seen: dict[str, int]
) -> Read[tuple[list[Change], Position]]:
    """Return the changes after *since*, and the place after them.

    They are at most `CHANGES`; none is ``[]`` and *since*. *seen* maps a session to the
    last seq that was final when it was reported: an open message, or one with an open
    call, may still change in place. A deleted session is forgotten; one that is created
    again under its id begins at 0.
    """
    rows = yield _CHANGES, {"since": since.number}
    changes: list[Change] = []
    place = since
    for number, sid, revision, last_seq, deleted, *open_seqs in rows:
        place, reported = since._replace(number=number), seen.pop(sid, 0)
        changes.append(
            Change(place.cursor, sid, revision, last_seq, reported, bool(deleted))
        )

        if not deleted:
            seen[sid] = min(
                [last_seq, *(seq - 1 for seq in open_seqs if seq is not None)]
            )

    return changes, place
