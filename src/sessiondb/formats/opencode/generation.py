"""Which generation of OpenCode wrote a session, from what the database kept of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sessiondb.formats.kit.conversion import is_json, is_native
from sessiondb.formats.kit.fields import as_object, as_text, is_object, within
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.keys import GENERATION, OUTPUT_FILE
from sessiondb.formats.opencode.v2.fields import EVENTS
from sessiondb.model import Message, Part, Session


def generation(session: Session, messages: Iterable[Message]) -> int:
    """Return 1 or 2; 0 for a session of another program.

    A fork made here counts as the session that it copied.
    """
    if session.source == SOURCE:
        return 2 if session.data.get(GENERATION) == 2 else 1
    return next(filter(None, map(_generation_of, messages)), 0)


def _generation_of(message: Message) -> int:
    """Return which generation a message has the fields of; 0 if that is not certain."""
    if is_native(message.id):
        return 0
    data = message.data
    if message.role == "event" and as_text(data.get("type")) in EVENTS:
        return 2
    if message.role != "assistant":
        return 0

    if "mode" in data and "cwd" in as_object(data.get("path")):
        return 1
    marks_of_2 = (
        "streamed" in as_object(data.get("time")),
        "rawFinish" in data,
        isinstance(data.get("snapshot"), dict),
    )
    return 2 if any(marks_of_2) else 0


def details_of(part: Part) -> dict[str, Any] | None:
    """Return the metadata of a call; None if there are none.

    A call of OpenCode has them in its state. Other agents keep theirs in the data of
    the part: these are returned as far as JSON can express them.
    """
    if "state" in part.data:
        known = within(part.data["state"], "metadata")
        return known if is_object(known) else None

    kept = {key: value for key, value in part.data.items() if is_json(value)}
    kept.pop(OUTPUT_FILE, None)
    return kept or None
