"""The statements of `effects.recovery`."""

from __future__ import annotations

from sqlalchemy import select, text

from sessiondb.effects.transaction import INDEXING
from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.tables import UNSETTLED, message, part
from sessiondb.statements.effects.message import of_message, one_part

CALLS = select(part.c.seq, part.c.idx, part.c.inherited).where(
    part.c.session_id == p("sid"), UNSETTLED
)
SETTLE = update_of(
    part, f"status outcome {INDEXING} time_updated time_ended", *one_part
)
MESSAGES = select(message.c.seq).where(
    message.c.session_id == p("sid"), message.c.time_completed.is_(None)
)
FINISH = update_of(
    message,
    "finish time_completed",
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
UNINDEXED = select(part.c.idx).where(
    *of_message,
    part.c.indexed == text("0"),
    part.c.inherited == text("0"),
)
