"""The statements of `database.worktrees`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import project, project_directory

KNOWN = (
    select(project.c.root_commit)
    .join_from(
        project, project_directory, project_directory.c.project_id == project.c.id
    )
    .where(project_directory.c.directory == p("directory"))
    .where(project_directory.c.kind != "former")
    .order_by(project_directory.c.time_created.desc(), project_directory.c.project_id)
    .limit(1)
)
WITH_REMOTE = (
    select(project.c.root_commit, project.c.id, project_directory.c.directory)
    .join_from(
        project, project_directory, project_directory.c.project_id == project.c.id
    )
    .where(
        project.c.root_commit.is_not(None),
        project.c.remote.is_not_distinct_from(p("remote")),
        project_directory.c.kind == "worktree",
    )
)
