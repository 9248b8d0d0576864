"""The context to send to a model: the live path, cut and repaired.

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

#: The role of the model that the conversation is held with.
DEFAULT_ROLE = "default"
_NO_RESULT = "[no result: the call was interrupted]"
_UNSETTLED, _SETTLED = ("pending", "running"), ("completed", "error")


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

    def keep_from(self, message: Message, kept: Any) -> None:
        """Drop the messages before the one with the id *kept*; None drops all.

        *message* is the compaction that states it. The part that it keeps may begin
        with an event, which is not a message but has its place.
        """
        first = self.places.get(kept) if isinstance(kept, str) else None
        if first is None and kept:
            self.problems.append(
                f"message {message.seq} keeps from {abridged(kept)}, which is not here"
            )

        if first is None:
            self.messages = []
        else:
            self.messages = [m for m in self.messages if self.places[m.id] >= first]

    def set_model(self, role: Any, model: Any, provider: Any) -> None:
        """Record the model of a role; data of other types is ignored."""
        if not model or not isinstance(model, str):
            return
        named = ModelName(model, provider if isinstance(provider, str) else None)
        known_role = role if isinstance(role, str) else ""
        self.models[known_role or DEFAULT_ROLE] = named


def _first(*values: Any) -> Any:
    """Return the first of *values* that says something, else None."""
    return next(filter(None, values), None)


def _cut(state: _Gathered, message: Message) -> None:
    # A compaction that failed, or is still being written, cuts nothing.
    unfinished = message.role == "assistant" and not message.time_completed
    if unfinished or message.error is not None:
        return
    data = message.data
    state.keep_from(
        message,
        _first(data.get("first_kept_id"), data.get("tail_start_id"), state.tail),
    )
    state.summary = _first(message.text, data.get("summary"))


def _reset(state: _Gathered, _: Message) -> None:
    state.messages, state.summary = [], None


def _branch_summary(state: _Gathered, message: Message) -> None:
    if message.text:
        state.messages.append(message)


def _context(state: _Gathered, message: Message) -> None:
    state.system = [item.text for item in message.parts if item.text]


def _model(state: _Gathered, message: Message) -> None:
    data = message.data
    state.set_model(
        data.get("role"),
        _first(message.model_id, data.get("model_id"), message.text),
        _first(message.provider_id, data.get("provider_id")),
    )


def _thinking(state: _Gathered, message: Message) -> None:
    state.thinking = _first(message.data.get("level"), message.text)


def _mode(state: _Gathered, message: Message) -> None:
    state.mode = _first(message.data.get("mode"), message.agent, message.text)


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


def _ignore(_: _Gathered, __: Message) -> None:
    """Events of any other kind say nothing to a model."""


def context_of(path: Sequence[Message], repair: str = "synthesise") -> Context:
    """Return the context that the messages of *path* amount to.

    Raises `InvalidInputError`.
    """
    if repair not in REPAIRS:
        raise InvalidInputError(
            f"repair is one of {', '.join(REPAIRS)}, not {abridged(repair)}"
        )

    state = _Gathered({message.id: place for place, message in enumerate(path)})
    for message in path:
        if message.role == "event" or message.kind == "compaction":
            _EVENTS.get(message.kind or "", _ignore)(state, message)
        elif message.role == "system":
            state.system.append(message.text)
        elif _asks_for_compaction(message):
            state.tail = message.parts[0].data.get("tail_start_id")
        else:
            state.messages.append(message)
            if message.role == "assistant":
                state.set_model(DEFAULT_ROLE, message.model_id, message.provider_id)

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


def _asks_for_compaction(message: Message) -> bool:
    kinds = {item.type for item in message.parts}
    return kinds == {"compaction"}


# -- calls and results -----------------------------------------------------------


def _repaired(state: _Gathered, name: str) -> list[Message]:
    """Return the messages without unmatched calls and results."""
    messages, repair = state.messages, REPAIRS[name]
    while True:
        calls, answered = _named(messages, "tool"), _named(messages, "tool-result")
        out = []
        for message in messages:
            loose = [i for i in message.parts if _dangling(i, calls, answered)]
            for item in loose:
                why = f"message {message.seq}: {item.type} {item.call_id} is unmatched"
                state.problems.append(why)
            fixed = repair(message, loose) if loose else message
            if fixed is not None:
                out.append(fixed)

        # A message that was dropped may have held the calls of results that are still
        # there.
        if repair is not _dropped or len(out) == len(messages):
            return out
        messages = out


def _dangling(item: Part, calls: set[str | None], answered: set[str | None]) -> bool:
    if item.type == "tool":
        return item.status in _UNSETTLED and item.call_id not in answered
    return item.type == "tool-result" and item.call_id not in calls


def _named(messages: list[Message], kind: str) -> set[str | None]:
    parts = (item for message in messages for item in message.parts)
    return {item.call_id for item in parts if item.type == kind and item.call_id}


def _once(messages: list[Message]) -> list[Message]:
    """Return messages without records of results that their calls show."""
    parts = (item for message in messages for item in message.parts)
    settled = {i.call_id for i in parts if i.type == "tool" and i.status in _SETTLED}
    repeated = _named(messages, "tool-result") & settled
    if not repeated:
        return messages

    out = []
    for message in messages:
        shown = [item for item in message.parts if _is_record_of(item, repeated)]
        kept = _without(message, shown) if shown else message
        if kept is not None:
            out.append(kept)

    return out


def _is_record_of(item: Part, calls: set[str | None]) -> bool:
    return item.type == "tool-result" and item.call_id in calls


def _without(message: Message, gone: list[Part]) -> Message | None:
    """Return *message* without some of its parts, None without any that is left."""
    kept = tuple(item for item in message.parts if item not in gone)
    return replace(message, parts=kept) if kept else None


def _unchanged(message: Message, _: list[Part]) -> Message | None:
    return message


def _dropped(_: Message, __: list[Part]) -> Message | None:
    return None


def _synthesised(message: Message, loose: list[Part]) -> Message | None:
    """Give the calls an error as their result, and leave results without a call out."""
    results = [item for item in loose if item.type == "tool-result"]
    calls = [item for item in loose if item.type == "tool"]
    kept = _without(message, results)
    if kept is None or not calls:
        return kept
    parts = (_interrupted(item) if item in calls else item for item in kept.parts)
    return replace(kept, parts=tuple(parts))


def _interrupted(call: Part) -> Part:
    shown = call.text or _NO_RESULT
    return replace(call, status="error", outcome="interrupted", text=shown)


#: What becomes of a message with unmatched parts; None leaves it out.
REPAIRS: dict[str, Callable[[Message, list[Part]], Message | None]] = {
    "synthesise": _synthesised,
    "strip": _without,
    "drop": _dropped,
    "none": _unchanged,
}
