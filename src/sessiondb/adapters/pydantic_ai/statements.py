"""The reads of conversations: one statement each, and so one snapshot each.

A conversation is a session of `SOURCE` with a name. Forks that people made have none:
they are sessions of their own, which Pydantic AI does not know.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, bindparam, literal, select

from sessiondb.engine.elements import NumberInJSON
from sessiondb.extensions import texts
from sessiondb.schema.tables import blob, message, session

#: The program in whose name the sessions are.
SOURCE = "pydantic-ai"
#: The place in a session's metadata of the time by which conversations are listed.
UPDATED = "updated_us"

_has_name = (
    session.c.source_id.is_not(None)
    & (session.c.namespace == literal(""))
    & session.c.time_deleted.is_(None)
)
_is_conversation = (session.c.source == literal(SOURCE)) & _has_name
#: The same for sessions that are found otherwise: by an expression, so that SQLite does
#: not walk all conversations, in the index of their names.
_belongs_here = (session.c.source.concat(literal("")) == literal(SOURCE)) & _has_name
_leaf = (
    select(message.c.id)
    .where(message.c.session_id == session.c.id, message.c.seq == session.c.leaf_seq)
    .scalar_subquery()
)
#: The session of a conversation, its metadata, and the id of its last message.
RECORD = select(session.c.id, session.c.metadata, _leaf).where(
    _is_conversation, session.c.source_id == bindparam("conversation")
)
_updated = NumberInJSON(session.c.metadata, "pydantic_ai", UPDATED)


def _records(*conditions: Any) -> Select[Any]:
    """Return the query for ``most`` conversations, those saved last first."""
    return (
        select(session.c.metadata)
        .where(_updated.is_not(None), *conditions)
        .order_by(_updated.desc(), session.c.id)
        .limit(bindparam("most"))
    )


ALL_RECORDS = _records(_is_conversation)
RECORDS_OF_SCOPE = _records(session.c.scope == bindparam("scope"), _belongs_here)

#: Those of some messages that a session has, by their ids.
MESSAGES_HERE = select(message.c.id).where(
    message.c.session_id == bindparam("session_id"), message.c.id.in_(texts("ids"))
)

#: The messages with an id, of which forks have the same.
_with_id = (
    select(
        message.c.session_id,
        message.c.seq,
        message.c.parent_seq,
        literal(1).label("depth"),
    )
    .join(session, session.c.id == message.c.session_id)
    .where(message.c.id == bindparam("id"), _belongs_here)
)
_end = _with_id.limit(1)
#: The session of a message, that of the conversation ``original`` before any other.
HOLDER = (
    _with_id.with_only_columns(message.c.session_id)
    .order_by((session.c.source_id == bindparam("original")).desc())
    .limit(1)
)


def _path() -> Select[Any]:
    """Return the query for the last ``most`` messages up to one, oldest first."""
    path = select(_end.subquery()).cte("path", recursive=True)
    parent = message.alias("parent")
    is_parent = (parent.c.session_id == path.c.session_id) & (
        parent.c.seq == path.c.parent_seq
    )
    path = path.union_all(
        select(
            parent.c.session_id,
            parent.c.seq,
            parent.c.parent_seq,
            path.c.depth + literal(1),
        )
        .join(path, is_parent)
        .where(path.c.depth < bindparam("most"))
    )
    is_on_path = (message.c.session_id == path.c.session_id) & (
        message.c.seq == path.c.seq
    )
    return (
        select(
            message.c.session_id,
            message.c.id,
            message.c.data,
            blob.c.size,
            blob.c.encoding,
            blob.c.data,
        )
        .select_from(path)
        .join(message, is_on_path)
        .outerjoin(blob, blob.c.hash == message.c.data_blob)
        .order_by(path.c.depth.desc())
    )


PATH = _path()
BLOBS = select(blob.c.hash, blob.c.size, blob.c.encoding, blob.c.data).where(
    blob.c.hash.in_(texts("hashes"))
)
