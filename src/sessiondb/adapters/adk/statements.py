"""The statements of the adapter: sessions with their states, in one read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, bindparam, func, literal, or_, select

from sessiondb.adapters.adk.keys import SOURCE
from sessiondb.adapters.adk.state import OF_APPS, OF_USERS
from sessiondb.model.values import namespace_text
from sessiondb.schema.tables import blob, key_value, message, part, session

# A session, and of its last message what has the time of the last event.
_head_columns = (
    session.c.id,
    session.c.leaf_seq,
    session.c.last_seq,
    session.c.metadata,
    message.c.time_created,
    message.c.data,
    blob.c.size,
    blob.c.encoding,
    blob.c.data,
)
#: How many columns of a row are of a session: those after them are of states.
HEAD_WIDTH = len(_head_columns)
_heads = (
    select(*_head_columns)
    .outerjoin(
        message,
        and_(message.c.session_id == session.c.id, message.c.seq == session.c.leaf_seq),
    )
    .outerjoin(blob, blob.c.hash == message.c.data_blob)
    .where(
        session.c.source == literal(SOURCE),
        session.c.time_deleted.is_(None),
        session.c.time_importing.is_(None),
    )
)


def _state(namespace: tuple[str, ...], key: str) -> Any:
    return (
        select(key_value.c.value)
        .where(
            key_value.c.namespace == literal(namespace_text(namespace)),
            key_value.c.key == bindparam(key),
        )
        .scalar_subquery()
    )


_app_state, _user_state = _state(OF_APPS, "app"), _state(OF_USERS, "scope")
#: One session, by ``source_id``, with the states of its ``app`` and of the ``scope`` of
#: its user, which are the last columns here and below.
HEAD: Select[Any] = _heads.add_columns(_app_state, _user_state).where(
    session.c.source_id == bindparam("source_id"), session.c.namespace == ""
)
#: The sessions of a ``scope``.
HEADS_OF_USER: Select[Any] = _heads.add_columns(_app_state, _user_state).where(
    session.c.scope == bindparam("scope")
)
#: The sessions of an ``app``, whose scopes are from ``app`` to ``end``, without the
#: states of users.
HEADS_OF_APP: Select[Any] = _heads.add_columns(_app_state).where(
    session.c.scope >= bindparam("app"), session.c.scope < bindparam("end")
)
#: The states of the users of an ``app``, by their scopes.
STATES_OF_USERS = select(key_value.c.key, key_value.c.value).where(
    key_value.c.namespace == literal(namespace_text(OF_USERS)),
    key_value.c.key >= bindparam("app"),
    key_value.c.key < bindparam("end"),
)

#: Whether a message has a value in a blob, or in the data of the part.
_more = or_(
    message.c.data_blob.is_not(None),
    part.c.text_blob.is_not(None),
    part.c.input_blob.is_not(None),
    part.c.data_blob.is_not(None),
    part.c.data.is_not(None),
)
_in_session = and_(
    message.c.session_id == bindparam("session_id"),
    message.c.seq <= bindparam("last_seq"),
)
#: All messages of a session up to ``last_seq``, with each of their parts, in order.
EVENTS: Select[Any] = (
    select(
        message.c.seq,
        message.c.id,
        message.c.data,
        _more,
        part.c.type,
        part.c.text,
        part.c.input,
    )
    .outerjoin(
        part,
        and_(part.c.session_id == message.c.session_id, part.c.seq == message.c.seq),
    )
    .where(_in_session)
    .order_by(message.c.seq, part.c.idx)
)
_before_the_last = (
    select(message.c.seq)
    .where(_in_session)
    .order_by(message.c.seq.desc())
    .limit(1)
    .offset(bindparam("last"))
    .scalar_subquery()
)
#: The ``last`` ones.
LAST_EVENTS = EVENTS.where(message.c.seq > func.coalesce(_before_the_last, 0))
#: Those of the time ``since`` (Unix ms) and later.
EVENTS_SINCE = EVENTS.where(message.c.time_created >= bindparam("since"))
