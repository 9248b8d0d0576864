"""The statements of `importing.rows.sums`."""

from __future__ import annotations

from sqlalchemy import func, select

from sessiondb.engine.expressions import p, update_of
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
SET = update_of(
    message,
    " ".join(SUMMED),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
