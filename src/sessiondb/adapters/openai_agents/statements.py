"""The statements that read the items of a session, each in one snapshot.

A read of everything takes the parts in the order of their index, and the path from the
few messages that do not follow the one before them. A read of the last items takes the
parent of each message with it, so that its cost does not depend on the length.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    select,
    union_all,
)

from sessiondb.engine.elements import ArrayOfPairs
from sessiondb.schema.tables import blob, message, part, session

#: The program in whose name the sessions are.
SOURCE = "openai-agents"

_of_name = (
    session.c.time_deleted.is_(None),
    session.c.time_importing.is_(None),
    session.c.source == literal(SOURCE),
    session.c.source_id == bindparam("name"),
    session.c.namespace == literal(""),
)
#: The session with a name: its id, leaf and revision.
PLACE = select(session.c.id, session.c.leaf_seq, session.c.revision).where(*_of_name)

_large = func.coalesce(part.c.text_blob, part.c.input_blob, part.c.data_blob)


def _only(name: str) -> ColumnElement[bool]:
    """Return whether no value of a part but that of the column *name* is in a blob."""
    others = [
        part.c[other]
        for other in ("text_blob", "input_blob", "data_blob")
        if other != name
    ]
    return func.coalesce(*others).is_(None)


#: The name of the blob that holds a value of a part, after the letter of its column:
#: NULL without one, empty if several are in blobs.
_holder = case(
    (_large.is_(None), null()),
    (_only("text_blob"), literal("t").concat(part.c.text_blob)),
    (_only("input_blob"), literal("i").concat(part.c.input_blob)),
    (_only("data_blob"), literal("d").concat(part.c.data_blob)),
    else_=literal(""),
)
#: What `rows.PartRow` has of a part, after the seq of its message.
_part_columns: tuple[ColumnElement[Any], ...] = (
    part.c.type,
    part.c.tool,
    part.c.call_id,
    part.c.text,
    part.c.input,
    part.c.data,
    _holder,
    blob.c.data,
)
_of_message = and_(
    part.c.session_id == message.c.session_id, part.c.seq == message.c.seq
)
_jumps = (
    select(ArrayOfPairs(message.c.seq, message.c.parent_seq))
    .where(
        message.c.session_id == session.c.id,
        message.c.seq <= session.c.leaf_seq,
        message.c.parent_seq.is_distinct_from(message.c.seq - 1),
    )
    .correlate(session)
    .scalar_subquery()
)
#: The newest message without a parent. A compaction begins there, and what it replaced
#: is before it.
_root = (
    select(func.max(message.c.seq))
    .where(
        message.c.session_id == session.c.id,
        message.c.seq <= session.c.leaf_seq,
        message.c.parent_seq.is_(None),
    )
    .correlate(session)
    .scalar_subquery()
)
_parts = (
    select(part.c.seq, *_part_columns)
    .select_from(
        session.join(part, part.c.session_id == session.c.id).outerjoin(
            blob, blob.c.hash == _large
        )
    )
    .where(*_of_name, part.c.seq >= _root, part.c.seq <= session.c.leaf_seq)
    .order_by(part.c.seq, part.c.idx)
    .subquery()
)
#: The parts from the newest root up to the leaf, in order, after a row of a seq of 0
#: with the leaf and, as JSON, [seq, parent_seq] of each message that does not follow
#: the one before it. No row: there is no such session.
ALL_PARTS = union_all(
    select(
        literal(0),
        cast(session.c.leaf_seq, Text),
        _jumps,
        *[null() for _ in _part_columns[2:]],
    ).where(*_of_name),
    select(*_parts.c),
)
#: The last ``most`` parts up to the leaf, the last one first, each with the parent of
#: its message at the end. A message without parts has one row.
LAST_PARTS = (
    select(message.c.seq, *_part_columns, message.c.parent_seq)
    .select_from(
        session.join(
            message,
            and_(
                message.c.session_id == session.c.id,
                message.c.seq <= session.c.leaf_seq,
            ),
        )
        .outerjoin(part, _of_message)
        .outerjoin(blob, blob.c.hash == _large)
    )
    .where(*_of_name)
    .order_by(message.c.seq.desc(), part.c.idx.desc())
    .limit(bindparam("most"))
)
