"""Handles: what a write returns before anything is read.

``id`` is known at once, ``seq`` after the commit. A handle or a record means exactly
what it was made for, in every verb and every read. Effects take these or full ids,
never prefixes; only reads, `fork` and `delete` also take what a person types.
"""

from __future__ import annotations

from types import EllipsisType, NoneType
from typing import Any, Final, NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.ids import valid_id
from sessiondb.model import Message, Part, Session


@dataclass(slots=True)
class SessionHandle:
    """A session that was or will be written; ``id`` is its full id, known at once."""

    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(slots=True)
class OpenedSession(SessionHandle):
    """The session that `open_session` found or made.

    Only the transaction knows which: ``id`` and ``created`` are final after the
    commit. Until then ``created`` is None, and the handle is good for further
    effects of the same unit.
    """

    created: bool | None = None

    def __str__(self) -> str:
        return self.id


@dataclass(slots=True)
class MessageHandle:
    """A message that was or will be written; ``seq`` is None before the commit."""

    session_id: str
    id: str
    seq: int | None = None
    parts: tuple[PartHandle, ...] = ()

    def __str__(self) -> str:
        return self.id


@dataclass(slots=True)
class PartHandle:
    """A part that was or will be written; ``id``, unique in its session, is known now.

    Row numbers are never handed out: a stored part is (session id, seq, idx).
    """

    session_id: str
    message_id: str
    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(slots=True)
class PoppedMessage:
    """The message that `pop` removed, once it is committed; None if there was none."""

    message: Message | None = None


class Leaf:
    """The value of ``after=LEAF``: the leaf, whatever it is at the commit."""

    def __repr__(self) -> str:
        return "LEAF"


LEAF: Final = Leaf()

SessionRef = SessionHandle | Session | str
MessageRef = MessageHandle | Message | str | int
PartRef = PartHandle | Part | str
# Every verb compares its arguments with these: a union would be made in each call.
_SESSIONS = (SessionHandle, Session)
_MESSAGES = (MessageHandle, Message)
_NAMED_PLACES = (NoneType, Leaf, EllipsisType)


def session_key(session: SessionRef, name: str = "session") -> str:
    """Return the full id behind *session*; an `InvalidInputError` calls it *name*."""
    if isinstance(session, _SESSIONS):
        return session.id
    return valid_id(session, f"{name} (an id)")


def message_key(message: MessageRef, name: str = "message") -> str | int:
    """Return the id of *message*, or the seq that was given.

    Raises `InvalidInputError`, which calls the argument *name*.
    """
    if isinstance(message, _MESSAGES):
        return message.id

    if isinstance(message, int) and not isinstance(message, bool):
        if not 1 <= message < 1 << 63:
            raise InvalidInputError(
                f"{name} (a seq) must be 1 or more, in 64 bits, not {abridged(message)}"
            )
        return message

    return valid_id(message, f"{name} (a message id)")


def place_key(place: MessageRef | Leaf | EllipsisType | None, name: str) -> Any:
    """Return `message_key` of a place in the tree.

    `LEAF`, None and ``...`` stay as they are.
    """
    if isinstance(place, _NAMED_PLACES):
        return place
    return message_key(place, name)


class PartKey(NamedTuple):
    """The address of a tool call: its id, or a string that may be its ``call_id``."""

    name: str
    exact: bool


def part_key(part: PartRef) -> PartKey:
    """Return what addresses *part*; raises `InvalidInputError`."""
    if isinstance(part, PartHandle | Part):
        return PartKey(part.id, exact=True)
    return PartKey(valid_id(part, "part (an id)"), exact=False)
