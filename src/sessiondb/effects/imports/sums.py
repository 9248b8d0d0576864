"""The usage of a session that none of its messages states.

Some programs state what a session cost in all. What that is beyond its messages is an
event beside the path, so that the sum of the rows is right. But the rows of this
database may be others than those of the store that stated the total: an older store of
the same program may have a message that a newer one lost, with its usage. So the event
keeps the total that was stated, and is computed again from the rows here whenever one
of the stores is imported.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select, text

from sessiondb.effects.calls import data_of
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.model.source import STATED_TOTAL, TOTAL_AFTER, sum_event_id
from sessiondb.schema import message

_COLUMNS = (
    "cost tokens_input tokens_output tokens_reasoning tokens_cache_read "
    "tokens_cache_write"
).split()
#: Sums of floats made in another order differ in their last digits.
_DIGITS = 9
_SEQ = Statement(
    lambda: select(message.c.seq).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)
_EVENT = Statement(
    lambda: select(
        message.c.data, message.c.data_blob, *(message.c[name] for name in _COLUMNS)
    ).where(message.c.session_id == p("sid"), message.c.seq == p("at"))
)
_OTHERS = Statement(
    lambda: select(*(func.sum(message.c[name]) for name in _COLUMNS)).where(
        message.c.session_id == p("sid"),
        message.c.seq != p("at"),
        message.c.seq > p("after"),
        message.c.inherited == text("0"),
    )
)
_SET = update_of(
    message,
    " ".join(_COLUMNS),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)


def complete_sum(tx: Transaction, session_id: str, source_id: str) -> None:
    """Make the rows of a session add up to the total that its program stated, if any.

    Rows that state more than that stay as they are, and nothing is left for the event.
    """
    event = tx.value(_SEQ, sid=session_id, mid=sum_event_id(source_id))
    if event is None:
        return
    data, data_blob, *stored = tx.one(_EVENT, sid=session_id, at=event)
    facts: dict[str, Any] = data_of(tx, data, data_blob)
    total = facts.get(STATED_TOTAL)
    if not isinstance(total, dict):
        return

    # What the session copied from its original is not in its total.
    last_copy = facts.get(TOTAL_AFTER)
    copied = tx.value(_SEQ, sid=session_id, mid=last_copy) if last_copy else None
    others = tx.one(_OTHERS, sid=session_id, at=event, after=copied or 0)
    left = []
    for name, other in zip(_COLUMNS, others, strict=True):
        more = (total.get(name) or 0) - (other or 0)
        more = round(more, _DIGITS) if name == "cost" else int(more)
        left.append(more if more > 0 else None)
    if left != stored:
        values = dict(zip(_COLUMNS, left, strict=True))
        tx.run(_SET, sid=session_id, at=event, **values)
