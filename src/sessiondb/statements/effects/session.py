"""The statements of `effects.session`."""

from __future__ import annotations

from sqlalchemy import delete, select

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import file_diff, label, prompt, session, todo

EXISTING = select(
    session.c.parent_id,
    session.c.relation,
    session.c.source,
    session.c.source_id,
    session.c.time_deleted,
).where(session.c.id == p("sid"))
SLUG = select(session.c.id).where(
    session.c.project_id.is_not_distinct_from(p("pid")), session.c.slug == p("slug")
)
SCOPE = select(session.c.scope).where(session.c.id == p("sid"))
METADATA = select(session.c.metadata).where(session.c.id == p("sid"))
CLEAR_TODOS = delete(todo).where(todo.c.session_id == p("sid"))
DIFF_BLOBS = select(file_diff.c.before_blob, file_diff.c.after_blob).where(
    file_diff.c.session_id == p("sid")
)
CLEAR_DIFFS = delete(file_diff).where(file_diff.c.session_id == p("sid"))
DROP_LABELS = delete(label).where(
    label.c.session_id == p("sid"), label.c.seq == p("at")
)
DROP_NAME = delete(label).where(
    label.c.session_id == p("sid"), label.c.label == p("name")
)
PROMPT_IS = select(prompt.c.text).where(prompt.c.id == p("pid"))
