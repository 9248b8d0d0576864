"""The keys of the SDK as names of sessions: three texts, of any content, as one.

A project and a session are escaped so that neither has a slash, which then separates
them, and a subpath may keep its own. So no two keys have the same name, and the usual
ones are readable. A name that is too long is a digest, which has no slash.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from claude_agent_sdk.types import SessionKey, SessionListSubkeysKey

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.ids import MAX_ID_BYTES
from sessiondb.patterns import late_pattern

#: Characters that an id must not have, and those with which this encoding is made.
_UNSAFE = late_pattern("[%\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSAFE_OR_SLASH = late_pattern("[%/\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class TranscriptKey(NamedTuple):
    """The key of a transcript; *subpath* is empty for that of the session itself."""

    project: str
    session: str
    subpath: str = ""

    @property
    def source_id(self) -> str:
        """The id of its session in the database."""
        name = f"{_escaped(self.project)}/{_escaped(self.session)}"
        if self.subpath:
            name += f"/{_UNSAFE.sub(_code_of, self.subpath)}"
        return _shortened(name)

    @property
    def main(self) -> TranscriptKey:
        """The key of the session that a subagent belongs to."""
        return self._replace(subpath="")


def transcript_key(key: SessionKey | SessionListSubkeysKey) -> TranscriptKey:
    """Return a key of the SDK, checked; raises `InvalidInputError`."""
    texts = (key.get("project_key"), key.get("session_id"), key.get("subpath") or "")
    for name, text in zip(("project_key", "session_id", "subpath"), texts, strict=True):
        if not isinstance(text, str):
            raise InvalidInputError(f"{name} must be a string, not {abridged(text)}")
    return TranscriptKey(*map(str, texts))


def scope_of(project: str) -> str:
    """Return the scope of the sessions of a project."""
    return _shortened(_escaped(project) or "%")


def _escaped(text: str) -> str:
    return _UNSAFE_OR_SLASH.sub(_code_of, text)


def _code_of(match: object) -> str:
    return f"%{ord(match[0]):X};"  # type: ignore[index]


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_ID_BYTES:
        return name
    return f"%{sha256(name.encode()).hexdigest()}"
