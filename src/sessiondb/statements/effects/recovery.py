"""The statements of `effects.recovery`."""

from __future__ import annotations

from sqlalchemy import select, text

from sessiondb.effects.transaction import INDEXING
from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.tables import UNSETTLED, message, part

CALLS = select(part.c.rid, part.c.seq, part.c.inherited).where(
    part.c.session_id == p("sid"), UNSETTLED
)
SETTLE = update_of(
    part, f"status outcome {INDEXING} time_updated time_ended", part.c.rid == p("row")
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
RIDS = select(part.c.rid).where(
    part.c.session_id == p("sid"),
    part.c.seq == p("at"),
    part.c.indexed == text("0"),
    part.c.inherited == text("0"),
)
