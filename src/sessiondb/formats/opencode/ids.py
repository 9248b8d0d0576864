"""The ids under which a session is written: OpenCode's tables know each only once.

One of our forks keeps the ids of the messages it copied, other programs use the same id in
several sessions or none that OpenCode takes. Such ids are minted: from the time
and a hash, so that the same session always gets the same ones.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from sessiondb.formats.opencode.reader import SOURCE
from sessiondb.model import Message, Session

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NATIVE = re.compile(r"msg_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def is_native(message_id: str) -> bool:
    """Return whether an id is one that our database makes: no other message has it."""
    return _NATIVE.fullmatch(message_id) is not None


def own_id(session: Session) -> str:
    """Return the id of *session* in OpenCode: what it has there already, else its own."""
    if session.source == SOURCE and session.time_imported is not None:
        return session.source_id or session.id
    return session.id


def minted(prefix: str, time: int, step: int, *facts: Any) -> str:
    """Return an id as OpenCode makes them: 48 bits of time (ms * 4096 + step), 14 characters."""
    digest = hashlib.sha256(
        "\0".join(map(str, facts)).encode("utf-8", "surrogatepass")
    ).digest()
    number, tail = int.from_bytes(digest), ""
    for _ in range(14):
        number, digit = divmod(number, 62)
        tail += _BASE62[digit]
    return f"{prefix}{((time << 12) + (step & 4095)) & (1 << 48) - 1:012x}{tail}"


class Names:
    """The ids of one session and its messages; references are followed through it."""

    def __init__(self, session: Session, parent: Session | None = None) -> None:
        self.session = own_id(session)
        #: None for anything but a subagent.
        self.parent: str | None = None
        if session.relation == "subagent":
            self.parent = own_id(parent) if parent else session.parent_source_id
            self.parent = self.parent or session.parent_id
        self._theirs = session.source == SOURCE and session.time_imported is not None
        self._known: dict[str, str] = {}

    def message(self, message: Message) -> str:
        """Return the id that a message is written with."""
        name = message.id
        own = is_native(name) and not message.inherited
        if not own and not (self._theirs and name.startswith("msg_")):
            name = minted("msg_", message.time_created, message.seq, self.session, name)
        self._known[message.id] = name
        return name

    def put(self, info: dict[str, Any]) -> None:
        """Name, in the record of the session, its parent and the message of a revert."""
        if self.parent is not None:
            info["parentID"] = self.parent
        revert = info.get("revert")
        if isinstance(revert, dict) and "messageID" in revert:
            info["revert"] = {**revert, "messageID": self.of(revert["messageID"])}

    def of(self, message_id: Any) -> Any:
        """Return what *message_id* is written as, itself where no such message was written."""
        return (
            self._known.get(message_id, message_id)
            if type(message_id) is str
            else message_id
        )
