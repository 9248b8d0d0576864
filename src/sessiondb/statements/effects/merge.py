"""The statements of `effects.merge`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import or_, select, text

from sessiondb.effects.merge import MERGED
from sessiondb.engine.expressions import insert_new, p, update_of
from sessiondb.schema.tables import project, project_directory, prompt, session

PROJECT = select(*(project.c[name] for name in MERGED)).where(project.c.id == p("pid"))
SET_PROJECT = update_of(
    project, " ".join((*MERGED, "time_updated")), project.c.id == p("pid")
)
DROP_PROJECT = project.delete().where(project.c.id == p("pid"))
SESSIONS = select(session.c.id, session.c.slug).where(session.c.project_id == p("pid"))
MOVE_SESSION = update_of(session, "project_id slug", session.c.id == p("sid"))
MOVE_PROMPTS = update_of(prompt, "project_id", prompt.c.project_id == p("pid"))
DIRECTORIES = select(project_directory.c.directory, project_directory.c.kind).where(
    project_directory.c.project_id == p("pid")
)
ADD_DIRECTORIES = insert_new(project_directory).from_select(
    ["directory", "project_id", "kind", "time_created"],
    select(
        project_directory.c.directory,
        p("into"),
        project_directory.c.kind,
        project_directory.c.time_created,
    )
    .where(project_directory.c.project_id == p("pid"))
    .order_by(project_directory.c.time_created, project_directory.c.directory),
)
REVIVE = (
    project_directory.update()
    .where(
        project_directory.c.project_id == p("into"),
        project_directory.c.kind == text("'former'"),
        project_directory.c.directory.in_(
            select(project_directory.c.directory)
            .where(project_directory.c.project_id == p("pid"))
            .where(project_directory.c.kind != text("'former'"))
        ),
    )
    .values(kind=text("'worktree'"))
)


def _project_at() -> Any:
    return (
        select(project.c.id)
        .join(
            project_directory,
            project_directory.c.project_id == project.c.id,
            isouter=True,
        )
        .where(
            or_(
                project.c.worktree == p("worktree"),
                (project_directory.c.directory == p("worktree"))
                & (project_directory.c.kind == text("'worktree'")),
            )
        )
        .group_by(project.c.id, project.c.time_created)
        .order_by(project.c.time_created, project.c.id)
    )


AT = _project_at()
