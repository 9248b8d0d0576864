"""The statements that find what Strands stored."""

from __future__ import annotations

import sys

from sqlalchemy import Select, bindparam, literal, select

from sessiondb.adapters.strands.keys import SOURCE
from sessiondb.schema.tables import key_value, session

#: Halves of characters, which no text of a database has.
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF

_is_living = session.c.time_deleted.is_(None) & (session.c.namespace == literal(""))
#: The session of an agent, as `agents.StoredAgent` has it.
AGENT = select(
    session.c.id, session.c.metadata, session.c.message_count, session.c.last_seq
).where(
    _is_living,
    session.c.source == literal(SOURCE),
    session.c.source_id == bindparam("source_id"),
)
#: The sessions of the agents of a session, oldest first. Forks that people made have
#: the scope, too, but no name. The source is an expression, which no index has: by it
#: SQLite would read the sessions of all scopes.
AGENTS_IN = (
    select(session.c.id)
    .where(
        _is_living,
        session.c.scope == bindparam("scope"),
        session.c.source.concat("") == literal(SOURCE),
        session.c.source_id.is_not(None),
    )
    .order_by(session.c.id.desc())
)

#: The keys of a namespace: the values themselves, which may be large, are not read.
_KEYS_FROM = (
    select(key_value.c.key)
    .where(
        key_value.c.namespace == bindparam("namespace"),
        key_value.c.key >= bindparam("first"),
    )
    .order_by(key_value.c.key)
)
_KEYS_BETWEEN = _KEYS_FROM.where(key_value.c.key < bindparam("end"))


def keys_below(prefix: str) -> tuple[Select[tuple[str]], dict[str, str]]:
    """Return the statement for keys that begin with *prefix*, and its parameters."""
    parameters = {"first": prefix}
    # The last character that can be followed by another one decides where they end.
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return _KEYS_FROM, parameters
    following = ord(stem[-1]) + 1
    if following == _FIRST_SURROGATE:
        following = _LAST_SURROGATE + 1
    return _KEYS_BETWEEN, {**parameters, "end": stem[:-1] + chr(following)}
