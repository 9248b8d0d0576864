"""Effects on the shape of the tree: set_leaf and truncate."""

from __future__ import annotations

from sessiondb.dataclass import dataclass
from sessiondb.effects import paths
from sessiondb.effects.message import seq_of
from sessiondb.effects.removal import remove_messages
from sessiondb.effects.results import fill_open_calls, reopen_calls
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement

_LINKS = Statement("effects.tree.LINKS")
_LINKS_BEHIND = Statement("effects.tree.LINKS_BEHIND")


@dataclass(frozen=True, slots=True, eq=False)
class SetLeaf:
    """Continue from another message; nothing is removed."""

    verb = "set_leaf"
    session_id: str
    message: str | int | None

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.peek(self.session_id)
        leaf = None if self.message is None else seq_of(tx, state.id, self.message)
        if leaf != state.leaf_seq:
            state.leaf_before = state.leaf_before or (state.leaf_seq,)
            state.leaf_seq = leaf
            tx.used(state)


def links(tx: Transaction, session_id: str) -> dict[int, int | None]:
    """Return seq → parent_seq of every message of a session, in order of seq."""
    return dict(tx.run(_LINKS, sid=session_id).fetchall())


@dataclass(frozen=True, slots=True, eq=False)
class Truncate:
    """Remove everything that follows a message, on every branch that grows from it."""

    verb = "truncate"
    session_id: str
    after: str | int | None

    def apply(self, tx: Transaction) -> None:
        """Apply it; forks keep what they copied. Raises `NotFoundError`."""
        state = tx.peek(self.session_id)
        last_seq = None if self.after is None else seq_of(tx, state.id, self.after)
        going = self._seqs_below(self._parents_below(tx, last_seq), last_seq)
        if not going:
            return

        call_ids = reopen_calls(tx, state, going)
        if state.leaf_seq in going:
            state.leaf_seq = last_seq
        remove_messages(tx, state, going)
        fill_open_calls(tx, state, call_ids)
        tx.used(state)

    def _parents_below(
        self, tx: Transaction, last_seq: int | None
    ) -> dict[int, int | None]:
        """Return the parents of all messages that may be below *last_seq*."""
        if last_seq is None or not paths.is_ordered(tx, self.session_id):
            return links(tx, self.session_id)
        return dict(
            tx.run(_LINKS_BEHIND, sid=self.session_id, after=last_seq).fetchall()
        )

    @staticmethod
    def _seqs_below(parents: dict[int, int | None], last_seq: int | None) -> set[int]:
        if last_seq is None:
            return set(parents)

        children: dict[int | None, list[int]] = {}
        for seq, parent in parents.items():
            children.setdefault(parent, []).append(seq)

        going: set[int] = set()
        stack = list(children.get(last_seq, ()))
        while stack:
            seq = stack.pop()
            if seq not in going:
                going.add(seq)
                stack += children.get(seq, ())

        return going
