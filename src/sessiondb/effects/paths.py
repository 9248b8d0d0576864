"""The path above a message, walked no further than it takes.

In a session that only grew every parent has a smaller seq than its child. Only an
import can put a message behind its child, and those have an index of their own, so
that one look says whether seqs bound a walk.
"""

from __future__ import annotations

from collections.abc import Collection

from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list

#: Returns a row if an import put a message of a session behind its child.
IS_DISORDERED = Statement("effects.paths.IS_DISORDERED")
_FIRST = Statement("effects.paths.FIRST")


def is_ordered(tx: Transaction, session_id: str) -> bool:
    """Return whether every message of a session has a parent of a smaller seq."""
    return tx.one(IS_DISORDERED, sid=session_id) is None


def nearest(
    tx: Transaction, session_id: str, leaf: int | None, seqs: Collection[int]
) -> int | None:
    """Return the first of *seqs* from *leaf* up to the root, or None."""
    if leaf is None or not seqs:
        return None
    if leaf in seqs:
        return leaf

    least = min(seqs) if is_ordered(tx, session_id) else 0
    params = {
        "sid": session_id,
        "leaf": leaf,
        "least": least,
        "seqs": as_list(seqs),
    }
    row = tx.one(_FIRST, **params)
    return None if row is None else int(row[0])
