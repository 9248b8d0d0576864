"""The statements of `effects.results`."""

from __future__ import annotations

from sqlalchemy import or_, select, text

from sessiondb.effects.transaction import INDEXING
from sessiondb.engine.expressions import numbers, p, texts, update_of
from sessiondb.schema.rows import PART
from sessiondb.schema.tables import part
from sessiondb.statements.effects.calls import BY_CALL
from sessiondb.statements.effects.message import one_part

# Without a condition on call ids: the planner would read all calls of the session.
_going = (part.c.session_id == p("sid"), part.c.seq.in_(numbers("seqs")))
_kept = (
    part.c.session_id == p("sid"),
    part.c.call_id.in_(texts("calls")),
    part.c.seq.not_in(numbers("seqs")),
)
_is_call = part.c.type == text("'tool'")
_is_result = part.c.type == text("'tool-result'")
ENDED_CALLS = select(
    part.c.call_id, part.c.seq, part.c.idx, part.c.text, part.c.text_blob
).where(
    *_going,
    _is_call,
    or_(part.c.text.is_not(None), part.c.text_blob.is_not(None)),
)
BARE_RESULTS = select(part.c.seq, part.c.call_id).where(
    *_going,
    _is_result,
    part.c.text.is_(None),
    part.c.text_blob.is_(None),
)
KEPT_CALLS = (
    select(part.c.call_id).distinct().with_hint(*BY_CALL).where(*_kept, _is_call)
)
RESULTS = (
    select(part.c.seq, part.c.idx, *(part.c[name] for name in PART))
    .with_hint(*BY_CALL)
    .where(*_kept, _is_result)
    .order_by(part.c.seq, part.c.idx)
)
SET_TEXT = update_of(part, f"text text_blob {INDEXING} time_updated", *one_part)
REOPEN = update_of(
    part,
    f"status outcome text text_blob data data_blob {INDEXING} time_updated time_ended",
    *one_part,
)
