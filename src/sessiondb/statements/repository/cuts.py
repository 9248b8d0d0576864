"""The statements of `repository.cuts`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import literal_column, select

from sessiondb.engine.expressions import by_index, numbers, p
from sessiondb.schema.sums import totals_sql
from sessiondb.schema.tables import message, part

CALLS_AND_RESULTS = (
    select(part.c.seq, part.c.idx, part.c.type, part.c.call_id)
    .with_hint(*by_index(part, "ix_part_call_id"))
    .where(part.c.session_id == p("sid"), part.c.call_id.is_not(None))
    .order_by(part.c.seq)
)
_last_time = "max(coalesce(time_completed, time_created))"
_totals: list[Any] = [literal_column(sql) for sql in (*totals_sql(), _last_time)]
#: The counters of a session, and its last time, as of some of its messages.
TOTALS = (
    select(*_totals)
    .select_from(message)
    .where(message.c.session_id == p("sid"), message.c.seq.in_(numbers("seqs")))
)
