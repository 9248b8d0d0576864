"""The forks in a store of OpenCode 1.x, which have no pointer to their original."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sessiondb.formats.kit.fields import as_object, value_at
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.opencode.forks import Fork, recognise
from sessiondb.formats.opencode.raw import Head, Records

#: Fields of a part that point into its own session.
_POINTERS = ("id", "messageID", "sessionID", "tail_start_id")
#: Fields of a message that a fork copies.
_COPIED = ("role", "time", "cost", "tokens")


def forks_in(records: Records, heads: Collection[Head]) -> dict[str, Fork]:
    """Return the forks among *heads* by session id, with their originals."""
    return recognise(records, heads, {}, _common_content)


def _common_content(records: Records, session: str, message: str) -> list[Any]:
    """Return what a copy of a message has in common with it.

    Raises `OddRecordError`.
    """
    info = load_object(records.read_message(session, message))
    parts = records.read_parts(session, message)
    contents = [_comparable_part(load_object(part.raw.pop())) for part in parts]
    return [*(info.get(key) for key in _COPIED), contents]


def _comparable_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part without what differs in a copy."""
    for key in _POINTERS:
        part.pop(key, None)
    # An old output may be cleared in one of the two sessions.
    as_object(value_at(part, "state", "time")).pop("compacted", None)
    return part
