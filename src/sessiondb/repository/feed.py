"""The feed of changes to sessions, in the order of the database.

Each change has a number. The row of a session keeps only that of its last change, since
the row shows the effect of all of them. A deletion is a row of ``deletion``, which
remains after the session's rows were removed or it was imported again, so that a
consumer gets every deletion, whenever it continues.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, func, literal_column, null, select, union_all

from sessiondb.engine.sql import Statement, by_index, p
from sessiondb.model import Change
from sessiondb.model.feed import Position
from sessiondb.repository import Read
from sessiondb.schema import UNSETTLED, deletion, message, part, session
from sessiondb.schema.feed import DATABASE, NEWEST_CHANGE

#: Changes read at once.
CHANGES = 500
# The indexes are named because the planner would walk all of a session's rows.
_first_open = (
    select(func.min(message.c.seq))
    .with_hint(*by_index(message, "ix_message_open"))
    .where(message.c.session_id == session.c.id, message.c.time_completed.is_(None))
    .scalar_subquery()
)
_first_call = (
    select(func.min(part.c.seq))
    .with_hint(*by_index(part, "ix_part_unsettled"))
    .where(part.c.session_id == session.c.id, UNSETTLED)
    .scalar_subquery()
)


def _changes_statement() -> Any:
    still_exists = select(
        session.c.change,
        session.c.id,
        session.c.revision,
        session.c.last_seq,
        literal_column("0"),
        _first_open,
        _first_call,
    ).where(session.c.change > p("since"), session.c.time_deleted.is_(None))
    gone = select(
        deletion.c.change,
        deletion.c.session_id,
        deletion.c.revision,
        deletion.c.last_seq,
        literal_column("1"),
        null(),
        null(),
    ).where(deletion.c.change > p("since"))

    # SQLite merges the two along their indexes and stops at the limit.
    both = union_all(still_exists, gone)
    return both.order_by(literal_column("1")).limit(literal_column(str(CHANGES)))


_CHANGES = Statement(_changes_statement)
_NEWEST = Statement(lambda: select(DATABASE, literal_column(NEWEST_CHANGE, Integer)))


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
