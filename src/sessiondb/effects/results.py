"""Results that are records of their own, and the calls they answer.

The text of a result is stored once: the first result on the live path fills the
call's part, and the record's own text is NULL.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import and_, func, select, text

from sessiondb import codec
from sessiondb.effects import paths
from sessiondb.effects.calls import BY_CALL, add_data, data_of
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.model.draft import ending
from sessiondb.schema import part
from sessiondb.schema.rows import PartRow


class _Call(NamedTuple):
    rid: int
    seq: int
    status: str | None
    text: str | None
    text_blob: str | None
    data: bytes | None
    data_blob: str | None


_is_call = and_(
    part.c.session_id == p("sid"),
    part.c.type == text("'tool'"),
    # Not by the index of call ids: any number of calls may have that id.
    func.coalesce(part.c.call_id, text("''")) == p("call"),
)
_CALL = Statement(
    lambda: (
        select(*(part.c[name] for name in _Call._fields))
        .where(_is_call, part.c.seq == p("at"))
        .order_by(part.c.idx.desc())
        .limit(1)
    )
)
_ANY_CALL = Statement(
    lambda: (
        select(part.c.rid)
        .with_hint(*BY_CALL)
        .where(
            part.c.session_id == p("sid"),
            part.c.call_id == p("call"),
            part.c.type == text("'tool'"),
        )
        .limit(1)
    )
)
_NEAREST = Statement(lambda: paths.first_above(part, _is_call))
_FILL = update_of(
    part,
    "status outcome text text_blob data data_blob indexed time_updated time_ended",
    part.c.rid == p("row"),
)
_FILLED = Statement(
    lambda: (
        select(part.c.rid)
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
)


def fill_call(
    tx: Transaction,
    state: SessionState,
    leaf: int | None,
    row: PartRow,
    inherited: int = 0,
    *,
    again: bool = False,
) -> PartRow:
    """Fill a call from a result that is a record of its own, and return the record.

    The text of a call's first result is stored once, with the call, and the record is
    returned without it. Any other result keeps its text, unless it is the same. *again*
    means that it is the first one, and changed.
    """
    call = _nearest(tx, state.id, leaf, row.call_id)
    if call is None:
        return row

    without_text = row._replace(text=None, text_blob=None)
    if call.status not in ("pending", "running") and not again:
        is_same = (call.text, call.text_blob) == (row.text, row.text_blob)
        return without_text if is_same else row

    # The first result on the path: the call takes over its text and its outcome.
    tx.release(call.text_blob)
    status, outcome = ending(row.outcome, failed=row.status == "error")
    data, data_blob = _with_exact_text(tx, call, row)
    tx.run(
        _FILL,
        row=call.rid,
        status=status,
        outcome=outcome,
        text=row.text,
        text_blob=row.text_blob,
        data=data,
        data_blob=data_blob,
        indexed=0,
        time_updated=tx.now,
        time_ended=row.time_ended or row.time_created or tx.now,
    )
    if not inherited:
        tx.to_index.append(call.rid)

    state.changed_at(call.seq)
    return without_text


def _nearest(
    tx: Transaction, session_id: str, leaf: int | None, call_id: str | None
) -> _Call | None:
    """Return the last call of that name on the path to *leaf*.

    Its cost grows with the distance to that call, not with the calls of that name.
    """
    if leaf is None or call_id is None:
        return None
    # Most results come right after their call.
    call = tx.one(_CALL, sid=session_id, call=call_id, at=leaf)
    if call is not None:
        return _Call._make(call)
    # The path of a result without any call is not walked to its beginning.
    if tx.one(_ANY_CALL, sid=session_id, call=call_id) is None:
        return None

    place = tx.one(_NEAREST, sid=session_id, call=call_id, leaf=leaf, least=0)
    if place is None:
        return None
    return _Call._make(tx.one(_CALL, sid=session_id, call=call_id, at=place[0]))


def _with_exact_text(
    tx: Transaction, call: _Call, row: PartRow
) -> tuple[bytes | None, str | None]:
    """Return a call's data with the exact form of the result's text, if it has one."""
    exact = data_of(tx, row.data, row.data_blob).get(codec.EXACT)
    more = {} if exact is None else {codec.EXACT: exact}
    return add_data(tx, call.data, call.data_blob, more)


def filled_call(tx: Transaction, session_id: str, row: PartRow) -> bool:
    """Return whether a result's text is stored with its call."""
    where = {"sid": session_id, "call": row.call_id}
    found = tx.one(_FILLED, **where, shown=row.text, shown_blob=row.text_blob)
    return found is not None
