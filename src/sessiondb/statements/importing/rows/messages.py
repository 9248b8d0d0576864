"""The statements of `importing.rows.messages`."""

from __future__ import annotations

from sqlalchemy import delete, exists, func, select, text

from sessiondb.engine.expressions import p, texts, update_of
from sessiondb.importing.rows.messages import REPLACED
from sessiondb.schema.rows import MESSAGE, PART
from sessiondb.schema.tables import label, message, part, session
from sessiondb.statements.effects.ownership import name_of, of_key

_at = (message.c.session_id == p("sid"), message.c.seq == p("at"))
_parts_at = (part.c.session_id == p("sid"), part.c.seq == p("at"))
MATCH = select(*(message.c[name] for name in MESSAGE)).where(
    message.c.session_id == p("sid"), message.c.id == p("mid")
)
PARTS = select(*(part.c[name] for name in PART)).where(*_parts_at).order_by(part.c.idx)
REPLACE = update_of(message, " ".join(REPLACED), *_at)
RELINK = update_of(message, "parent_seq turn_id", *_at)
DROP_PARTS = delete(part).where(*_parts_at)
SEQ = select(message.c.seq).where(
    message.c.session_id == p("sid"), message.c.id == p("mid")
)
UNLABEL = delete(label).where(
    label.c.session_id == p("sid"),
    label.c.label == p("name"),
    label.c.seq == p("at"),
)
LABELLED = select(label.c.seq).where(
    label.c.session_id == p("sid"), label.c.label == p("name")
)
#: Messages that forks begin with, and count themselves.
_other = message.alias()
#: Whether another session has a message of the same id: else it has no copy by place.
_has_id_elsewhere = exists().where(
    _other.c.id == message.c.id, _other.c.session_id != message.c.session_id
)
BEGINNINGS = (
    select(
        session.c.root_id,
        message.c.seq,
        message.c.id,
        message.c.time_created,
        message.c.usage_key,
        name_of(message),
    )
    .join_from(session, message, session.c.id == message.c.session_id)
    .where(
        session.c.id.in_(texts("names")),
        session.c.relation == text("'fork'"),
        message.c.seq <= session.c.parent_seq,
        message.c.inherited == text("0"),
        _has_id_elsewhere,
    )
)
SHARED_KEYS = (
    select(message.c.usage_key)
    .where(
        of_key(
            message,
            message.c.usage_key.in_(texts("keys")),
            message.c.id.in_(texts("names")),
        )
    )
    .group_by(message.c.usage_key)
    .having(func.count() > text("1"))
)
OF_PARENT = (
    select(message.c.usage_key, message.c.seq, message.c.id, message.c.time_created)
    .join(session, session.c.id == message.c.session_id)
    .where(
        message.c.session_id == p("sid"),
        message.c.seq.between(p("least"), p("most")),
        message.c.usage_key.is_not(None),
        session.c.time_deleted.is_(None),
    )
)
_name = texts("names").subquery().c.value
IDS_ELSEWHERE = select(_name).where(
    exists().where(message.c.id == _name, message.c.session_id != p("sid"))
)
