"""The feed of changes to sessions, in the order of the engine.

The row of a session keeps only the number of its last change, since the row shows the
effect of all of them. A deletion is a row of ``deletion``, which remains after the
session's rows were removed or it was imported again, so that a consumer gets every
deletion, whenever it continues.
"""

from __future__ import annotations

from sessiondb.model import Change
from sessiondb.repository import Read, engine_in_use

#: Changes read at once.
CHANGES = 500


def newest_change() -> Read[str]:
    """Return the cursor of the newest change."""
    engine = yield from engine_in_use()
    return (yield from engine.feed.newest())


def checked_cursor(cursor: str) -> Read[str]:
    """Return the cursor where a consumer continues; raises `InvalidInputError`."""
    engine = yield from engine_in_use()
    return (yield from engine.feed.check(cursor))


def changes_since(
    cursor: str, session_id: str | None, seen: dict[str, int]
) -> Read[list[Change]]:
    """Return the changes after *cursor*, of one session or of all.

    They are at most `CHANGES`; none is ``[]``. *seen* maps a session to the last seq
    that was final when it was reported: an open message, or one with an open call, may
    still change in place. A deleted session is forgotten; one that is created again
    under its id begins at 0.
    """
    engine = yield from engine_in_use()
    changed = yield from engine.feed.changed_since(cursor, session_id, CHANGES)
    changes: list[Change] = []
    for place, sid, revision, last_seq, is_deleted, *open_seqs in changed:
        reported = seen.pop(sid, 0)
        changes.append(
            Change(place, sid, revision, last_seq, reported, bool(is_deleted))
        )
        if not is_deleted:
            seen[sid] = min(
                [last_seq, *(seq - 1 for seq in open_seqs if seq is not None)]
            )
    return changes
