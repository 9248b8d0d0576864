"""The statements of `repository.family`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Text, cast, func, literal_column, select, text

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import blob, label, message, part, session
from sessiondb.statements.repository.decode import select_session
from sessiondb.statements.repository.sessions import visible

# Ids descend: within a millisecond the greater one was made first. Those of imports end
# in a hash, which at least is the same in every database.
_by_age = (session.c.time_created, session.c.id.desc())
FAMILY = select_session.where(session.c.root_id == p("root"), visible).order_by(
    *_by_age
)
CHILDREN_SHOWN = select_session.where(
    session.c.parent_id == p("sid"), visible
).order_by(*_by_age)
LABELS = (
    select(label.c.session_id, label.c.seq, label.c.label)
    .where(label.c.session_id == p("sid"))
    .order_by(label.c.seq, label.c.label)
)


def _preview_statement() -> Any:
    shown = func.coalesce(part.c.text, cast(blob.c.data, Text), part.c.tool)
    first = (
        select(func.substr(shown, text("1"), text("80")))
        .select_from(part.outerjoin(blob, blob.c.hash == part.c.text_blob))
        .where(
            part.c.session_id == message.c.session_id,
            part.c.seq == message.c.seq,
            part.c.type.in_(
                [
                    literal_column("'text'"),
                    literal_column("'tool'"),
                    literal_column("'reasoning'"),
                ]
            ),
        )
        .order_by(part.c.type != text("'text'"), part.c.idx)
        .limit(1)
        .scalar_subquery()
    )
    return (
        select(
            message.c.seq,
            message.c.parent_seq,
            message.c.id,
            message.c.role,
            message.c.kind,
            first,
        )
        .where(message.c.session_id == p("sid"))
        .order_by(message.c.seq)
    )


NODES = _preview_statement()
CHILDREN = select_session.where(
    session.c.parent_id == p("sid"), session.c.time_deleted.is_(None)
).order_by(session.c.id)
