"""The usage of a session that none of its messages states.

Some programs state what a session cost in all. What that is beyond its messages is an
event beside the path, so that the sum of the rows is right. But the rows of this
database may be others than those of the store that stated the total: an older store of
the same program may have a message that a newer one lost, with its usage. So the event
keeps the total that was stated, and is computed again from the rows here whenever one
of the stores is imported.

A total has the copies of a fork, unless it names the last of them. An export that its
program imported again under new ids keeps the creation time of its original; its total
then has what that one states besides its messages, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.effects.calls import data_of
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.model.source import STATED_TOTAL, TOTAL_AFTER, sum_event_id

SUMMED = (
    "cost tokens_input tokens_output tokens_reasoning tokens_cache_read "
    "tokens_cache_write"
).split()
#: Sums of floats made in another order differ in their last digits.
_DIGITS = 9
_SEQ = Statement("importing.rows.sums.SEQ")
_EVENT = Statement("importing.rows.sums.EVENT")
_OTHERS = Statement("importing.rows.sums.OTHERS")
_COPIES = Statement("importing.rows.sums.COPIES")
_ORIGINAL = Statement("importing.rows.sums.ORIGINAL")
_SET = Statement("importing.rows.sums.SET")


def complete_sums(tx: Transaction, session_id: str, source_id: str) -> set[str]:
    """Make the rows of a session add up to the total that its program stated, if any.

    Rows that state more than that stay as they are, and nothing is left for the event.
    So do those of its copies, whose totals have that of the session. Returns the ids of
    the copies.
    """
    _complete_sum(tx, session_id, source_id)
    copies = tx.run(_COPIES, sid=session_id).fetchall()
    for copy_id, source_id_of_copy in copies:
        _complete_sum(tx, copy_id, str(source_id_of_copy))
    return {copy_id for copy_id, _ in copies}


def _complete_sum(tx: Transaction, session_id: str, source_id: str) -> None:
    event = tx.value(_SEQ, sid=session_id, mid=sum_event_id(source_id))
    if event is None:
        return
    data, data_blob, *stored = tx.one(_EVENT, sid=session_id, at=event)
    facts: dict[str, Any] = data_of(tx, data, data_blob)
    total = facts.get(STATED_TOTAL)
    if not isinstance(total, dict):
        return

    last_copy = facts.get(TOTAL_AFTER)
    explained = [
        tx.one(
            _OTHERS,
            sid=session_id,
            at=event,
            after=tx.value(_SEQ, sid=session_id, mid=last_copy) or 0,
            copies=last_copy is None,
        )
    ]
    if last_copy is None:
        explained += _beside_the_original(tx, session_id)

    left = []
    for name, *amounts in zip(SUMMED, *explained, strict=True):
        more = (total.get(name) or 0) - sum(amount or 0 for amount in amounts)
        more = round(more, _DIGITS) if name == "cost" else int(more)
        left.append(more if more > 0 else None)
    if left != stored:
        values = dict(zip(SUMMED, left, strict=True))
        tx.run(_SET, sid=session_id, at=event, **values)


def _beside_the_original(tx: Transaction, session_id: str) -> list[Sequence[Any]]:
    """Return what the original of an import under new ids states beside its messages.

    Empty for any other session.
    """
    original = tx.one(_ORIGINAL, sid=session_id)
    if original is None:
        return []
    original_id, source_id = original
    event = tx.value(_SEQ, sid=original_id, mid=sum_event_id(str(source_id)))
    if event is None:
        return []
    _, _, *stored = tx.one(_EVENT, sid=original_id, at=event)
    return [stored]
