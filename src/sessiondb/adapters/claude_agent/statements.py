"""The reads that the verbs of `Store` have no name for."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, bindparam, literal, select

from sessiondb.extensions import texts
from sessiondb.schema.tables import message, session

#: The program in whose name the sessions are.
SOURCE = "claude-agent-sdk"

_is_present = (
    session.c.time_deleted.is_(None),
    session.c.source == literal(SOURCE),
    session.c.namespace == literal(""),
)
#: A transcript by its name; it may be without entries.
TRANSCRIPT: Select[Any] = select(
    session.c.id,
    session.c.revision,
    session.c.leaf_seq,
    session.c.directory,
    session.c.version,
).where(*_is_present, session.c.source_id == bindparam("source_id"))

#: The metadata of the sessions of a project, without subagents.
OF_PROJECT: Select[Any] = select(session.c.metadata).where(
    *_is_present,
    session.c.scope == bindparam("scope"),
    session.c.relation.is_distinct_from(literal("subagent")),
    session.c.message_count > 0,
)
#: The metadata of the subagents of a session, in the order they were made.
SUBAGENTS: Select[Any] = (
    select(session.c.metadata)
    .where(
        *_is_present,
        session.c.parent_id == bindparam("session_id"),
        session.c.relation == literal("subagent"),
        session.c.message_count > 0,
    )
    .order_by(session.c.id.desc())
)
#: Those of some messages that a session has, with their times in Unix ms.
PRESENT: Select[Any] = select(message.c.id, message.c.time_created).where(
    message.c.session_id == bindparam("session_id"),
    message.c.id.in_(texts("ids")),
)
#: The ids of the newest messages of a session, the newest first.
NEWEST: Select[Any] = (
    select(message.c.id)
    .where(message.c.session_id == bindparam("session_id"))
    .order_by(message.c.seq.desc())
    .limit(bindparam("most"))
)
