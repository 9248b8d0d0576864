"""The statements of `importing.lookup`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    and_,
    case,
    exists,
    false,
    literal_column,
    or_,
    select,
    text,
    union_all,
)

from sessiondb.engine.expressions import p, string
from sessiondb.schema.tables import deletion, import_ledger, session, tombstone

_is_named = and_(
    session.c.source == p("source"),
    session.c.source_id == p("source_id"),
    session.c.namespace == p("namespace"),
)
_is_source = session.c.id == p("sid")
HERE = (
    select(
        session.c.id,
        _is_named,
        session.c.time_detached,
        session.c.time_imported,
        session.c.time_deleted,
        session.c.time_importing,
        session.c.time_updated,
        session.c.message_count,
    )
    .where(or_(_is_source, _is_named))
    .order_by(session.c.id != p("sid"))
)


def _noted_statement() -> Any:
    always = select(literal_column("1").label("one")).subquery()
    buried = exists().where(
        tombstone.c.source == p("source"),
        tombstone.c.source_id == p("buried_as"),
        tombstone.c.namespace == p("buried_in"),
    )
    # A scan, so it is done only for a session that does not exist and has no tombstone.
    was_here = case(
        (or_(string("own").is_(None), buried), false()),
        else_=exists().where(deletion.c.session_id == p("own")),
    )
    entry = and_(
        import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
    )
    return select(
        buried,
        was_here,
        import_ledger.c.digest,
        import_ledger.c.offset,
        import_ledger.c.problems,
    ).select_from(always.outerjoin(import_ledger, entry))


NOTED = _noted_statement()


def _namespaces_statement() -> Any:
    entry = select(import_ledger.c.namespace, literal_column("1")).where(
        import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
    )
    by_name = (
        select(table.c.namespace, literal_column("0")).where(
            table.c.source == p("source"),
            table.c.source_id == p("source_id"),
            table.c.namespace != text("''"),
        )
        for table in (session, tombstone)
    )
    return union_all(entry, *by_name)


NAMESPACES = _namespaces_statement()
