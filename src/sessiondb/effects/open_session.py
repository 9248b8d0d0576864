"""The effect of `open_session`: get or create by (source, source_id).

The transaction alone can know whether the session exists, but the unit may also
write to it. So the unit addresses it by the id that it would get, and where another
session has the name already the transaction redirects that id (`Transaction.opened`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, text, update

from sessiondb.effects.session import CreateSession
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p
from sessiondb.model.handles import MessageHandle, OpenedSession, PartHandle
from sessiondb.schema import session

_NAMED = Statement(
    lambda: select(session.c.id, session.c.time_deleted).where(
        session.c.source == p("source"),
        session.c.source_id == p("source_id"),
        session.c.namespace == text("''"),
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
        """Apply it; raises `ConflictError` and `NotFoundError`."""
        new = self.create
        found = self._living(tx)
        if found is None:
            tx.redirected(new).apply(tx)
        elif found != new.id:
            tx.opened[new.id] = found

        # A retried unit finds the session that it made itself.
        is_own = found in (None, new.id)
        created = found is None or (tx.retried and is_own)
        tx.after_commit.append(lambda: self._update_handles(found or new.id, created))

    def _living(self, tx: Transaction) -> str | None:
        """Return the session that has the name, None if there is none.

        A deleted one whose rows are still being removed gives the name up.
        """
        row = tx.one(_NAMED, source=self.create.source, source_id=self.create.source_id)
        if row is None:
            return None

        found, time_deleted = row
        if time_deleted is None:
            return str(found)

        tx.run(_FREE_NAME, sid=found)
        return None

    def _update_handles(self, session_id: str, created: bool) -> None:
        self.handle.id, self.handle.created = session_id, created
        for handle in self.followers:
            handle.session_id = session_id
