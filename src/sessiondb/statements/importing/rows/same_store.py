"""The statements of `importing.rows.same_store`."""

from __future__ import annotations

from sqlalchemy import select, text

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import import_ledger, session

ENTRY = select(import_ledger.c.namespace).where(
    import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
)
NAMESPACES = select(session.c.namespace).where(
    session.c.source == p("source"),
    session.c.source_id == p("name"),
    session.c.namespace != text("''"),
)
# The last term is that of the index, which has no entries of other sources.
PATHS = select(import_ledger.c.path).where(
    import_ledger.c.source == p("source"),
    import_ledger.c.namespace == p("namespace"),
    import_ledger.c.namespace != text("''"),
)
