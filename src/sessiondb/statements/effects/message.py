"""The statements of `effects.message`."""

from __future__ import annotations

from sqlalchemy import or_, select

from sessiondb.effects.message import StoredPart
from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.tables import message, part, session
from sessiondb.statements.effects.ownership import of_key

in_session = message.c.session_id == p("sid")
BY_ID = select(
    message.c.seq,
    message.c.role,
    message.c.kind,
    message.c.turn_id,
    message.c.time_completed,
).where(in_session, message.c.id == p("mid"))
SEQ_OF = select(message.c.seq).where(in_session, message.c.id == p("mid"))
SEQ_IS = select(message.c.seq).where(in_session, message.c.seq == p("at"))
TURN = select(message.c.turn_id).where(in_session, message.c.seq == p("at"))
of_message = (part.c.session_id == p("sid"), part.c.seq == p("at"))
one_part = (*of_message, part.c.idx == p("idx"))
PARTS = (
    select(*(part.c[name] for name in StoredPart._fields))
    .where(*of_message)
    .order_by(part.c.idx)
)
TITLE = update_of(session, "title", session.c.id == p("sid"))
TWIN = (
    select(message.c.seq)
    .where(
        of_key(message, message.c.usage_key == p("key"), message.c.id == p("name")),
        or_(message.c.session_id != p("sid"), message.c.seq != p("at")),
    )
    .limit(1)
)
