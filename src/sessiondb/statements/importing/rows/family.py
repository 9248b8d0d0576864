"""The statements of `importing.rows.family`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, func, select, text, update

from sessiondb.engine.expressions import by_index, p, texts, update_of
from sessiondb.schema.tables import import_ledger, message, part, session
from sessiondb.statements.effects.ownership import is_named_otherwise, name_of

FAMILY = select(session.c.parent_id, session.c.root_id).where(session.c.id == p("sid"))
CHILDREN = select(session.c.id).where(session.c.parent_id == p("sid"))
_child, _parent = session.alias("child"), session.alias("parent")
_COLUMNS = (
    _child.c.id,
    _parent.c.id,
    _child.c.parent_source_id,
    _child.c.relation,
    _child.c.source,
    _child.c.source_id,
    _child.c.time_imported.is_not(None) & _child.c.time_detached.is_(None),
    _child.c.namespace,
)
_waits = (
    _child.c.parent_source_id.is_not(None)
    & _child.c.parent_id.is_(None)
    & _child.c.time_deleted.is_(None)
    & _parent.c.time_deleted.is_(None)
)
_same_source = (_child.c.source == _parent.c.source) & (
    _child.c.parent_source_id == _parent.c.source_id
)
BY_SOURCE = (
    select(*_COLUMNS)
    .join_from(_parent, _child, _same_source)
    .where(_parent.c.id == p("sid"), _waits)
)
#: Forks that a removal detached, and children in a log, name their parent by its id.
BY_ID = (
    select(*_COLUMNS)
    .join_from(_child, _parent, _parent.c.id == _child.c.parent_source_id)
    .where(_parent.c.id.in_(texts("ids")), _waits)
    .order_by(_child.c.time_created, _child.c.id.desc())
)
ORPHAN = (
    select(*_COLUMNS)
    .join_from(_child, _parent, _parent.c.id == p("parent"))
    .where(_child.c.id == p("sid"), _child.c.parent_id.is_(None))
)
LINK = update_of(
    session, "parent_id relation parent_source_id", session.c.id == p("sid")
)
ROOT = update_of(session, "root_id", session.c.id == p("sid"))
ROWS = select(
    message.c.seq,
    message.c.id,
    message.c.time_created,
    message.c.usage_key,
    name_of(message),
).where(message.c.session_id == p("sid"))
#: The last column: whether the parent is a session of the same source.
FAMILY_FACTS = (
    select(
        _child.c.parent_id,
        _child.c.relation,
        _child.c.parent_source_id,
        _parent.c.source_id.is_not(None) & (_parent.c.source == _child.c.source),
    )
    .join_from(_child, _parent, _parent.c.id == _child.c.parent_id, isouter=True)
    .where(_child.c.id == p("sid"))
)
NAME_PARENT = update_of(session, "parent_source_id", session.c.id == p("sid"))
LEAVE = update_of(
    session,
    "parent_id relation parent_seq parent_source_id",
    session.c.id == p("sid"),
)


def _branch_statement() -> Any:
    of_fork, of_parent = message.alias("mine"), message.alias("theirs")
    same = (
        select(of_parent.c.seq)
        .join_from(of_fork, of_parent, of_parent.c.id == of_fork.c.id)
        .where(
            of_fork.c.session_id == session.c.id, of_fork.c.seq == session.c.parent_seq
        )
        .where(of_parent.c.session_id == session.c.parent_id)
    )
    return (
        session.update()
        .values(parent_seq=same.scalar_subquery())
        .where(
            session.c.id == p("sid"),
            session.c.relation == text("'fork'"),
            same.exists(),
        )
    )


#: A fork begins at a seq of its parent, whose messages may have other seqs here.
BRANCHED = _branch_statement()
_mine, _theirs = message.alias("mine"), message.alias("theirs")


def _last_common(is_same: Any) -> Any:
    of_both = (_mine.c.session_id == p("sid"), _theirs.c.session_id == p("above"))
    return (
        select(func.max(_theirs.c.seq))
        .join_from(_mine, _theirs, is_same)
        .where(*of_both)
    )


#: Copies share their key, at whatever seq. One whose usage changed has another key,
#: and is found where it was. Three queries, since each has its index.
_is_key = _theirs.c.usage_key == _mine.c.usage_key
LAST_OF_EQUAL_KEY = _last_common(_is_key & is_named_otherwise(_theirs)).with_hint(
    *by_index(_theirs, "ix_message_usage_key")
)
LAST_OF_EQUAL_NAME = _last_common(_is_key & (_theirs.c.id == name_of(_mine)))
LAST_OF_EQUAL_PLACE = _last_common(
    (_theirs.c.seq == _mine.c.seq) & (_theirs.c.id == _mine.c.id)
)
#: A fork has most of them, up to the last: the keys of one are looked for in the other
#: from its end. By the index each key would be compared with all copies of it.
LAST_OF_SHARED_KEY = (
    select(_theirs.c.seq)
    .where(
        _theirs.c.session_id == p("above"),
        _theirs.c.usage_key.in_(
            select(_mine.c.usage_key).where(
                _mine.c.session_id == p("sid"), _mine.c.usage_key.is_not(None)
            )
        ),
    )
    .order_by(_theirs.c.seq.desc())
    .limit(1)
)
STARTER = select(func.min(part.c.seq)).where(
    part.c.session_id == p("above"),
    part.c.call_id == p("call_id"),
    part.c.type == text("'tool'"),
)
CALL = select(session.c.call_id).where(session.c.id == p("sid"))
SET_CUT = update_of(
    session, "parent_seq", session.c.id == p("sid"), session.c.parent_seq.is_(None)
)
CUTS = select(
    session.c.id,
    session.c.parent_seq,
    session.c.call_id,
    session.c.source,
    session.c.source_id,
).where(
    session.c.parent_id == p("sid"),
    session.c.parent_seq.is_not(None),
    session.c.time_imported.is_not(None),
    session.c.time_detached.is_(None),
)
MOVE_CUT = update_of(session, "parent_seq", session.c.id == p("sid"))


def _copied_statement() -> Any:
    other = message.alias("other")
    same = (
        (other.c.session_id == p("parent"))
        & (other.c.id == message.c.id)
        & (other.c.time_created == message.c.time_created)
    )
    return select(message.c.seq).where(
        message.c.session_id == p("sid"),
        message.c.inherited == text("0"),
        message.c.usage_key.is_(None),
        exists().where(same, other.c.seq == message.c.seq),
    )


COPIED = _copied_statement()
NOTED = select(import_ledger.c.path).where(
    import_ledger.c.source == p("source"), import_ledger.c.offset.is_not(None)
)
# An entry without offset is read again, whatever its digest says.
READ_AGAIN = (
    update(import_ledger)
    .where(
        import_ledger.c.source == p("source"),
        import_ledger.c.path == p("path"),
    )
    .values(offset=None)
)
