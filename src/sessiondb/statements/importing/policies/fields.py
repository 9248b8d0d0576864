"""The statements of `importing.policies.fields`."""

from __future__ import annotations

from sqlalchemy import delete, select

from sessiondb.engine.expressions import p, update_of
from sessiondb.importing.policies.fields import MERGED
from sessiondb.schema.tables import label, session

STORED = select(*(session.c[name] for name in MERGED)).where(session.c.id == p("sid"))
MERGE = update_of(session, " ".join(MERGED), session.c.id == p("sid"))
DROP_LABEL = delete(label).where(
    label.c.session_id == p("sid"), label.c.label == p("name")
)
