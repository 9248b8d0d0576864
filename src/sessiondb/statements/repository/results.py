"""The statements of `repository.results`."""

from __future__ import annotations

from sqlalchemy import and_, func, or_, select, text

from sessiondb.engine.expressions import by_index, p, texts
from sessiondb.schema.tables import part
from sessiondb.statements.effects import paths
from sessiondb.statements.repository.decode import select_part

_of_calls = and_(
    part.c.session_id == p("sid"),
    part.c.call_id.in_(texts("calls")),
)
_BY_CALL = by_index(part, "ix_part_call_id")
CALLS = select_part.with_hint(*_BY_CALL).where(_of_calls, part.c.type == text("'tool'"))
_BY_RESULT = by_index(part, "ix_part_result")
_has_text = and_(
    part.c.type == text("'tool-result'"),
    or_(part.c.text.is_not(None), part.c.text_blob.is_not(None)),
)
ANY_RESULT = (
    select(part.c.seq)
    .with_hint(*_BY_RESULT)
    .where(part.c.session_id == p("sid"), _has_text)
    .limit(1)
)
RECORDS = (
    select(part.c.call_id)
    .with_hint(*_BY_CALL)
    .where(_of_calls, part.c.type == text("'tool-result'"))
)
RESULTS = select_part.with_hint(*_BY_RESULT).where(_of_calls, _has_text)
#: The message of the last call of an id on the path to a message.
NEAREST = paths.first_above(
    part,
    and_(
        part.c.session_id == p("sid"),
        part.c.type == text("'tool'"),
        # Not by the index of call ids: any number of calls may have that id.
        func.coalesce(part.c.call_id, text("''")) == p("call"),
    ),
)
