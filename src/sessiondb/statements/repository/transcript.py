"""The statements of `repository.transcript`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, func, or_, select, text

from sessiondb.engine.expressions import of_session, p, string
from sessiondb.repository.transcript import Identity
from sessiondb.schema.tables import blob, file_diff, label, message, part, session
from sessiondb.statements.repository.decode import (
    in_list,
    in_range,
    select_message,
    select_part,
)
from sessiondb.statements.repository.sessions import visible

_of_session = message.c.session_id == p("sid")
LINKS = (
    select(message.c.seq, message.c.parent_seq)
    .where(_of_session)
    .order_by(message.c.seq)
)
MESSAGES = select_message.where(in_range(message)).order_by(message.c.seq)
SOME_MESSAGES = select_message.where(in_list(message))
PARTS = select_part.where(in_range(part)).order_by(part.c.seq, part.c.idx)
SOME_PARTS = select_part.where(in_list(part)).order_by(part.c.seq, part.c.idx)
SEQ_OF_ID = select(message.c.seq).where(_of_session, message.c.id == p("key"))
PLACE_OF_ID = (
    select(message.c.session_id, message.c.seq)
    .join(session, session.c.id == message.c.session_id)
    .where(
        message.c.id == p("key"),
        or_(string("source").is_(None), session.c.source == p("source")),
        visible,
    )
    .order_by(message.c.inherited, session.c.time_created, session.c.id.desc())
    .limit(1)
)
SEQ_OF_LABEL = select(label.c.seq).where(
    label.c.session_id == p("sid"), label.c.label == p("key")
)
SEQ_IS = select(message.c.seq).where(_of_session, message.c.seq == p("key"))
LEAF_OF = text("SELECT leaf_seq FROM session WHERE id = :sid AND time_deleted IS NULL")


def _weights_statement() -> Any:
    large = [blob.alias(name) for name in ("tb", "ib", "db")]
    columns = (part.c.text_blob, part.c.input_blob, part.c.data_blob)
    rows: Any = part
    for value, column in zip(large, columns, strict=True):
        rows = rows.outerjoin(value, value.c.hash == column)

    sizes = [func.coalesce(value.c.size, text("0")) for value in large]
    # A small value is in the row: 1 KB is a guess that is never far off.
    weight = func.sum(text("1024") + sizes[0] + sizes[1] + sizes[2])
    return (
        select(part.c.seq, weight)
        .select_from(rows)
        .where(part.c.session_id == p("sid"))
        .group_by(part.c.seq)
    )


WEIGHTS = _weights_statement()
_stored_blob = select(blob.c.size, blob.c.encoding, blob.c.data).where(
    blob.c.hash == p("hash")
)
BLOB = _stored_blob


def _blob_of() -> Any:
    owner = {
        session.c.id: (session.c.data_blob,),
        message.c.session_id: (message.c.data_blob,),
        part.c.session_id: (part.c.text_blob, part.c.input_blob, part.c.data_blob),
        file_diff.c.session_id: (file_diff.c.before_blob, file_diff.c.after_blob),
    }
    holders = [
        exists().where(kind == p("sid"), column == blob.c.hash)
        for kind, columns in owner.items()
        for column in columns
    ]
    return of_session(_stored_blob.where(or_(*holders)))


BLOB_OF = _blob_of()
IDENTITIES = (
    select(message.c.seq, *(message.c[name] for name in Identity._fields))
    .where(_of_session)
    .order_by(message.c.seq)
)
