"""The ids with which a session is written for OpenCode.

OpenCode's tables know each id only once. One of our forks keeps the ids of the messages
it copied, and other programs use the same id in several sessions, or ids that OpenCode
does not take. Such ids are minted: from the time and a hash, so that the same session
always gets the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.kit.conversion import Names, is_from, is_native
from sessiondb.formats.kit.fields import as_object
from sessiondb.formats.opencode.ids import SOURCE, SUMMARY, mint_id
from sessiondb.formats.protocol import Outline
from sessiondb.model import Message, Session


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
