"""The statements of `importing.policies.recorded`."""

from __future__ import annotations

from sqlalchemy import func, select, text

from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.tables import message, prompt, session

IS_HERE = select(session.c.id).where(
    session.c.id == p("sid"), session.c.time_deleted.is_(None)
)
BEFORE = select(session.c.revision, session.c.time_importing).where(
    session.c.id == p("sid")
)
FORKED = (
    select(session.c.id)
    .where(session.c.root_id == p("root"), session.c.time_deleted.is_(None))
    .where(session.c.relation == text("'fork'"))
    .limit(1)
)
LINKS = select(message.c.seq, message.c.parent_seq).where(
    message.c.session_id == p("sid")
)
COUNT = select(func.count()).where(message.c.session_id == p("sid"))
RELINK = update_of(
    message, "parent_seq", message.c.session_id == p("sid"), message.c.seq == p("at")
)
LIST = update_of(session, "time_importing", session.c.id == p("sid"))
PROMPT_OF = select(prompt.c.session_id).where(prompt.c.id == p("pid"))
OWN_PROMPT = update_of(prompt, "session_id", prompt.c.id == p("pid"))
