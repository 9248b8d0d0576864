"""Conditions of a unit, which its transaction checks: `expect`.

A condition compares with what other units left. So it stands before the verbs of its
unit that write the session; only `open_session`, which may find it, comes earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.effects.creation import OpenSession
from sessiondb.effects.fork import Fork
from sessiondb.effects.message import Append, check_expected
from sessiondb.effects.queue import Effect
from sessiondb.effects.session import CreateSession
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.errors import ConflictError, InvalidInputError

_IS_STORED = Statement("effects.expect.IS_STORED")


@dataclass(frozen=True, slots=True, eq=False)
class Expect:
    """Refuse the unit unless a session is as it was read; *effects* are its effects."""

    verb = "expect"
    session_id: str
    effects: Sequence[Effect]
    revision: int | None = None
    leaf: Any = ...
    absent: bool = False

    def apply(self, tx: Transaction) -> None:
        """Raise `ConflictError` if the session is in another state; write nothing."""
        if tx.retried and self._is_committed(tx):
            return
        is_new = self.session_id in tx.made
        state = tx.find(self.session_id)
        is_here = state is not None and not is_new
        if self.absent and state is not None and is_here:
            revision = state.revision
            raise ConflictError(
                f"session {self.session_id} exists, at revision {revision}; "
                "expected none",
                hint="read what is there, then try again",
            )
        if self.absent:
            return
        if not is_here and (self.revision is not None or not is_new):
            raise ConflictError(
                f"session {self.session_id} does not exist, expected {self._words}",
                hint="it was deleted, or never made",
            )
        check_expected(tx, tx.peek(self.session_id), self.leaf, self.revision)

    @property
    def _words(self) -> str:
        if self.revision is not None:
            return f"revision {self.revision}"
        return f"the leaf {self.leaf}"

    def _is_committed(self, tx: Transaction) -> bool:
        """Return whether this unit is on disk: a message with an id that it made is."""
        for effect in self.effects:
            if isinstance(effect, Append) and not effect.own_id:
                return tx.one(_IS_STORED, mid=effect.row.id) is not None
        return False


def check_comes_first(effects: Sequence[Effect], session_id: str) -> None:
    """Raise `InvalidInputError` if one of *effects* is about a session already."""
    for effect in effects:
        if isinstance(effect, Expect | OpenSession):
            continue
        names = {getattr(effect, "session_id", None)}
        if isinstance(effect, CreateSession):
            names.add(effect.id)
        if isinstance(effect, Fork):
            names.add(effect.handle.id)
        if session_id in names:
            raise InvalidInputError(
                f"expect comes after {effect.verb}, which is about the same session",
                hint="a condition stands before all other verbs on its session; only "
                "open_session may come first",
            )
