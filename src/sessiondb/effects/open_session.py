"""The effect of `open_session`: get or create by (source, source_id).

The transaction alone can know whether the session exists, but the unit may also
write to it. So the unit addresses it by the id that it would get, and where another
session has the name already the transaction redirects that id (`Transaction.opened`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, update

from sessiondb.effects.session import CreateSession
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p
from sessiondb.model.handles import MessageHandle, OpenedSession, PartHandle
from sessiondb.schema import session

_NAMED = Statement(
    lambda: select(session.c.id, session.c.time_deleted).where(
        session.c.source == p("source"), session.c.source_id == p("source_id")
    )
)
_FREE_NAME = Statement(
    lambda: update(session).where(session.c.id == p("sid")).values(source_id=None)
)


@dataclass(frozen=True, slots=True, eq=False)
class OpenSession:
    """Find the session that a program knows under a name of its own, or make it.

    *followers* are the handles that the unit gave out for what it writes into it.
    """

    verb = "open_session"
    create: CreateSession
    handle: OpenedSession
    followers: list[MessageHandle | PartHandle]

    def apply(self, tx: Transaction) -> None:
        """Write it; raises `ConflictError` and `NotFoundError`."""
        new = self.create
        row = tx.one(_NAMED, source=new.source, source_id=new.source_id)
        if row is not None and row[1] is not None:
            # Deleted, and its rows are still being removed: the name is free again.
            tx.run(_FREE_NAME, sid=row[0])
            row = None
        found = new.id if row is None else row[0]
        if row is None:
            tx.redirected(new).apply(tx)
        elif found != new.id:
            tx.opened[new.id] = found
        created = row is None or (tx.retried and found == new.id)
        tx.after_commit.append(lambda: self._update_handles(found, created))

    def _update_handles(self, session_id: str, created: bool) -> None:
        self.handle.id, self.handle.created = session_id, created
        for handle in self.followers:
            handle.session_id = session_id
