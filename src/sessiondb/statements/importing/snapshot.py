"""The statements of `importing.snapshot`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import message, session
from sessiondb.statements.repository.sessions import visible

FAMILIES = (
    select(session.c.id, session.c.parent_id)
    .where(visible)
    .order_by(session.c.time_created, session.c.id)
)
IDS = (
    select(message.c.seq, message.c.id)
    .where(message.c.session_id == p("sid"))
    .order_by(message.c.seq)
)
