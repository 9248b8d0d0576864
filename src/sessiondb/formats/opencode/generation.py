"""Which generation of OpenCode wrote a session, from what the database kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sessiondb.formats.kit.conversion import is_json, is_native
from sessiondb.formats.kit.fields import as_object, as_text, fitting, is_object, within
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.keys import GENERATION, OUTPUT_FILE
from sessiondb.formats.opencode.v2.fields import EVENTS
from sessiondb.model import Message, Part, Session

Data = Mapping[str, Any]


def generation(session: Session, messages: Iterable[Message]) -> int:
    """Return 1 or 2; 0 for a session of another program.

    A fork made here counts as the session that it copied.
    """
    if session.source == SOURCE:
        return 2 if session.data.get(GENERATION) == 2 else 1
    return next(filter(None, map(_generation_of, messages)), 0)


def _generation_of(message: Message) -> int:
    """Return which generation a message has the fields of; 0 if that is not certain."""
    found = (
        number
        for role, number, is_marked in _MARKS
        if role == message.role and is_marked(message.data)
    )
    return 0 if is_native(message.id) else next(found, 0)


# -- what only one generation writes, by the data of a message ---------------------


def _is_event_of_2(data: Data) -> bool:
    return as_text(data.get("type")) in EVENTS


def _is_answer_of_1(data: Data) -> bool:
    return "mode" in data and "cwd" in as_object(data.get("path"))


def _is_answer_of_2(data: Data) -> bool:
    marks = (
        "streamed" in as_object(data.get("time")),
        "rawFinish" in data,
        is_object(data.get("snapshot")),
    )
    return any(marks)


#: Role and generation, and what decides; the first that fits counts.
_MARKS: tuple[tuple[str, int, Callable[[Data], bool]], ...] = (
    ("event", 2, _is_event_of_2),
    ("assistant", 1, _is_answer_of_1),
    ("assistant", 2, _is_answer_of_2),
)


# -- calls --------------------------------------------------------------------


def details_of(part: Part) -> dict[str, Any] | None:
    """Return the metadata of a call; None if there are none.

    A call of OpenCode has them in its state. Other agents keep theirs in the data of
    the part: these are returned as far as JSON can express them.
    """
    if "state" in part.data:
        state = part.data["state"]
        known: dict[str, Any] | None = fitting(within(state, "metadata"), is_object)
        return known

    kept = {key: value for key, value in part.data.items() if is_json(value)}
    kept.pop(OUTPUT_FILE, None)
    return kept or None
