"""Results that are records of their own, and the calls they answer.

The text of a result is stored once: the first result on the live path fills the
call's part, and the record's own text is NULL.
"""

from __future__ import annotations

from sqlalchemy import select, text

from sessiondb import codec
from sessiondb.effects import paths
from sessiondb.effects.calls import BY_CALL, add_data, data_of
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.schema import part
from sessiondb.schema.rows import PartRow

_CALLS = Statement(
    lambda: (
        select(
            part.c.rid,
            part.c.seq,
            part.c.status,
            part.c.text,
            part.c.text_blob,
            part.c.data,
            part.c.data_blob,
        )
        .with_hint(*BY_CALL)
        .where(
            part.c.session_id == p("sid"),
            part.c.call_id == p("call"),
            part.c.type == text("'tool'"),
        )
        .order_by(part.c.seq.desc(), part.c.idx.desc())
    )
)
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
    """Give a result that is a record of its own to its call, where it is the first on the path.

    Then the text is stored once, with the call, and the result's row has none. Any
    other result keeps its text, unless it says the same. *again* says that it is
    the first one, and changed.
    """
    calls = tx.run(_CALLS, sid=state.id, call=row.call_id).fetchall()
    here = paths.nearest(tx, state.id, leaf, {call[1] for call in calls})
    if here is None:
        return row
    found = next(call for call in calls if call[1] == here)
    rid, seq, status, filled, filled_blob, data, data_blob = found

    if status not in ("pending", "running") and not again:
        same = (filled, filled_blob) == (row.text, row.text_blob)
        return row._replace(text=None, text_blob=None) if same else row

    tx.loose.update([filled_blob] if filled_blob else [])
    failed = row.outcome is not None or row.status == "error"
    exact = data_of(tx, row.data, row.data_blob).get(codec.EXACT)
    more = {} if exact is None else {codec.EXACT: exact}
    packed, packed_blob = add_data(tx, data, data_blob, more)
    tx.run(
        _FILL,
        row=rid,
        status="error" if failed else "completed",
        outcome=(row.outcome or "failed") if failed else None,
        text=row.text,
        text_blob=row.text_blob,
        data=packed,
        data_blob=packed_blob,
        indexed=0,
        time_updated=tx.now,
        time_ended=row.time_ended or row.time_created or tx.now,
    )
    if not inherited:
        tx.to_index.append(rid)
    state.first_new_seq = min(state.first_new_seq or seq, seq)
    return row._replace(text=None, text_blob=None)


def filled_call(tx: Transaction, session_id: str, row: PartRow) -> bool:
    """Return whether a result's text is stored with its call."""
    where = {"sid": session_id, "call": row.call_id}
    found = tx.one(_FILLED, **where, shown=row.text, shown_blob=row.text_blob)
    return found is not None
