"""The statements of `effects.ownership`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    and_,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
)

from sessiondb.engine.expressions import p, texts, update_of
from sessiondb.schema.sums import totals_sql
from sessiondb.schema.tables import message, part, session
from sessiondb.schema.terms import COUNTERS


def name_of(table: FromClause) -> ColumnElement[str]:
    """Return the name in the usage key of a message."""
    response = func.nullif(table.c.response_id, text("''"))
    return func.coalesce(table.c.usage_name, response, table.c.id)


def is_named_otherwise(table: FromClause) -> ColumnElement[bool]:
    """Return `terms.NAMED_OTHERWISE`, the condition of the index of keys."""
    return or_(table.c.usage_name.is_not(None), table.c.response_id.is_not(None))


def of_key(
    table: FromClause, is_key: ColumnElement[bool], is_id: ColumnElement[bool]
) -> ColumnElement[bool]:
    """Return the condition that a message has a usage key.

    *is_key* compares its key, *is_id* its id with the name in that key. Each side of
    the OR has its index: see `terms.NAMED_OTHERWISE`.
    """
    return or_(and_(is_key, is_named_otherwise(table)), and_(is_key, is_id))


_COLUMNS = (
    session.c.id,
    session.c.parent_id,
    session.c.time_created,
    message.c.inherited,
    and_(session.c.relation == text("'fork'"), message.c.seq <= session.c.parent_seq),
    session.c.root_id,
    message.c.seq,
    message.c.id,
    message.c.time_created,
    message.c.usage_key,
    name_of(message),
)
_alive = session.c.time_deleted.is_(None)
BY_KEY = (
    select(*_COLUMNS)
    .join_from(message, session, session.c.id == message.c.session_id)
    .where(
        of_key(
            message,
            message.c.usage_key.in_(texts("keys")),
            message.c.id.in_(texts("names")),
        ),
        _alive,
    )
)
BY_PLACE = (
    select(*_COLUMNS)
    .join_from(session, message, session.c.id == message.c.session_id)
    .where(
        session.c.root_id.in_(texts("roots")),
        _alive,
        message.c.seq.between(p("least"), p("most")),
    )
)
PARENT = select(session.c.parent_id).where(session.c.id == p("sid"))
SET_MESSAGE = update_of(
    message, "inherited", message.c.session_id == p("sid"), message.c.seq == p("at")
)
SET_PARTS = update_of(
    part, "inherited", part.c.session_id == p("sid"), part.c.seq == p("at")
)
UNINDEX = (
    part.update()
    .where(
        part.c.session_id == p("sid"),
        part.c.seq == p("at"),
        part.c.indexed == text("1"),
    )
    # A part that the index has not has no words beside it, either.
    .values(indexed=text("0"), words=null())
)
PARTS = select(part.c.idx).where(part.c.session_id == p("sid"), part.c.seq == p("at"))


_totals: list[Any] = [literal_column(sql) for sql in totals_sql()]
TOTAL = select(*_totals).select_from(message).where(message.c.session_id == p("sid"))
RECOUNT = update_of(
    session,
    " ".join(COUNTERS),
    session.c.id == p("sid"),
)
MODEL_SOURCE = select(session.c.model_source).where(session.c.id == p("sid"))
LAST_ANSWER = (
    select(message.c.provider_id, message.c.model_id)
    .where(
        message.c.session_id == p("sid"),
        message.c.role == text("'assistant'"),
        message.c.model_id.is_not(None),
    )
    .order_by(message.c.seq.desc())
    .limit(1)
)
SET_MODEL = update_of(session, "provider_id model_id", session.c.id == p("sid"))
