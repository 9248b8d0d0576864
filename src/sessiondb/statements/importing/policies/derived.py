"""The statements of `importing.policies.derived`."""

from __future__ import annotations

from sqlalchemy import func, select, text, update

from sessiondb.engine.expressions import p, update_of
from sessiondb.importing.policies.derived import CLOSED, MERGED
from sessiondb.schema.tables import import_ledger, message, session

IS_TAKEN = select(session.c.id).where(session.c.id == p("sid"))
FREE_SOURCE = (
    update(session)
    .where(session.c.id == p("sid"))
    .values(source_id=None, namespace=text("''"), time_imported=None)
)
STORED = select(*(session.c[name] for name in MERGED)).where(session.c.id == p("sid"))
MERGE = update_of(session, " ".join(MERGED), session.c.id == p("sid"))
# Forks keep what they copied, but stay copies: copies are found by their key.
RENAME_COPIES = (
    update(message)
    .where(
        message.c.usage_key == p("old"),
        message.c.id == p("mid"),
        message.c.seq == p("at"),
        message.c.inherited == text("1"),
    )
    # A copy may state another response id than its original does now.
    .values(
        usage_key=p("usage_key"),
        usage_name=func.nullif(
            p("usage_name"),
            func.coalesce(func.nullif(message.c.response_id, text("''")), message.c.id),
        ),
    )
)
IMPORTED = select(import_ledger.c.time_imported).where(
    import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
)
FACTS = select(session.c.parent_id, *(session.c[name] for name in CLOSED)).where(
    session.c.id == p("sid")
)
CLOSE = update_of(session, " ".join(CLOSED), session.c.id == p("sid"))
LAST_TIME = select(func.max(message.c.time_created)).where(
    message.c.session_id == p("sid")
)
