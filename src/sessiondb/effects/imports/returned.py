"""A session that comes back from another program: its new messages are appended.

Unlike any other import this continues a conversation, so it follows the rules of
`append`: a message follows the leaf and becomes the leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sessiondb.effects.imports.close import note
from sessiondb.effects.imports.messages import seq_by_id
from sessiondb.effects.imports.prompts import Typed
from sessiondb.effects.imports.run import Entry, Run
from sessiondb.effects.message import Append
from sessiondb.effects.transaction import Transaction
from sessiondb.model import Problem
from sessiondb.model.handles import MessageHandle


@dataclass(slots=True, eq=False)
class AppendReturned:
    """Append messages that another program added to a session."""

    verb = "import"
    run: Run
    entries: tuple[Entry, ...]
    typed: Typed = field(init=False)
    _begun: tuple[str | None] | None = None

    def apply(self, tx: Transaction) -> None:
        """Append those that are not stored yet."""
        sid = self.run.session_id
        # One that is retried begins where it began.
        self._begun = self._begun or (self.run.typed,)
        (self.run.typed,) = self._begun
        self.typed = Typed(self.run)
        if self.run.is_gone(tx):
            return
        for entry in self.entries:
            # Whatever another import has written since it was compared stays as it is.
            if seq_by_id(tx, sid, entry.row.id) is not None:
                continue
            handle = MessageHandle(sid, entry.row.id)
            append = Append(
                sid, entry.row, entry.parts, entry.blobs, handle, own_id=False
            )
            append.apply(tx)
            place = tx.peek(sid).last_seq
            self.typed.add(entry, place, tx.at(entry.row.time_created))
            self.run.changed = True


@dataclass(frozen=True, slots=True, eq=False)
class CloseReturned:
    """Record what was read of a session that is not the source's, or is newer here."""

    verb = "import"
    run: Run
    problems: tuple[Problem, ...]

    def apply(self, tx: Transaction) -> None:
        """Write the entry in the ledger."""
        note(tx, self.run, self.problems)
