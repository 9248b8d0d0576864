"""The statements of `importing.unchanged`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, select

from sessiondb.engine.expressions import p, texts
from sessiondb.schema.tables import import_ledger, session, tombstone

ENTRIES = select(
    import_ledger.c.path, import_ledger.c.digest, import_ledger.c.namespace
).where(
    import_ledger.c.source == p("source"),
    import_ledger.c.path.in_(texts("paths")),
    # An entry without an offset, or with problems, is read again.
    import_ledger.c.offset.is_not(None),
    import_ledger.c.problems.is_(None),
)
_is_buried = exists().where(
    tombstone.c.source == session.c.source,
    tombstone.c.source_id == session.c.source_id,
    tombstone.c.namespace == session.c.namespace,
)
FOLLOWING = select(
    session.c.source_id, session.c.namespace, session.c.id, session.c.message_count
).where(
    session.c.source == p("source"),
    session.c.source_id.in_(texts("names")),
    session.c.time_imported.is_not(None),
    session.c.time_detached.is_(None),
    session.c.time_deleted.is_(None),
    session.c.time_importing.is_(None),
    ~_is_buried,
)


def _history_statement() -> Any:
    other = import_ledger.alias("other")
    # Histories have no "#" before the name of a session.
    is_newer = exists().where(
        other.c.source == import_ledger.c.source,
        other.c.time_imported >= import_ledger.c.time_imported,
        other.c.path.contains("#"),
    )
    return select(
        import_ledger.c.digest,
        import_ledger.c.problems.is_(None) & ~is_newer,
    ).where(import_ledger.c.source == p("source"), import_ledger.c.path == p("path"))


HISTORY = _history_statement()
