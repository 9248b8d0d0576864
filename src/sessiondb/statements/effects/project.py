"""The statements of `effects.project`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.tables import project, project_directory

BY_DIRECTORY = (
    select(project_directory.c.project_id)
    .where(project_directory.c.directory == p("directory"))
    .where(project_directory.c.kind != "former")
    .order_by(project_directory.c.time_created.desc(), project_directory.c.project_id)
    .limit(1)
)
#: (project, directory) of every worktree of one repository.
SAME_REPOSITORY = (
    select(project.c.id, project_directory.c.directory)
    .join_from(
        project, project_directory, project_directory.c.project_id == project.c.id
    )
    .where(
        project.c.root_commit == p("root_commit"),
        project.c.remote.is_not_distinct_from(p("remote")),
        project_directory.c.kind == "worktree",
    )
)
FACTS = select(project.c.vcs, project.c.remote, project.c.root_commit).where(
    project.c.id == p("pid")
)
SET_FACTS = update_of(
    project, "vcs remote root_commit time_updated", project.c.id == p("pid")
)
BY_ID = select(project.c.worktree).where(project.c.id == p("pid"))
SET_WORKTREE = update_of(project, "worktree time_updated", project.c.id == p("pid"))
FORGET_DIRECTORY = project_directory.delete().where(
    project_directory.c.directory == p("directory"),
    project_directory.c.project_id == p("pid"),
)
