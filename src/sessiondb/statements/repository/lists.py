"""The statements of `repository.lists`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, or_, select, text

from sessiondb.engine.expressions import p
from sessiondb.repository.lists import PROMPT_COLUMNS
from sessiondb.schema.tables import (
    UNSETTLED,
    file_diff,
    lease,
    merge_base,
    message,
    part,
    project,
    session,
    todo,
)
from sessiondb.schema.terms import LIVING_LEASE
from sessiondb.statements.repository.decode import select_session
from sessiondb.statements.repository.sessions import visible

PROJECTS = select(
    project.c.id,
    project.c.worktree,
    project.c.vcs,
    project.c.remote,
    project.c.root_commit,
    project.c.name,
    project.c.metadata,
    project.c.time_created,
    project.c.time_updated,
    project.c.permission,
    project.c.time_initialized,
).order_by(project.c.worktree, project.c.id)
TODOS = (
    select(
        todo.c.content,
        todo.c.status,
        todo.c.priority,
        todo.c.id,
        todo.c.time_created,
        todo.c.time_updated,
    )
    .where(todo.c.session_id == p("sid"))
    .order_by(todo.c.position)
)
DIFFS = (
    select(
        file_diff.c.path,
        file_diff.c.seq,
        file_diff.c.patch,
        file_diff.c.additions,
        file_diff.c.deletions,
        file_diff.c.before_blob,
        file_diff.c.after_blob,
    )
    .where(file_diff.c.session_id == p("sid"))
    .order_by(file_diff.c.seq, file_diff.c.path)
)
BASE = select(merge_base.c.fields).where(merge_base.c.session_id == p("sid"))
PROMPTS = text(
    f"SELECT {PROMPT_COLUMNS} FROM prompt WHERE session_id = :sid "
    "ORDER BY time_created, id"
)
HALF_IMPORTED = text(
    "SELECT id FROM session "
    "WHERE time_importing IS NOT NULL AND time_deleted IS NULL ORDER BY id"
)


def _abandoned_statement() -> Any:
    open_message = exists().where(
        message.c.session_id == session.c.id, message.c.time_completed.is_(None)
    )
    open_call = exists().where(part.c.session_id == session.c.id, UNSETTLED)
    is_held = exists().where(lease.c.session_id == session.c.id, text(LIVING_LEASE))
    is_local = or_(
        session.c.time_imported.is_(None), session.c.time_detached.is_not(None)
    )
    return select_session.where(
        visible, is_local, or_(open_message, open_call), ~is_held
    ).order_by(session.c.id)


ABANDONED = _abandoned_statement()
OPEN_MESSAGES = (
    select(message.c.id)
    .where(message.c.session_id == p("sid"), message.c.time_completed.is_(None))
    .order_by(message.c.seq)
)
OPEN_CALLS = (
    select(part.c.id)
    .where(part.c.session_id == p("sid"), UNSETTLED)
    .order_by(part.c.seq, part.c.idx)
)
