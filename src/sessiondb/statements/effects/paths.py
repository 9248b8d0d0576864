"""The statements of `effects.paths`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, Table, exists, select, text

from sessiondb.engine.expressions import by_index, number, numbers, p
from sessiondb.schema.tables import message
from sessiondb.schema.terms import DISORDERED

IS_DISORDERED = (
    select(message.c.seq)
    .with_hint(*by_index(message, "ix_message_disordered"))
    .where(message.c.session_id == p("sid"), text(DISORDERED))
    .limit(1)
)


def _path_up() -> CTE:
    """Return the seqs from ``:leaf`` up to ``:least`` of session ``:sid``.

    A statement that ends at the first hit walks no further: SQLite makes the rows of
    the recursion when they are needed. UNION ends a cycle in a damaged file.
    """
    path = select(number("leaf").label("seq")).cte("path", recursive=True)
    parents = (
        select(message.c.parent_seq)
        .select_from(path.join(message, message.c.seq == path.c.seq))
        .where(message.c.session_id == p("sid"), message.c.parent_seq >= p("least"))
    )
    return path.union(parents)


_path = _path_up()
FIRST = select(_path.c.seq).where(_path.c.seq.in_(numbers("seqs"))).limit(1)


def first_above(table: Table, condition: ColumnElement[bool]) -> Select[Any]:
    """Return a query for the first message from ``:leaf`` up to ``:least``.

    Only one with a row of *table* that meets *condition* is meant.
    """
    path = _path_up()
    is_there = exists().where(condition, table.c.seq == path.c.seq)
    return select(path.c.seq).where(is_there).limit(1)
