"""The context to send to a model: the live path, cut and repaired, with nothing rewritten for it.

Walking the path from the root, events change the state of their name, a cut
(``compaction``, ``reset``) drops the messages before it, and a context event
begins a new epoch of system text. Providers refuse a call without a result, so
calls that have none are repaired in the answer, never in the database. They also
refuse a second result, so one that its call shows is not sent again as a record.

The keys of ``data`` that are read here are listed in docs/FORMAT.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Context, Message, ModelName, Part

REPAIRS = ("synthesise", "strip", "drop", "none")
#: The role of the model that the conversation is held with.
DEFAULT_ROLE = "default"
_NO_RESULT = "[no result: the call was interrupted]"


@dataclass(slots=True)
class _Gathered:
    places: dict[str, int]
    #: Where the compaction that was asked for last wants its tail to begin.
    tail: Any = None
    messages: list[Message] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    summary: str | None = None
    models: dict[str, ModelName] = field(default_factory=dict)
    thinking: str | None = None
    mode: str | None = None
    rules: list[Any] = field(default_factory=list)
    session_init: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def _cut(state: _Gathered, message: Message) -> None:
    if message.error is not None or (
        message.role == "assistant" and not message.time_completed
    ):
        return
    kept = (
        message.data.get("first_kept_id")
        or message.data.get("tail_start_id")
        or state.tail
    )
    # The rest may begin with an event, which is not a message.
    first = state.places.get(kept) if isinstance(kept, str) else None
    if first is None:
        if kept:
            state.problems.append(
                f"message {message.seq} keeps from {abridged(kept)}, which is not here"
            )
        state.messages = []
    else:
        state.messages = [
            entry for entry in state.messages if state.places[entry.id] >= first
        ]
    state.summary = message.text or message.data.get("summary") or None


def _reset(state: _Gathered, _: Message) -> None:
    state.messages, state.summary = [], None


def _branch_summary(state: _Gathered, message: Message) -> None:
    if message.text:
        state.messages.append(message)


def _context(state: _Gathered, message: Message) -> None:
    state.system = [item.text for item in message.parts if item.text]


def _model(state: _Gathered, message: Message) -> None:
    model = message.model_id or message.data.get("model_id") or message.text
    provider = message.provider_id or message.data.get("provider_id")
    _note_model(state, message.data.get("role"), model, provider)


def _note_model(state: _Gathered, role: Any, model: Any, provider: Any) -> None:
    if isinstance(model, str) and model:
        named = ModelName(model, provider if isinstance(provider, str) else None)
        state.models[role if isinstance(role, str) and role else DEFAULT_ROLE] = named


def _thinking(state: _Gathered, message: Message) -> None:
    state.thinking = message.data.get("level") or message.text or None


def _mode(state: _Gathered, message: Message) -> None:
    state.mode = message.data.get("mode") or message.agent or message.text or None


def _rules(state: _Gathered, message: Message) -> None:
    given = message.data.get("rules")
    for rule in given if isinstance(given, list) else [dict(message.data)]:
        if rule not in state.rules:
            state.rules.append(rule)


def _session_init(state: _Gathered, message: Message) -> None:
    state.session_init = dict(message.data)


_EVENTS: dict[str, Callable[[_Gathered, Message], None]] = {
    "custom_message": lambda state, message: state.messages.append(message),
    "compaction": _cut,
    "branch_summary": _branch_summary,
    "reset": _reset,
    "context": _context,
    "model_change": _model,
    "thinking_level_change": _thinking,
    "mode_change": _mode,
    "rules": _rules,
    "session_init": _session_init,
}


def context_of(path: Sequence[Message], repair: str = "synthesise") -> Context:
    """Return the context that the messages of *path* amount to; raises `InvalidInputError`."""
    if repair not in REPAIRS:
        raise InvalidInputError(
            f"repair is one of {', '.join(REPAIRS)}, not {abridged(repair)}"
        )
    state = _Gathered({message.id: place for place, message in enumerate(path)})
    for message in path:
        if message.role == "event" or message.kind == "compaction":
            act = _EVENTS.get(message.kind or "")
            if act is not None:
                act(state, message)
        elif message.role == "system":
            state.system.append(message.text)
        elif message.parts and all(item.type == "compaction" for item in message.parts):
            state.tail = message.parts[0].data.get("tail_start_id")
        else:
            if message.role == "assistant":
                _note_model(state, DEFAULT_ROLE, message.model_id, message.provider_id)
            state.messages.append(message)
    messages = _once(_repaired(state, repair))
    return Context(
        tuple(messages),
        tuple(state.system),
        state.summary,
        state.models,
        state.thinking,
        state.mode,
        tuple(state.rules),
        state.session_init,
        tuple(state.problems),
    )


def _repaired(state: _Gathered, repair: str) -> list[Message]:
    messages = state.messages
    while True:
        calls = _named(messages, "tool")
        answered = _named(messages, "tool-result")
        out = []
        for message in messages:
            whole = [
                item for item in message.parts if not _dangling(item, calls, answered)
            ]
            if len(whole) == len(message.parts):
                out.append(message)
                continue
            loose = [item for item in message.parts if item not in whole]
            for item in loose:
                why = f"message {message.seq}: {item.type} {item.call_id} is unmatched"
                state.problems.append(why)
            fixed = _repair(message, whole, loose, repair)
            if fixed is not None:
                out.append(fixed)
        # A message that was dropped may have held the calls of results that are still there.
        if repair != "drop" or len(out) == len(messages):
            return out
        messages = out


def _once(messages: list[Message]) -> list[Message]:
    """Return messages without the records of results that are shown with their calls."""
    settled = {
        item.call_id
        for message in messages
        for item in message.parts
        if item.type == "tool"
        and item.call_id
        and item.status in ("completed", "error")
    }
    out = []
    for message in messages:
        kept = [
            i
            for i in message.parts
            if i.type != "tool-result" or i.call_id not in settled
        ]
        if len(kept) == len(message.parts):
            out.append(message)
        elif kept:
            out.append(replace(message, parts=tuple(kept)))
    return out


def _named(messages: list[Message], kind: str) -> set[str | None]:
    parts = (item for message in messages for item in message.parts)
    return {item.call_id for item in parts if item.type == kind and item.call_id}


def _dangling(item: Part, calls: set[str | None], answered: set[str | None]) -> bool:
    if item.type == "tool":
        return item.status in ("pending", "running") and item.call_id not in answered
    return item.type == "tool-result" and item.call_id not in calls


def _repair(
    message: Message, whole: list[Part], loose: list[Part], repair: str
) -> Message | None:
    if repair == "none":
        return message
    if repair == "drop":
        return None
    if repair == "strip":
        return replace(message, parts=tuple(whole)) if whole else None
    settled = {
        id(item): replace(
            item, status="error", outcome="interrupted", text=item.text or _NO_RESULT
        )
        for item in loose
        if item.type == "tool"
    }
    kept = [settled.get(id(item), item) for item in message.parts]
    parts = tuple(item for item in kept if item.type != "tool-result" or item in whole)
    return replace(message, parts=parts) if parts else None
