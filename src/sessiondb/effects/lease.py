"""Leases: one writer per session, across processes.

A lease is a row with a holder and a time of expiry, renewed by the writer's own
thread; whoever finds it expired may take it. It decides who may stream and what may
be recovered, and no other process may write messages of the session as long as it is
valid (`Transaction.used`). So a holder that was stopped for too long cannot continue
behind the one that took over. Within a process, leases exclude each other only.
"""

from __future__ import annotations

from sessiondb.dataclass import dataclass
from sessiondb.effects.holders import held, new_holder
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, upsert_text
from sessiondb.schema.rows import LEASE

__all__ = ["DropLease", "TakeLease", "new_holder", "require_free"]

_HELD = Statement("effects.lease.HELD")
_DROP = Statement("effects.lease.DROP")


def require_free(tx: Transaction, session_id: str, holder: str | None = None) -> None:
    """Raise `LeaseHeldError` while a holder other than *holder* has a living lease."""
    row = tx.one(_HELD, sid=session_id, now=tx.now)
    if row is not None and row[0] != holder:
        raise held(session_id, row[0], row[1] - tx.now)


@dataclass(frozen=True, slots=True, eq=False)
class TakeLease:
    """Take or renew a lease for *ttl_ms*."""

    verb = "lease"
    session_id: str
    holder: str
    ttl_ms: int
    renew: bool = False

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `LeaseHeldError` and `NotFoundError`."""
        if self.renew:
            tx.lock(self.session_id)
        else:
            tx.peek(self.session_id)

        require_free(tx, self.session_id, self.holder)
        sql = upsert_text("lease", LEASE)
        values = (self.session_id, self.holder, self.ttl_ms, tx.now + self.ttl_ms)
        tx.connection.execute(sql, values)


@dataclass(frozen=True, slots=True, eq=False)
class DropLease:
    """Give a lease back; one that another holder has by now stays."""

    verb = "lease"
    session_id: str
    holder: str

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        tx.run(_DROP, sid=self.session_id, holder=self.holder)
