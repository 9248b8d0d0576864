"""The ids of OpenCode: how it makes them, and which ones a session is written with.

OpenCode's tables know each id only once. One of our forks keeps the ids of the messages
it copied, and other programs use the same id in several sessions, or ids that OpenCode
does not take. Such ids are minted: from the time and a hash, so that the same session
always gets the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from sessiondb.formats.kit.conversion import Names, is_from, is_native
from sessiondb.formats.kit.fields import as_object
from sessiondb.formats.protocol import Outline
from sessiondb.model import Message, Session
from sessiondb.patterns import late_pattern

#: The name of the source.
SOURCE = "opencode"

#: Ends the id of a summary in 1.x; without it that of the prompt that requests it.
SUMMARY = "s"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CLOCK = late_pattern(r"[a-z]+_([0-9a-f]{12})")
_HALF = 1 << 47


def mint_id(prefix: str, time: int, step: int, *facts: Any) -> str:
    """Return an id as OpenCode makes them: 48 bits of time, and 14 characters.

    The time is ``ms * 4096 + step``. OpenCode's characters are random; these are a
    hash of *facts*.
    """
    text = "\0".join(str(fact) for fact in facts).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(text).digest())
    tail = ""
    for _ in range(14):
        number, digit = divmod(number, 62)
        tail += _BASE62[digit]

    clock = ((time << 12) + (step & 4095)) & (1 << 48) - 1
    return f"{prefix}{clock:012x}{tail}"


def in_creation_order(ids: list[str]) -> list[str]:
    """Put sorted ids into the order in which they were made.

    An id begins with 48 bits of ``ms * 4096``, which start again at zero every
    795 days (last on 2026-08-14): the ids before that moment come first.
    """
    if len(ids) < 2:
        return ids
    first, last = _clock_of(ids[0]), _clock_of(ids[-1])
    if first < 0 or last - first < _HALF:
        return ids

    for index, name in enumerate(ids):
        if _clock_of(name) >= _HALF:
            return ids[index:] + ids[:index]
    return ids


def _clock_of(name: str) -> int:
    """Return the clock of an id, -1 for an id of another make."""
    match = _CLOCK.match(name)
    return int(match[1], 16) if match else -1


def own_id(session: Session) -> str:
    """Return the id of *session* in OpenCode: the one it has there, else here."""
    if is_from(session, SOURCE):
        return session.source_id or session.id
    return session.id


class OpenCodeNames(Names):
    """The ids of one session and its messages in OpenCode."""

    def __init__(self, session: Session, parent: Session | None = None) -> None:
        super().__init__(own_id(session))
        #: The id of the parent; None for anything but a subagent.
        self.parent = _parent_id(session, parent)
        self._is_theirs = is_from(session, SOURCE)

    def choose_id(self, message: Message) -> str:
        """Return the message's own id if OpenCode can have it from no other session."""
        return _message_id(message, self.session, is_theirs=self._is_theirs)

    def put(self, info: dict[str, Any]) -> None:
        """Name the parent and the message of a revert in the session's record."""
        if self.parent is not None:
            info["parentID"] = self.parent
        revert = as_object(info.get("revert"))
        if "messageID" in revert:
            message_id = self.written_id(revert["messageID"])
            info["revert"] = {**revert, "messageID": message_id}


def _message_id(message: Message | Outline, session: str, *, is_theirs: bool) -> str:
    """Return the id of a message in *session*, which *is_theirs* or from elsewhere."""
    name = message.id
    if is_theirs and name.startswith("msg_"):
        return name
    if is_native(name) and not message.inherited:
        return name

    return mint_id("msg_", message.time_created, message.seq, session, name)


def names_of(session: Session, message: Outline) -> Iterator[str]:
    """Yield the ids that a message has in either generation, for `Exporter`."""
    is_theirs = is_from(session, SOURCE)
    name = _message_id(message, own_id(session), is_theirs=is_theirs)
    yield name
    yield f"{name}{SUMMARY}"
    yield note_id(message, name)


def note_id(message: Message | Outline, name: str) -> str:
    """Return the id of the text that a program added to the prompt called *name*."""
    return mint_id("msg_", message.time_created, message.seq, name, "synthetic")


def _parent_id(session: Session, parent: Session | None) -> str | None:
    if session.relation != "subagent":
        return None
    name = own_id(parent) if parent else session.parent_source_id
    return name or session.parent_id
