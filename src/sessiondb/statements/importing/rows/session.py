"""The statements of `importing.rows.session`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
)

from sessiondb.engine.expressions import p, update_of
from sessiondb.importing.rows.session import FACTS
from sessiondb.schema.tables import (
    project,
    project_directory,
    prompt,
    session,
    tombstone,
)


def _is_at_or_below(folder: ColumnElement[Any]) -> ColumnElement[bool]:
    # Not LIKE, which takes /A for /a.
    prefix = folder + text("'/'")
    return or_(
        p("at") == folder, func.substr(p("at"), 1, func.length(prefix)) == prefix
    )


PROJECT = (
    select(project.c.id, *(project.c[name] for name in FACTS))
    .join_from(session, project, project.c.id == session.c.project_id)
    .where(session.c.id == p("sid"))
)
SET_PROJECT = update_of(
    project, " ".join((*FACTS, "time_updated")), project.c.id == p("pid")
)
PLACE = select(session.c.directory).where(session.c.id == p("sid"))
MOVE_PROMPTS = update_of(
    prompt, "directory project_id", prompt.c.session_id == p("sid")
)
#: Whether `Relink` moved a directory, or one above it.
FORMER: Select[Any] = (
    select(literal_column("1"))
    .where(project_directory.c.kind == "former")
    .where(_is_at_or_below(project_directory.c.directory))
    .limit(1)
)


#: The session that a source names, among those that are not deleted.
BY_SOURCE = select(session.c.id).where(
    session.c.source == p("source"),
    session.c.source_id == p("source_id"),
    session.c.namespace == p("namespace"),
    session.c.time_deleted.is_(None),
)
UNBURY = delete(tombstone).where(
    tombstone.c.source == p("source"),
    tombstone.c.source_id == p("source_id"),
    tombstone.c.namespace == p("namespace"),
)
