"""Stored values that cannot be read: how an error names them, and what helps."""

from __future__ import annotations

from sessiondb.errors import CorruptionError, abridged
from sessiondb.hints import command

#: Why a value of 1 KB or more cannot be read: its row of ``blob`` was removed, or the
#: bytes there are not those that the row is named after.
GONE = "a large value of it is not in the file any more"
ALTERED = "a large value of it is not the one that was stored"
#: Why a path or a message is not complete.
REMOVED = "it is not in the file any more"
CIRCLE = "it is its own ancestor"
GAP = "a part before its last one is not in the file any more"

#: The thing that is missing (see the names below), and why.
Missing = tuple[str, str]


def session_name(session_id: str) -> str:
    """Return how an error names a session."""
    return f"session {session_id}"


def message_name(session_id: str, seq: int) -> str:
    """Return how an error names a message."""
    return f"message {seq} of session {session_id}"


def part_name(session_id: str, seq: int, idx: int) -> str:
    """Return how an error names a part."""
    return f"part {idx} of message {seq} of session {session_id}"


def diff_name(session_id: str, path: str) -> str:
    """Return how an error names what is known of a changed file."""
    return f"the diff of {abridged(path)} of session {session_id}"


def damaged(name: str, reason: object) -> CorruptionError:
    """Return the error of *name* is stored and cannot be read."""
    return CorruptionError(
        f"{name} is damaged: {reason}",
        hint=f"{command('check')} lists what is damaged; a backup may have it intact",
    )
