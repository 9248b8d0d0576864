"""The path above a message, walked no further than it takes.

In a session that only grew every parent has a smaller seq than its child. Only an
import can put a message behind its child, and those have an index of their own, so
that one look says whether seqs bound a walk.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, Table, exists, select, text

from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list, by_index, numbers, p
from sessiondb.schema import message
from sessiondb.schema.tables import DISORDERED

_DISORDERED = Statement(
    lambda: (
        select(message.c.seq)
        .with_hint(*by_index(message, "ix_message_disordered"))
        .where(message.c.session_id == p("sid"), text(DISORDERED))
        .limit(1)
    )
)


def _path_up() -> CTE:
    """Return the seqs from ``:leaf`` up to ``:least`` of session ``:sid``.

    A statement that ends at the first hit walks no further: SQLite makes the rows of
    the recursion when they are needed. UNION ends a cycle in a damaged file.
    """
    path = select(p("leaf").label("seq")).cte("path", recursive=True)
    parents = (
        select(message.c.parent_seq)
        .select_from(path.join(message, message.c.seq == path.c.seq))
        .where(message.c.session_id == p("sid"), message.c.parent_seq >= p("least"))
    )
    return path.union(parents)


def _first_on_path() -> Select[Any]:
    path = _path_up()
    return select(path.c.seq).where(path.c.seq.in_(numbers("seqs"))).limit(1)


_FIRST = Statement(_first_on_path)


def first_above(table: Table, condition: ColumnElement[bool]) -> Select[Any]:
    """Return a query for the first message from ``:leaf`` up to ``:least``.

    Only one with a row of *table* that meets *condition* is meant.
    """
    path = _path_up()
    is_there = exists().where(condition, table.c.seq == path.c.seq)
    return select(path.c.seq).where(is_there).limit(1)


def is_ordered(tx: Transaction, session_id: str) -> bool:
    """Return whether every message of a session has a parent of a smaller seq."""
    return tx.one(_DISORDERED, sid=session_id) is None


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
