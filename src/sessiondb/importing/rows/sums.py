"""The usage of a session that none of its messages states.

Some programs state what a session cost in all. The rest beyond its messages is an
event beside the path, so that the sum of the rows is right. But the rows of this
database may be others than those of the store that stated the total: an older store of
the same program may have a message that a newer one lost, with its usage. So the event
keeps the total that was stated, and is computed again from the rows here whenever one
of the stores is imported.

A total has the copies of a fork, unless it names the last of them. An export that its
program imported again under new ids keeps the creation time of its original; its total
then has what that one states besides its messages, too.

Other programs state again and again what a session and its subagents have cost since
a time. Each of these totals is an event of its own, and has what is left of it besides
the messages and the totals before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from sessiondb.effects.calls import data_of
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list
from sessiondb.model import bounds
from sessiondb.model.source import (
    STATED_TOTAL,
    TOTAL_AFTER,
    TOTAL_SINCE,
    sum_event_id,
)

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
_RELATED = Statement("importing.rows.sums.RELATED")
_SUBAGENTS = Statement("importing.rows.sums.SUBAGENTS")
_TOTALS = Statement("importing.rows.sums.TOTALS")
_COSTS = Statement("importing.rows.sums.COSTS")
_SET_COST = Statement("importing.rows.sums.SET_COST")


class SessionTotal(NamedTuple):
    """A total that is one of several of a session."""

    #: USD since a time in Unix ms.
    cost: float
    since: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> SessionTotal | None:
        """Return the total in the data of an event; None for any other data."""
        total, since = facts.get(STATED_TOTAL), facts.get(TOTAL_SINCE)
        if not isinstance(total, dict) or type(since) is not int:
            return None
        cost = total.get("cost")
        if type(cost) is not float or not 0 <= cost <= bounds.COST_MOST:
            return None
        return cls(cost, since)


def complete_sums(tx: Transaction, session_id: str, source_id: str) -> set[str]:
    """Make the rows of a session add up to the total that its program stated, if any.

    Rows that state more than that stay as they are, and nothing is left for the event.
    So do those of its copies, whose totals have that of the session, and those of the
    session that a subagent is of. Returns the ids of these other sessions.
    """
    _complete_sum(tx, session_id, source_id)
    copies = tx.run(_COPIES, sid=session_id).fetchall()
    for copy_id, source_id_of_copy in copies:
        _complete_sum(tx, copy_id, str(source_id_of_copy))

    counting_id = _session_of_subagent(tx, session_id)
    _complete_totals(tx, counting_id)
    return {counting_id, *(copy_id for copy_id, _ in copies)} - {session_id}


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


def _complete_totals(tx: Transaction, session_id: str) -> None:
    """Let each event with a total have what messages and earlier ones leave of it."""
    events: list[tuple[int, int, float | None, SessionTotal]] = []
    for seq, time, stored, *data in tx.run(_TOTALS, sid=session_id).fetchall():
        total = SessionTotal.of(data_of(tx, *data))
        if total is not None:
            events.append((seq, time, stored, total))
    if not events:
        return

    costs: list[tuple[int, float]] = tx.run(
        _COSTS,
        ids=as_list(_with_subagents(tx, session_id)),
        since=min(total.since for *_, total in events),
    ).fetchall()
    # A subagent may have ended after the line before a total: the last one has all.
    *_, last = events[-1]
    unexplained = max(last.cost - _sum_between(costs, last.since, inf), 0.0)
    given = 0.0
    for seq, time, stored, total in events:
        left = unexplained - given
        if total is not last:
            explained = _sum_between(costs, total.since, time)
            left = min(total.cost - explained - given, left)
        left = max(round(left, _DIGITS), 0.0)
        given += left
        if (left or None) != stored:
            tx.run(_SET_COST, sid=session_id, at=seq, cost=left or None)


def _sum_between(costs: Sequence[tuple[int, float]], since: int, until: float) -> float:
    return sum(cost for time, cost in costs if since <= time <= until)


def _session_of_subagent(tx: Transaction, session_id: str) -> str:
    """Return the session that a subagent is of, and any other session itself."""
    seen = {session_id}
    while True:
        parent_id, relation = tx.one(_RELATED, sid=session_id)
        if relation != "subagent" or parent_id is None or parent_id in seen:
            return session_id
        seen.add(parent_id)
        session_id = parent_id


def _with_subagents(tx: Transaction, session_id: str) -> list[str]:
    """Return a session and its subagents, those of subagents among them."""
    ids = dict.fromkeys([session_id])
    above = [session_id]
    while above:
        rows = tx.run(_SUBAGENTS, ids=as_list(above)).fetchall()
        above = [below for (below,) in rows if below not in ids]
        ids.update(dict.fromkeys(above))
    return list(ids)


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
