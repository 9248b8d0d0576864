"""The statements of `effects.delete`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, exists, func, or_, select, text, tuple_, update

from sessiondb.engine.expressions import p, texts, update_of
from sessiondb.schema.tables import (
    blob,
    file_diff,
    message,
    part,
    session,
    tombstone,
)
from sessiondb.statements.effects.ownership import name_of, of_key

CHILDREN = select(session.c.id, session.c.relation).where(
    session.c.parent_id == p("sid"), session.c.time_deleted.is_(None)
)
MARK = (
    update(session)
    .where(session.c.id.in_(texts("ids")))
    .values(time_deleted=p("now"), revision=session.c.revision + text("1"))
)


def _detach_statement() -> Any:
    parent = session.alias("parent")
    same_source = (
        select(session.c.parent_source_id)
        .where(parent.c.id == session.c.parent_id)
        .where(parent.c.source == session.c.source)
        .where(parent.c.source_id == session.c.parent_source_id)
        .scalar_subquery()
    )
    return (
        update(session)
        .where(session.c.id.in_(texts("ids")))
        .values(
            parent_source_id=func.coalesce(same_source, session.c.parent_id),
            parent_id=None,
        )
    )


#: A detached fork still names its parent, and where it began there. If that is
#: restored, from whatever file, the fork is linked again, and costs count once.
DETACH = _detach_statement()
STAMP = update_of(session, "change", session.c.id == p("sid"))
IDS = select(message.c.id).where(message.c.session_id == p("sid"))
REVISION = select(session.c.revision).where(session.c.id == p("sid"))
FACTS = select(
    session.c.source,
    session.c.source_id,
    session.c.revision,
    session.c.last_seq,
    session.c.time_imported,
    session.c.namespace,
).where(session.c.id == p("sid"))
# Only forks hold copies without a usage key: a thousand subagents stay cheap.
FORKS = select(session.c.id).where(
    session.c.root_id == p("root"),
    session.c.relation == text("'fork'"),
    session.c.time_deleted.is_(None),
)


_COLUMNS = (
    message.c.seq,
    message.c.id,
    message.c.time_created,
    message.c.usage_key,
    name_of(message),
)


def _shared_statement() -> Any:
    other = message.alias("other")
    is_key = other.c.usage_key == message.c.usage_key
    by_key = exists().where(
        of_key(other, is_key, other.c.id == name_of(message)),
        other.c.inherited == text("1"),
    )
    by_family = exists().where(
        other.c.session_id.in_(texts("forks")),
        other.c.id == message.c.id,
        other.c.inherited == text("1"),
    )
    return select(*_COLUMNS).where(
        message.c.session_id == p("sid"),
        message.c.inherited == text("0"),
        or_(by_key, by_family),
    )


SHARED = _shared_statement()
INHERITED = select(*_COLUMNS).where(
    message.c.session_id == p("sid"), message.c.inherited == text("1")
)


def _leaves_statement() -> Any:
    child = session.alias("child")
    return (
        select(session.c.id)
        .where(
            session.c.time_deleted.is_not(None),
            ~exists().where(child.c.parent_id == session.c.id),
        )
        .order_by(session.c.time_deleted)
        .limit(1)
    )


LEAF = _leaves_statement()
_text_blob, _input_blob, _data_blob = (
    blob.alias("tb"),
    blob.alias("ib"),
    blob.alias("db"),
)
_before, _after = blob.alias("before"), blob.alias("after")
PARTS = (
    select(
        part.c.seq,
        part.c.idx,
        func.length(func.coalesce(part.c.text, text("''")))
        + func.length(func.coalesce(part.c.input, text("''")))
        + func.length(func.coalesce(part.c.data, text("''")))
        + func.coalesce(_text_blob.c.size, text("0"))
        + func.coalesce(_input_blob.c.size, text("0"))
        + func.coalesce(_data_blob.c.size, text("0")),
        part.c.text_blob,
        part.c.input_blob,
        part.c.data_blob,
    )
    .outerjoin(_text_blob, _text_blob.c.hash == part.c.text_blob)
    .outerjoin(_input_blob, _input_blob.c.hash == part.c.input_blob)
    .outerjoin(_data_blob, _data_blob.c.hash == part.c.data_blob)
    .where(part.c.session_id == p("sid"))
    .order_by(part.c.seq.desc(), part.c.idx.desc())
    .limit(p("rows"))
)
MESSAGES = (
    select(
        message.c.seq,
        func.length(func.coalesce(message.c.data, text("''")))
        + func.coalesce(_data_blob.c.size, text("0")),
        message.c.data_blob,
    )
    .outerjoin(_data_blob, _data_blob.c.hash == message.c.data_blob)
    .where(message.c.session_id == p("sid"))
    .order_by(message.c.seq.desc())
    .limit(p("rows"))
)
DIFFS = (
    select(
        file_diff.c.seq,
        file_diff.c.path,
        func.length(func.coalesce(file_diff.c.patch, text("''")))
        + func.coalesce(_before.c.size, text("0"))
        + func.coalesce(_after.c.size, text("0")),
        file_diff.c.before_blob,
        file_diff.c.after_blob,
    )
    .outerjoin(_before, _before.c.hash == file_diff.c.before_blob)
    .outerjoin(_after, _after.c.hash == file_diff.c.after_blob)
    .where(file_diff.c.session_id == p("sid"))
    .order_by(file_diff.c.seq.desc(), file_diff.c.path.desc())
    .limit(p("rows"))
)
DATA = select(session.c.data_blob).where(session.c.id == p("sid"))
#: What is removed is the end of each kind, from a row on.
DROP_PARTS = delete(part).where(
    part.c.session_id == p("sid"),
    tuple_(part.c.seq, part.c.idx) >= tuple_(p("seq"), p("idx")),
)
DROP_MESSAGES = delete(message).where(
    message.c.session_id == p("sid"), message.c.seq >= p("seq")
)
DROP_DIFFS = delete(file_diff).where(
    file_diff.c.session_id == p("sid"),
    tuple_(file_diff.c.seq, file_diff.c.path) >= tuple_(p("seq"), p("path")),
)
DETACH_ALL = (
    update(session).where(session.c.parent_id == p("sid")).values(parent_id=None)
)
BURIED = select(tombstone.c.revision).where(
    tombstone.c.source == p("source"),
    tombstone.c.source_id == p("sid"),
    tombstone.c.namespace == text("''"),
)
DROP_SESSION = delete(session).where(session.c.id == p("sid"))
