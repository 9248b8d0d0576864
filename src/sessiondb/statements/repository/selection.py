"""The statements of `repository.selection`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, or_, select

from sessiondb.engine.expressions import number, p, string, texts
from sessiondb.schema.tables import message
from sessiondb.statements.repository.decode import in_list, select_message

_down_to_end = and_(
    message.c.session_id == p("sid"),
    message.c.seq <= p("top"),
    message.c.seq > p("end"),
)


def _is_one_of(column: Any, name: str) -> Any:
    """Return the condition that *column* is in the list *name*, if there is one."""
    return or_(string(name).is_(None), column.in_(texts(name)))


_passes = and_(
    _is_one_of(message.c.role, "roles"),
    _is_one_of(message.c.kind, "kinds"),
    or_(number("since").is_(None), message.c.time_created >= p("since")),
)
DOWN = (
    select_message.where(_down_to_end).order_by(message.c.seq.desc()).limit(p("rows"))
)
LINKS_DOWN = (
    select(message.c.seq, message.c.parent_seq, _passes.label("passes"))
    .where(_down_to_end)
    .order_by(message.c.seq.desc())
    .limit(p("rows"))
)
PASSING = select(message.c.seq).where(in_list(message), _passes)
# Not in order: for that SQLite would scan the session instead of finding the ids.
SEQS_OF_IDS = select(message.c.seq).where(
    message.c.session_id == p("sid"), message.c.id.in_(texts("ids"))
)
