"""The statements of `importing.rows.sums`."""

from __future__ import annotations

from sqlalchemy import and_, func, select, text

from sessiondb.engine.expressions import p, texts, update_of
from sessiondb.importing.rows.sums import SUMMED
from sessiondb.schema.tables import message, session

SEQ = select(message.c.seq).where(
    message.c.session_id == p("sid"), message.c.id == p("mid")
)
EVENT = select(
    message.c.data, message.c.data_blob, *(message.c[name] for name in SUMMED)
).where(message.c.session_id == p("sid"), message.c.seq == p("at"))
OTHERS = select(*(func.sum(message.c[name]) for name in SUMMED)).where(
    message.c.session_id == p("sid"),
    message.c.seq != p("at"),
    message.c.seq > p("after"),
    message.c.inherited <= p("copies"),
)
_copy, _original = session.alias(), session.alias()
#: Imports of an export of a session under new ids.
COPIES = (
    select(_copy.c.id, _copy.c.source_id)
    .select_from(_original.join(_copy, _original.c.id == _copy.c.parent_id))
    .where(
        _original.c.id == p("sid"),
        _copy.c.relation == "fork",
        _copy.c.source == _original.c.source,
        _copy.c.time_created == _original.c.time_created,
    )
)
ORIGINAL = (
    select(_original.c.id, _original.c.source_id)
    .select_from(_copy.join(_original, _original.c.id == _copy.c.parent_id))
    .where(
        _copy.c.id == p("sid"),
        _copy.c.relation == "fork",
        _copy.c.time_created == _original.c.time_created,
    )
)
RELATED = select(session.c.parent_id, session.c.relation).where(
    session.c.id == p("sid")
)
SUBAGENTS = select(session.c.id).where(
    session.c.parent_id.in_(texts("ids")),
    session.c.relation == text("'subagent'"),
    session.c.time_deleted.is_(None),
)
_is_total = and_(
    message.c.kind == text("'usage'"),
    *(message.c[name].is_(None) for name in SUMMED if name != "cost"),
)
TOTALS = (
    select(
        message.c.seq,
        message.c.time_created,
        message.c.cost,
        message.c.data,
        message.c.data_blob,
    )
    .where(message.c.session_id == p("sid"), _is_total)
    .order_by(message.c.time_created, message.c.seq)
)
COSTS = select(message.c.time_created, message.c.cost).where(
    message.c.session_id.in_(texts("ids")),
    message.c.cost.is_not(None),
    message.c.time_created >= p("since"),
    ~_is_total,
)
SET_COST = update_of(
    message, "cost", message.c.session_id == p("sid"), message.c.seq == p("at")
)
SET = update_of(
    message,
    " ".join(SUMMED),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
