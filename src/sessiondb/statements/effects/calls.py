"""The statements of `effects.calls`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, func, select, text

from sessiondb.effects.calls import StoredCall
from sessiondb.effects.transaction import INDEXING
from sessiondb.engine.expressions import by_index, p, update_of
from sessiondb.schema.tables import UNSETTLED, blob, message, part
from sessiondb.statements.effects import paths
from sessiondb.statements.effects.message import one_part

#: Of two indexes that fit, the planner prefers the one that gives the order, and then
#: walks the session. Every search for calls names its index instead.
BY_CALL = by_index(part, "ix_part_call_id")
_UNSETTLED = by_index(part, "ix_part_unsettled")


def _select_call(*conditions: Any) -> Any:
    return (
        select(*(part.c[name] for name in StoredCall._fields))
        .where(
            part.c.session_id == p("sid"), part.c.type == text("'tool'"), *conditions
        )
        .order_by(part.c.seq.desc(), part.c.idx.desc())
        .limit(1)
    )


BY_ID = _select_call(part.c.id == p("pid"))
UNSETTLED_BY_ID = _select_call(part.c.id == p("pid"), UNSETTLED).with_hint(*_UNSETTLED)
BY_CALL_ID = _select_call(part.c.call_id == p("pid")).with_hint(*BY_CALL)
START = update_of(
    part,
    f"status input input_blob {INDEXING} time_updated time_started",
    *one_part,
)
TIME_COMPLETED = select(message.c.time_completed).where(
    message.c.session_id == p("sid"), message.c.seq == p("at")
)
SETTLE = update_of(
    part,
    f"status outcome title text text_blob data data_blob {INDEXING} time_updated "
    "time_started time_ended",
    *one_part,
)
BLOB = select(blob.c.size, blob.c.encoding, blob.c.data).where(blob.c.hash == p("hash"))
_is_call = and_(
    part.c.session_id == p("sid"),
    part.c.type == text("'tool'"),
    # Not by the index of call ids: any number of calls may have that id.
    func.coalesce(part.c.call_id, text("''")) == p("call"),
)
CALL_AT = (
    select(*(part.c[name] for name in StoredCall._fields))
    .where(_is_call, part.c.seq == p("at"))
    .order_by(part.c.idx.desc())
    .limit(1)
)
ANY_CALL = (
    select(part.c.seq)
    .with_hint(*BY_CALL)
    .where(
        part.c.session_id == p("sid"),
        part.c.call_id == p("call"),
        part.c.type == text("'tool'"),
    )
    .limit(1)
)
NEAREST = paths.first_above(part, _is_call)
FILL = update_of(
    part,
    f"status outcome text text_blob data data_blob {INDEXING} time_updated time_ended",
    *one_part,
)
FILLED = (
    select(part.c.seq)
    .with_hint(*BY_CALL)
    .where(
        part.c.session_id == p("sid"),
        part.c.call_id == p("call"),
        part.c.type == text("'tool'"),
        part.c.text.is_not_distinct_from(p("shown")),
        part.c.text_blob.is_not_distinct_from(p("shown_blob")),
    )
    .limit(1)
)
