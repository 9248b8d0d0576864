"""The statements of `effects.tree`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import message

LINKS = (
    select(message.c.seq, message.c.parent_seq)
    .where(message.c.session_id == p("sid"))
    .order_by(message.c.seq)
)
LINKS_BEHIND = (
    select(message.c.seq, message.c.parent_seq)
    .where(message.c.session_id == p("sid"), message.c.seq > p("after"))
    .order_by(message.c.seq)
)
