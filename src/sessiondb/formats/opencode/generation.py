"""Which generation of OpenCode wrote a session, from what the database kept of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sessiondb.formats.kit.conversion import is_json, is_native
from sessiondb.formats.kit.fields import as_object, as_text, is_object, value_at
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.keys import GENERATION, OUTPUT_FILE
from sessiondb.formats.opencode.v2.fields import EVENTS
from sessiondb.model import Message, Part, Session


def generation_of(session: Session, messages: Iterable[Message]) -> int:
    """Return 1 or 2; 0 for a session of another program.

    A fork made here counts as the session that it copied.
    """
    if session.source == SOURCE:
        return 2 if session.data.get(GENERATION) == 2 else 1
    for message in messages:
        number = _generation_of_message(message)
        if number:
            return number
    return 0


def _generation_of_message(message: Message) -> int:
    """Return the generation whose fields a message has; 0 if that is not certain."""
    if is_native(message.id):
        return 0

    data = message.data
    if message.role == "event":
        return 2 if as_text(data.get("type")) in EVENTS else 0
    if message.role != "assistant":
        return 0
    if "mode" in data and "cwd" in as_object(data.get("path")):
        return 1
    if "rawFinish" in data or is_object(data.get("snapshot")):
        return 2
    return 2 if "streamed" in as_object(data.get("time")) else 0


def details_of(part: Part) -> dict[str, Any] | None:
    """Return the metadata of a call; None if there are none.

    A call of OpenCode has them in its state. Other agents keep theirs in the data of
    the part: these are returned as far as JSON can express them.
    """
    if "state" in part.data:
        metadata = value_at(part.data["state"], "metadata")
        return metadata if is_object(metadata) else None

    details = {
        key: value
        for key, value in part.data.items()
        if key != OUTPUT_FILE and is_json(value)
    }
    return details or None
