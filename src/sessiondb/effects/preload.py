"""What a transaction is going to need, asked for in the message that begins it.

With an engine that `answers_late` the sessions to which its effects are addressed are
locked, and their rows loaded, before anybody waits. So a batch costs as many round
trips as a single append.
"""

from __future__ import annotations

from sessiondb.effects.locking import Keys
from sessiondb.effects.transaction import Transaction, state_of
from sessiondb.engine.base import Connection, Cursor
from sessiondb.engine.sql import Statement, as_list
from sessiondb.schema.terms import is_living

_LOAD_MANY = Statement("effects.transaction.LOAD_MANY")


class Preload:
    """The rows of sessions, and the number of their changes, on their way."""

    def __init__(self, connection: Connection, keys: Keys) -> None:
        engine = connection.engine
        self._rows: Cursor | None = None
        # All in one order: see `locking`.
        engine.lock_sessions(connection, keys.all_session_ids, keys.names)
        if keys.session_ids:
            # The statement begins once they are locked, and sees what was committed.
            text = _LOAD_MANY.text_on(engine)
            ids = as_list(sorted(keys.session_ids))
            self._rows = connection.execute(text, {"sids": ids})
        # After the locks: one that waits for them does not hold the feed back.
        self._numbers = engine.feed.numbers()
        self._numbers.expect(connection)

    def give_to(self, tx: Transaction) -> None:
        """Hand it over, before the first unit; raises `Engine.Error`."""
        tx.carryover.numbers = self._numbers
        for *row, ttl in self._rows or ():
            state = state_of(row)
            if not is_living(state.time_expires, ttl, tx.now):
                state.holder = state.time_expires = None
            tx.carryover.states[state.id] = state
