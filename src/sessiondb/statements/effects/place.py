"""The statements of `effects.place`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, delete, func, or_, select

from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.rows import TERMINAL
from sessiondb.schema.tables import project, project_directory, session, terminal


def _is_below(column: ColumnElement[Any]) -> ColumnElement[bool]:
    # Not LIKE, which takes /A for /a and refuses a long path.
    folder = p("below")
    return or_(
        column == p("old"), func.substr(column, 1, func.length(folder)) == folder
    )


#: When the session of a terminal and directory was used.
LAST_USE = select(terminal.c.time_updated).where(
    terminal.c.id == p("name"), terminal.c.directory == p("directory")
)
USES = select(*(terminal.c[name] for name in TERMINAL)).where(
    _is_below(terminal.c.directory)
)
DROP_USES = delete(terminal).where(_is_below(terminal.c.directory))
SESSIONS = select(session.c.id, session.c.directory, session.c.project_id).where(
    _is_below(session.c.directory)
)
MOVE = update_of(session, "directory project_id slug", session.c.id == p("sid"))
ROOTED = (
    select(project.c.id, project.c.worktree)
    .where(_is_below(project.c.worktree))
    .order_by(project.c.time_created, project.c.id)
)
WORKTREE = update_of(project, "worktree time_updated", project.c.id == p("pid"))
DIRECTORIES = (
    select(project_directory.c.directory, project_directory.c.kind)
    .where(project_directory.c.project_id == p("pid"))
    .where(_is_below(project_directory.c.directory))
    .where(project_directory.c.kind != "former")
    .order_by(project_directory.c.time_created, project_directory.c.directory)
)
FORMER = update_of(
    project_directory,
    "kind",
    project_directory.c.project_id == p("pid"),
    project_directory.c.directory == p("old"),
)
