"""The statements of `importing.rows.lists`."""

from __future__ import annotations

from sqlalchemy import delete, select

from sessiondb.engine.expressions import p
from sessiondb.schema.rows import FILE_DIFF
from sessiondb.schema.tables import file_diff, todo

TODOS = (
    select(todo.c.id, todo.c.content, todo.c.status, todo.c.priority)
    .where(todo.c.session_id == p("sid"))
    .order_by(todo.c.position)
)
CLEAR_TODOS = delete(todo).where(todo.c.session_id == p("sid"))
DIFFS = select(*(file_diff.c[name] for name in FILE_DIFF[1:])).where(
    file_diff.c.session_id == p("sid")
)
DIFF_BLOBS = select(file_diff.c.before_blob, file_diff.c.after_blob).where(
    file_diff.c.session_id == p("sid")
)
CLEAR_DIFFS = delete(file_diff).where(file_diff.c.session_id == p("sid"))
