"""The statements of `repository.sessions`."""

from __future__ import annotations

from sqlalchemy import and_, select, text

from sessiondb.engine.expressions import by_index, p, texts
from sessiondb.schema.tables import project_directory, session
from sessiondb.statements.repository.decode import select_session

#: Lists add their terms to these.
ALL = select_session
USED = select_session.with_hint(*by_index(session, "ix_session_used"))
CREATED = select_session.with_hint(*by_index(session, "ix_session_created"))
PROJECT_USED = select_session.with_hint(*by_index(session, "ix_session_project_used"))
PROJECT_CREATED = select_session.with_hint(
    *by_index(session, "ix_session_project_created")
)
# These indexes have only rows with a scope: without this term they answer no query.
_in_scope = select_session.where(session.c.scope == p("scope"))
SCOPE_USED = _in_scope.with_hint(*by_index(session, "ix_session_scope_used"))
SCOPE_CREATED = _in_scope.with_hint(*by_index(session, "ix_session_scope_created"))
visible = and_(session.c.time_deleted.is_(None), session.c.time_importing.is_(None))
BY_IDS = select_session.where(session.c.id.in_(texts("ids")))
PROJECT = (
    select(project_directory.c.project_id)
    .where(project_directory.c.directory == p("directory"))
    .order_by(
        project_directory.c.kind == text("'former'"),
        project_directory.c.time_created.desc(),
        project_directory.c.project_id,
    )
    .limit(1)
)
