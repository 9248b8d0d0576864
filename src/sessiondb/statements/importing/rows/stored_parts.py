"""The statements of `importing.rows.stored_parts`."""

from __future__ import annotations

from sqlalchemy import literal_column, select, text

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import message

ANSWER = (
    select(message.c.seq)
    .where(
        message.c.session_id == p("sid"),
        message.c.seq.between(p("first"), p("last")),
        message.c.response_id == p("response"),
        message.c.role == text("'assistant'"),
    )
    .limit(literal_column("1"))
)
