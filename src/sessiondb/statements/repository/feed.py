"""The statements of `repository.feed`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, literal_column, null, select, text, union_all

from sessiondb.engine.elements import Largest
from sessiondb.engine.expressions import by_index, p
from sessiondb.repository.feed import CHANGES
from sessiondb.schema.feed import DATABASE
from sessiondb.schema.tables import UNSETTLED, deletion, message, part, session

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


CHANGED = _changes_statement()
#: The number of the newest change, 0 for none.
newest_change = Largest(
    *(
        func.coalesce(select(func.max(table.c.change)).scalar_subquery(), text("0"))
        for table in (session, deletion)
    )
)
NEWEST = select(text(DATABASE), newest_change)
