"""The names of sessions, agents and messages of Strands in a database.

Strands refuses path separators in an id, so a slash separates two of them without
ambiguity. A key that a column does not take, since it is empty, longer than 256 bytes
or not printable, is the digest of its ids behind two slashes, which no other key has.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import NamedTuple

#: The program in whose name the sessions are, and the first name of its values.
SOURCE = "strands"
_MOST_BYTES = 256


def check_strands_id(value: str, kind: str) -> str:
    """Return the id of a ``session`` or an ``agent``.

    Raises `ValueError` as Strands' own stores do, for one with a path separator.
    """
    if os.path.basename(value) != value:
        raise ValueError(f"{kind}_id={value} | id cannot contain path separators")
    return value


def printable_key(*ids: str) -> str:
    """Return one key for some ids, which is the key of no others."""
    key = "/".join(ids)
    if key and key.isprintable() and len(key.encode()) <= _MOST_BYTES:
        return key
    return f"//{sha256(json.dumps(ids).encode()).hexdigest()}"


def session_scope(session_id: str) -> str:
    """Return the scope of the agents of a session; raises `ValueError`."""
    return printable_key(check_strands_id(session_id, "session"))


def session_namespace(session_id: str) -> tuple[str, ...]:
    """Return the namespace of the values of a session; raises `ValueError`."""
    return (SOURCE, "session", session_scope(session_id))


class AgentKey(NamedTuple):
    """An agent in a session of Strands, which is a session of the database."""

    session_id: str
    agent_id: str
    #: The name of the session in the database.
    source_id: str
    #: How the ids of its messages begin: alike in no two sessions, so that the costs
    #: of two messages are never taken for those of one.
    prefix: str

    @classmethod
    def named_by(cls, session_id: str, agent_id: str) -> AgentKey:
        """Return the key of an agent; raises `ValueError`."""
        check_strands_id(session_id, "session")
        source_id = printable_key(session_id, check_strands_id(agent_id, "agent"))
        digest = sha256(source_id.encode()).hexdigest()[:12]
        return cls(session_id, agent_id, source_id, f"{digest}-")

    def name_of_message(self, index: int) -> str:
        """Return the id of the message with an index; raises `ValueError`."""
        if not isinstance(index, int):
            raise ValueError(  # noqa: TRY004  as the stores of Strands
                f"message_id=<{index}> | message id must be an integer"
            )
        return f"{self.prefix}{int(index)}"

    def index_of_message(self, name: str) -> int | None:
        """Return the index of a message by its id; None if another program wrote it."""
        if not name.startswith(self.prefix):
            return None
        digits = name[len(self.prefix) :]
        return int(digits) if digits.removeprefix("-").isdecimal() else None
