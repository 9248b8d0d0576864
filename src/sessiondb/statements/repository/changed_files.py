"""The statements of `repository.changed_files`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import numbers
from sessiondb.schema.tables import blob, part, session

_text_blob, _input_blob = blob.alias("tb"), blob.alias("ib")
CALLS = (
    select(
        part.c.rid,
        part.c.tool,
        part.c.input,
        _input_blob.c.data,
        part.c.text,
        _text_blob.c.data,
        session.c.directory,
    )
    .join_from(part, session, session.c.id == part.c.session_id)
    .outerjoin(_text_blob, _text_blob.c.hash == part.c.text_blob)
    .outerjoin(_input_blob, _input_blob.c.hash == part.c.input_blob)
    .where(part.c.rid.in_(numbers("rids")))
    # A call that failed changed nothing.
    .where(part.c.status.is_distinct_from("error"))
)
