"""The statements of `importing.beside.history`."""

from __future__ import annotations

from sqlalchemy import delete, or_, select, union_all

from sessiondb.engine.expressions import p, texts
from sessiondb.schema.tables import deletion, prompt, session, tombstone

KNOWN = select(prompt.c.id, prompt.c.session_id).where(prompt.c.id.in_(texts("names")))
SESSIONS = select(
    session.c.id, session.c.source, session.c.source_id, session.c.time_deleted
).where(
    or_(
        session.c.id.in_(texts("own")),
        (session.c.source == p("source")) & session.c.source_id.in_(texts("names")),
    )
)
BURIED = union_all(
    select(tombstone.c.source_id).where(
        tombstone.c.source == p("source"), tombstone.c.source_id.in_(texts("names"))
    ),
    select(deletion.c.session_id).where(deletion.c.session_id.in_(texts("own"))),
)
_FACTS = (prompt.c.id, prompt.c.text, prompt.c.time_created)
IN_SESSION = select(*_FACTS).where(prompt.c.session_id == p("sid"))
AT_TIME = select(*_FACTS).where(
    prompt.c.time_created.between(p("since"), p("until")),
    prompt.c.source == p("source"),
)
REMOVE = delete(prompt).where(prompt.c.id == p("pid"))
