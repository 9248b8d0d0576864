"""The statements of `importing.policies.returned`."""

from __future__ import annotations

from sqlalchemy import and_, func, select

from sessiondb.engine.expressions import p, texts
from sessiondb.schema.tables import message, part

OUTLINES = (
    select(
        message.c.id,
        message.c.seq,
        message.c.time_created,
        message.c.inherited,
        func.count(part.c.idx),
    )
    .outerjoin(
        part,
        and_(part.c.session_id == message.c.session_id, part.c.seq == message.c.seq),
    )
    .where(message.c.session_id == p("sid"))
    .group_by(message.c.seq, message.c.id, message.c.time_created, message.c.inherited)
)
KNOWN = select(message.c.id).where(
    message.c.session_id == p("sid"), message.c.id.in_(texts("names"))
)
