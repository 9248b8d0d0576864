"""The statements of `repository.references`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from sessiondb.engine.expressions import p, texts
from sessiondb.repository.references import MAX_CANDIDATES, Extent
from sessiondb.schema.tables import session, terminal, tombstone
from sessiondb.statements.repository.decode import select_session
from sessiondb.statements.repository.sessions import visible


def _equal_statement(column: Any) -> Any:
    """Return the query for the sessions with exactly this name."""
    return select_session.where(column == p("ref"), session.c.time_deleted.is_(None))


def _candidates_statement(*conditions: Any) -> Any:
    """Return the query for the sessions that an unclear name may mean."""
    return select_session.where(visible, *conditions).limit(MAX_CANDIDATES + 1)


def _like_statement(column: Any, *conditions: Any) -> Any:
    """Return the query for the sessions whose name fits a pattern."""
    is_like = func.lower(column).like(p("pattern"), escape="\\")
    return _candidates_statement(is_like, *conditions)


BY_ID = _equal_statement(session.c.id)
EXTENT = select(*(session.c[name] for name in Extent._fields)).where(
    session.c.id == p("ref"), session.c.time_deleted.is_(None)
)
BY_SOURCE_ID = _equal_statement(session.c.source_id)
BY_SLUG = _equal_statement(session.c.slug)
BY_PREFIX = _candidates_statement(session.c.id >= p("ref"), session.c.id < p("stop"))
BY_TAIL = _like_statement(session.c.id)
BY_SOURCE_PREFIX = _like_statement(session.c.source_id)
BY_TITLE = _candidates_statement(session.c.title == p("ref"))
# Some programs have ids of subagents that begin with that of their session.
ABOVE_SUBAGENTS = _like_statement(
    session.c.source_id,
    func.lower(session.c.source_id).not_like(p("below"), escape="\\"),
)
REMOVED = (
    select(tombstone.c.source_id).where(tombstone.c.source_id == p("ref")).limit(1)
)


def _used_here(*conditions: Any) -> Any:
    """Return the query for the sessions used last in a directory, newest first."""
    return (
        select_session.add_columns(terminal.c.id, terminal.c.time_updated)
        .join(terminal, terminal.c.session_id == session.c.id)
        .where(terminal.c.directory == p("directory"), visible, *conditions)
        .order_by(terminal.c.time_updated.desc())
    )


IN_ANY = _used_here().limit(1)
IN_TERMINAL = _used_here(terminal.c.id.in_(texts("names")))
