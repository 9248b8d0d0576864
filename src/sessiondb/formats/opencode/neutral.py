"""The facts that both generations need of a message that neither of them wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sessiondb.formats.opencode.ids import is_native
from sessiondb.formats.opencode.keys import GENERATION, OUTPUT_FILE
from sessiondb.formats.opencode.reader import SOURCE
from sessiondb.formats.opencode.v2.drafts import TYPES
from sessiondb.model import Message, Part, Session

#: The name of an agent, provider or model without one.
AGENT, UNKNOWN = "build", "unknown"
#: The loss of a call whose output was cut and lies in a file.
WHOLE_OUTPUT = "the file with the complete output of a call"
#: Events whose text a model is shown as if the user had said it.
TOLD = frozenset({"custom_message", "branch_summary"})
#: Events that no format of OpenCode has, and that say nothing a session's total does not.
SILENT = frozenset({"usage"})


class Model(NamedTuple):
    """Which model answers."""

    provider: str
    id: str


def generation(session: Session, messages: Iterable[Message]) -> int:
    """Return which OpenCode wrote a session; 0 is none. Our forks count as what they copied."""
    if session.source == SOURCE:
        return 2 if session.data.get(GENERATION) == 2 else 1
    return next((found for message in messages if (found := _shape(message))), 0)


def _shape(message: Message) -> int:
    data = message.data
    if is_native(message.id):
        return 0
    if message.role == "event":
        return 2 if data.get("type") in TYPES else 0
    path, time = data.get("path"), data.get("time")
    if message.role != "assistant":
        return 0
    if isinstance(path, dict) and "cwd" in path and "mode" in data:
        return 1
    streamed = isinstance(time, dict) and "streamed" in time
    return (
        2
        if streamed or "rawFinish" in data or isinstance(data.get("snapshot"), dict)
        else 0
    )


def text_of(message: Message, *, synthetic: bool = False) -> str:
    """Return the texts of a message that were said by whom it is from, or else put in."""
    return "\n".join(
        part.text
        for part in message.parts
        if part.type == "text"
        and part.text
        and not part.data.get("ignored")
        and bool(part.data.get("synthetic")) is synthetic
    )


def model_of(
    messages: list[Message], index: int, session: Session
) -> tuple[str, Model]:
    """Return agent and model of a message: its own, else those of the answer to it, or before."""
    agent = provider = model = None
    near = [*messages[index:], *reversed(messages[:index])]
    for message in near:
        agent = agent or message.agent
        if model is None and message.model_id:
            provider, model = message.provider_id, message.model_id
        if agent and model:
            break
    return agent or session.agent or AGENT, Model(
        provider or session.provider_id or UNKNOWN, model or session.model_id or UNKNOWN
    )


def arguments(part: Part) -> dict[str, Any]:
    """Return the arguments of a call as an object; anything else is put under ``value``."""
    given = part.input
    if given is None:
        return {}
    return given if type(given) is dict else {"value": given}


def details_of(part: Part) -> dict[str, Any]:
    """Return what an agent of another kind keeps beside a call, as far as JSON can say it."""
    return {k: v for k, v in part.data.items() if k != OUTPUT_FILE and is_json(v)}


def is_json(value: Any) -> bool:
    """Return whether JSON can say *value*: no bytes, no NaN."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
