"""The statements of `effects.creation`."""

from __future__ import annotations

from sqlalchemy import select, text, update

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import session

NAMED = select(session.c.id, session.c.time_deleted).where(
    session.c.source == p("source"),
    session.c.source_id == p("source_id"),
    session.c.namespace == text("''"),
)
FREE_NAME = update(session).where(session.c.id == p("sid")).values(source_id=None)
