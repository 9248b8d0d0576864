"""Calls and results that lose each other: one of the two is removed or replaced.

The text of a call's first result is stored once, with the call (`calls.fill_call`). So
what stays has to be as if the other had never been written: a result takes its text
back from a call that goes, and a call whose result goes waits for another one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sessiondb import codec
from sessiondb.effects.calls import (
    StoredCall,
    data_of,
    fill_call,
    index_if_finished,
    nearest_call,
)
from sessiondb.effects.encode import data_columns
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import NOT_INDEXED, Transaction
from sessiondb.engine.sql import Statement, as_list
from sessiondb.schema.rows import Blob, PartAddress, PartRow

_ENDED_CALLS = Statement("effects.results.ENDED_CALLS")
_BARE_RESULTS = Statement("effects.results.BARE_RESULTS")
_KEPT_CALLS = Statement("effects.results.KEPT_CALLS")
_RESULTS = Statement("effects.results.RESULTS")
_SET_TEXT = Statement("effects.results.SET_TEXT")
_REOPEN = Statement("effects.results.REOPEN")


def give_back_texts(
    tx: Transaction, state: SessionState, going: Collection[int]
) -> None:
    """Let results that stay keep the texts that are stored with calls at *going*.

    To be called while all messages are at their places.
    """
    calls = tx.run(_ENDED_CALLS, sid=state.id, seqs=as_list(going)).fetchall()
    call_ids = {call_id for call_id, *_ in calls if call_id is not None}
    texts = {(seq, idx): tuple(texts) for _, seq, idx, *texts in calls}
    for seq, idx, row in _results_of(tx, state.id, call_ids, going):
        call = None
        if not _has_text(row):
            call = nearest_call(tx, state.id, seq, row.call_id)
        if call is not None and (call.seq, call.idx) in texts:
            _set_text(tx, state, (seq, idx), texts[call.seq, call.idx])


def reopen_calls(
    tx: Transaction, state: SessionState, going: Collection[int]
) -> set[str]:
    """Remove from calls that stay the texts of results at *going*; let them wait again.

    To be called while all messages are at their places. Returns their call ids, for
    `fill_open_calls`.
    """
    params: dict[str, Any] = {"sid": state.id, "seqs": as_list(going)}
    bare_results = tx.run(_BARE_RESULTS, **params).fetchall()
    call_ids = {call_id for _, call_id in bare_results if call_id is not None}
    kept_ids: set[str] = set()
    if call_ids:
        kept_ids.update(tx.column(_KEPT_CALLS, **params, calls=as_list(call_ids)))

    ended: dict[PartAddress, StoredCall] = {}
    for seq, call_id in bare_results:
        if call_id in kept_ids:
            call = nearest_call(tx, state.id, seq, call_id)
            if call is not None and call.seq not in going:
                ended[call.address] = call
    # Another record of the same text: the call keeps it.
    for seq, _, row in _results_of(tx, state.id, kept_ids, going):
        if not _has_text(row):
            call = nearest_call(tx, state.id, seq, row.call_id)
            if call is not None:
                ended.pop(call.address, None)

    for call in ended.values():
        _reopen(tx, state, call)
    return kept_ids if ended else set()


def fill_open_calls(
    tx: Transaction, state: SessionState, call_ids: Collection[str]
) -> None:
    """Store the first result of each open call with it, as an append of it would.

    To be called once everything is at its new place.
    """
    for seq, idx, row in _results_of(tx, state.id, call_ids, ()):
        if _has_text(row) and not _has_text(fill_call(tx, state, seq, row)):
            _set_text(tx, state, (seq, idx), (None, None))


def _results_of(
    tx: Transaction, session_id: str, call_ids: Collection[str], going: Collection[int]
) -> list[tuple[int, int, PartRow]]:
    """Return (seq, idx, row) of results that are not at *going*, in their order."""
    if not call_ids:
        return []
    params = {"calls": as_list(call_ids), "seqs": as_list(going)}
    rows = tx.run(_RESULTS, sid=session_id, **params).fetchall()
    return [(seq, idx, PartRow.of(row)) for seq, idx, *row in rows]


def _has_text(row: PartRow) -> bool:
    return row.text is not None or row.text_blob is not None


def _set_text(
    tx: Transaction,
    state: SessionState,
    place: tuple[int, int],
    stored: tuple[str | None, str | None],
) -> None:
    (seq, idx), (text, text_blob) = place, stored
    tx.run(
        _SET_TEXT,
        sid=state.id,
        at=seq,
        idx=idx,
        text=text,
        text_blob=text_blob,
        **NOT_INDEXED,
        time_updated=tx.now,
    )
    index_if_finished(tx, (state.id, seq, idx))
    state.changed_at(seq)


def _reopen(tx: Transaction, state: SessionState, call: StoredCall) -> None:
    data, data_blob = _without_exact_text(tx, call)
    tx.release(call.text_blob, call.data_blob)
    tx.run(
        _REOPEN,
        sid=state.id,
        at=call.seq,
        idx=call.idx,
        status="pending" if call.time_started is None else "running",
        outcome=None,
        text=None,
        text_blob=None,
        data=data,
        data_blob=data_blob,
        **NOT_INDEXED,
        time_updated=tx.now,
        time_ended=None,
    )
    index_if_finished(tx, call.address)
    state.changed_at(call.seq)


def _without_exact_text(
    tx: Transaction, call: StoredCall
) -> tuple[bytes | None, str | None]:
    """Return the data of a call without the exact form of its result."""
    data: dict[str, Any] = data_of(tx, call.data, call.data_blob)
    if codec.EXACT not in data:
        return call.data, call.data_blob
    del data[codec.EXACT]
    blobs: list[Blob] = []
    columns = data_columns(data, blobs)
    tx.insert_blobs(call.session_id, blobs)
    return columns
