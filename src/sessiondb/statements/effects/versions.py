"""The statements of `effects.versions`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.effects.versions import VERSIONED
from sessiondb.engine.expressions import p
from sessiondb.schema.tables import (
    blob,
    file_diff,
    label,
    merge_base,
    message,
    session,
    todo,
)

ROW = (
    select(
        *(session.c[name] for name in VERSIONED[:-1]),
        session.c.data,
        blob.c.size,
        blob.c.encoding,
        blob.c.data,
    )
    .select_from(session.outerjoin(blob, blob.c.hash == session.c.data_blob))
    .where(session.c.id == p("sid"))
)
LABELS = (
    select(label.c.label, message.c.id)
    .join_from(
        label,
        message,
        (message.c.session_id == label.c.session_id) & (message.c.seq == label.c.seq),
    )
    .where(label.c.session_id == p("sid"))
)
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
        message.c.id,
        file_diff.c.path,
        file_diff.c.patch,
        file_diff.c.before_blob,
        file_diff.c.after_blob,
        file_diff.c.additions,
        file_diff.c.deletions,
    )
    .select_from(
        file_diff.outerjoin(
            message,
            (message.c.session_id == file_diff.c.session_id)
            & (message.c.seq == file_diff.c.seq),
        )
    )
    .where(file_diff.c.session_id == p("sid"))
)
ID = select(message.c.id).where(
    message.c.session_id == p("sid"), message.c.seq == p("at")
)
BASE = select(merge_base.c.fields).where(merge_base.c.session_id == p("sid"))
