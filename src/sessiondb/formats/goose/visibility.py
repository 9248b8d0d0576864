"""Which messages of a session the agent still sees, and what that makes of its tree.

Goose never deletes what it compacts: it takes the old messages out of the agent's
sight and adds a summary that only the agent sees. So the first message that the agent
sees, if the user does not, is a compaction, and the messages before it stay on the
path. Any other message that is out of the agent's sight is a branch beside the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import as_object


class MessageEntry(NamedTuple):
    """A message by what is known without its content.

    ``key`` is where its store keeps it, ``time`` in seconds. The user sees it if it is
    ``shown``, the agent if it is ``sent``. ``used`` is what an answer states of its
    request.
    """

    name: str
    key: Any
    role: Any
    time: int
    shown: bool
    sent: bool
    used: Any = None


class VisiblePlace(NamedTuple):
    """An entry below its ``parent``; one may be the summary of a compaction."""

    entry: MessageEntry
    parent: str | None
    is_summary: bool


def is_shown(metadata: Any) -> bool:
    """Return whether the user sees a message; a missing flag counts as true."""
    return as_object(metadata).get("userVisible") is not False


def is_sent(metadata: Any) -> bool:
    """Return whether the agent sees a message; a missing flag counts as true."""
    return as_object(metadata).get("agentVisible") is not False


def place_entries(entries: Sequence[MessageEntry]) -> Iterator[VisiblePlace]:
    """Yield the *entries* with their places, in the same order."""
    summary = _summary_index(entries)
    path: str | None = None
    aside: str | None = None

    for index, entry in enumerate(entries):
        # The user still sees what the summary replaced for the agent.
        if entry.sent or (index < summary and entry.shown):
            yield VisiblePlace(entry, path, index == summary)
            path, aside = entry.name, None
        else:
            yield VisiblePlace(entry, aside or path, is_summary=False)
            aside = entry.name


def last_sent_to_agent(entries: Sequence[MessageEntry]) -> str | None:
    """Return the last message that the agent sees, or None."""
    last: str | None = None
    for entry in entries:
        if entry.sent:
            last = entry.name
    return last


def _summary_index(entries: Sequence[MessageEntry]) -> int:
    """Return the index of the last compaction, or -1."""
    has_prompt = False
    for index, entry in enumerate(entries):
        if entry.sent:
            # Notes to the user may precede the first message that the agent sees.
            return index if has_prompt and not entry.shown else -1
        if entry.role == "user":
            has_prompt = True
    return -1


def visibility_of(metadata: Mapping[str, Any] | None) -> tuple[bool, bool]:
    """Return whether the user and the agent see a message."""
    return is_shown(metadata), is_sent(metadata)
