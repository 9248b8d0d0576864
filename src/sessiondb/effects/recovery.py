"""Recovery of what a dead writer left open. Text stays as it was written."""

from __future__ import annotations

from sessiondb.dataclass import dataclass
from sessiondb.effects.lease import require_free
from sessiondb.effects.transaction import NOT_INDEXED, Transaction
from sessiondb.engine.sql import Statement

_CALLS = Statement("effects.recovery.CALLS")
_SETTLE = Statement("effects.recovery.SETTLE")
_MESSAGES = Statement("effects.recovery.MESSAGES")
_FINISH = Statement("effects.recovery.FINISH")
_UNINDEXED = Statement("effects.recovery.UNINDEXED")


@dataclass(frozen=True, slots=True, eq=False)
class Recover:
    """Settle the open calls (error, interrupted) and finish the open messages."""

    verb = "recover"
    session_id: str
    holder: str | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it; a no-op if nothing is open.

        Raises `LeaseHeldError` and `NotFoundError`.
        """
        state = tx.peek(self.session_id)
        # A living process settles its own calls.
        require_free(tx, state.id, self.holder)
        calls = tx.run(_CALLS, sid=state.id).fetchall()
        seqs = tx.column(_MESSAGES, sid=state.id)
        for seq, idx, inherited in calls:
            tx.run(
                _SETTLE,
                sid=state.id,
                at=seq,
                idx=idx,
                status="error",
                outcome="interrupted",
                **NOT_INDEXED,
                time_updated=tx.now,
                time_ended=tx.now,
            )
            if not inherited:
                tx.index_parts(state.id, seq, [idx])

        for seq in seqs:
            tx.run(
                _FINISH, sid=state.id, at=seq, finish="cancelled", time_completed=tx.now
            )
            idxs = tx.column(_UNINDEXED, sid=state.id, at=seq)
            tx.index_parts(state.id, seq, idxs)

        touched = [seq for seq, _, _ in calls] + seqs
        if touched:
            state.changed_at(min(touched))
            tx.used(state)
