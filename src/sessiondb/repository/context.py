"""The context to send to a model: the live path, cut and repaired.

Walking the path from the root, events change the state of their name, a cut
(``compaction``, ``reset``) drops the messages before it, and a context event begins
a new epoch of system text and sources. Providers refuse a call without a result, so
calls that have none are repaired in the answer, never in the database. They also
refuse a second result, so one that is part of its call is not sent again as a record.

The keys of ``data`` that are read here are listed in docs/FORMAT.md.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

from sessiondb.arguments import one_of
from sessiondb.errors import abridged
from sessiondb.model import Context, ContextSource, Message, ModelName, Part
from sessiondb.model.records import SOURCE, SOURCE_KEYS

#: The role of the model that the conversation is held with.
DEFAULT_ROLE = "default"
#: The extension message after an unsent answer with which that one is sent.
_CONTINUES = "interrupted-thinking"
_NO_RESULT = "[no result: the call was interrupted]"
_FAILED = ("error", "cancelled")
_UNSETTLED, _SETTLED = ("pending", "running"), ("completed", "error")
#: The types of the values of a source.
_SOURCE: dict[str, type] = dict.fromkeys(SOURCE_KEYS, str) | {
    "truncated": bool,
    "error": object,
}
_TYPE, _PARTS = attrgetter("type"), attrgetter("parts")


@dataclass(slots=True)
class _Gathered:
    places: dict[str | None, int]
    #: The first message of the tail that the last requested compaction is to keep.
    tail: Any = None
    #: The messages for a model, and the place of the first that it is still shown.
    shown: list[Message] = field(default_factory=list)
    first: int = 0
    system: list[str] = field(default_factory=list)
    #: The system text in sections, by their names.
    sections: dict[str, str] = field(default_factory=dict)
    sources: list[Part] = field(default_factory=list)
    summary: str | None = None
    models: dict[str, ModelName] = field(default_factory=dict)
    #: Whether the default model was chosen, whatever model answers.
    is_chosen: bool = False
    thinking: str | None = None
    mode: str | None = None
    #: The rules, by a text that equal ones share.
    rules: dict[str, Any] = field(default_factory=dict)
    session_init: dict[str, Any] = field(default_factory=dict)
    #: The last event of each kind that is a state of its own kind alone.
    events: dict[str | None, Message] = field(default_factory=dict)
    #: The parts that messages were given later, by id; none leaves a message out.
    edits: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def keep_from(self, message: Message, kept: Any) -> None:
        """Drop the messages before the one with the id *kept*; None drops all.

        *message* is the compaction that states it. The kept part may begin with an
        event, which is not sent but has its place on the path; and before an earlier
        compaction, in place of which this one is.
        """
        self.first = len(self.shown)
        if not kept:
            return

        first = self.places.get(_text(kept))
        if first is None:
            self.problems.append(
                f"message {message.seq} keeps from {abridged(kept)}, "
                "which is not on the path"
            )
        else:
            self.first = bisect_left(self.shown, first, key=self.place)

    def place(self, message: Message) -> int:
        """Return the place of *message* on the path."""
        return self.places[message.id]

    def set_model(self, role: Any, model: Any, provider: Any) -> None:
        """Record the model of a role; data of other types is ignored."""
        name = _text(model)
        if name:
            known_role = _text(role) or DEFAULT_ROLE
            self.models[known_role] = ModelName(name, _text(provider))


#: How a message changes the context.
_Step = Callable[[_Gathered, Message], None]


def _text(value: Any) -> str | None:
    """Return a string as it is, None for data of any other type."""
    return value if isinstance(value, str) else None


def _first(*values: Any) -> Any:
    """Return the first of *values* that is not empty, else None."""
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
    _keep(state, message)


def _reset(state: _Gathered, _: Message) -> None:
    state.first, state.summary = len(state.shown), None
    state.events.pop("compaction", None)


def _branch_summary(state: _Gathered, message: Message) -> None:
    if message.text:
        state.shown.append(message)


def _context(state: _Gathered, message: Message) -> None:
    state.sources = []
    state.system = list(message.context_texts)
    state.sections = {}


def _is_source(item: Part) -> bool:
    return item.type == SOURCE


def _source(item: Part) -> ContextSource:
    """Return what a part says of its source; values of other types are left out."""
    said = item.input
    known = said if isinstance(said, dict) else {}
    fits: dict[str, Any] = {
        key: value
        for key, value in known.items()
        if isinstance(value, _SOURCE.get(key, ()))
    }
    return ContextSource(**fits, text=item.text, title=item.title)


def _model(state: _Gathered, message: Message) -> None:
    data = message.data
    state.set_model(
        data.get("role"),
        _first(message.model_id, data.get("model_id"), message.text),
        _first(message.provider_id, data.get("provider_id")),
    )
    if data.get("chosen") is True and data.get("role") in (None, DEFAULT_ROLE):
        state.is_chosen = True


def _thinking(state: _Gathered, message: Message) -> None:
    state.thinking = _first(message.data.get("level"), message.text)


def _mode(state: _Gathered, message: Message) -> None:
    state.mode = _first(message.data.get("mode"), message.agent, message.text)
    _keep(state, message)


def _rules(state: _Gathered, message: Message) -> None:
    several = message.data.get("rules")
    rules = several if isinstance(several, list) else [dict(message.data)]

    for rule in rules:
        state.rules.setdefault(json.dumps(rule, sort_keys=True, default=repr), rule)


def _session_init(state: _Gathered, message: Message) -> None:
    state.session_init = dict(message.data)


def _edit(state: _Gathered, message: Message) -> None:
    target = _text(message.data.get("target_id"))
    if target:
        state.edits[target] = message.parts


_EVENTS: dict[str | None, _Step] = {
    "custom_message": lambda state, message: state.shown.append(message),
    "compaction": _cut,
    "branch_summary": _branch_summary,
    "reset": _reset,
    "context": _context,
    "model_change": _model,
    "thinking_level_change": _thinking,
    "mode_change": _mode,
    "rules": _rules,
    "session_init": _session_init,
    "context_edit": _edit,
}


def _keep(state: _Gathered, message: Message) -> None:
    """Keep an event that is not sent to a model; the last one of its kind counts."""
    state.events[message.kind] = message


def _system(state: _Gathered, message: Message) -> None:
    named = {_text(item.data.get("section")): item.text for item in message.parts}
    if not any(named):
        state.system.append(message.text)
        return

    # A section replaces the earlier one of its name; without a text it removes it.
    own = (item.text for item in message.parts if "section" not in item.data)
    state.system += filter(None, own)
    for name, text in named.items():
        if name and text:
            state.sections[name] = text
        elif name:
            state.sections.pop(name, None)


def _request(state: _Gathered, message: Message) -> None:
    """Record the first message of the tail that a compaction is to keep."""
    state.tail = message.parts[0].data.get("tail_start_id")


def _append(state: _Gathered, message: Message) -> None:
    state.shown.append(message)


def _answered(state: _Gathered, message: Message) -> None:
    state.shown.append(message)
    if not state.is_chosen:
        state.set_model(DEFAULT_ROLE, message.model_id, message.provider_id)


_ROLES: dict[str, _Step] = {"system": _system, "assistant": _answered}


def _step(message: Message) -> _Step:
    """Return how a message changes the context: by its kind, its parts or its role."""
    if message.role == "event" or message.kind == "compaction":
        return _EVENTS.get(message.kind, _keep)

    is_request = set(map(_TYPE, message.parts)) == {"compaction"}
    if is_request and message.role != "system":
        return _request

    return _ROLES.get(message.role, _append)


def context_of(path: Sequence[Message], repair: str = "synthesise") -> Context:
    """Return the context that the messages of *path* make up.

    Raises `InvalidInputError`.
    """
    one_of(repair, REPAIRS, "repair")
    state = _Gathered({message.id: place for place, message in enumerate(path)})
    for message in path:
        _step(message)(state, message)
        state.sources += filter(_is_source, message.parts)

    sent = _sent(state.shown[state.first :])
    messages = _once(_repaired(state, _edited(sent, state.edits), repair))
    return Context(
        tuple(messages),
        (*state.system, *state.sections.values()),
        state.summary,
        state.models,
        state.thinking,
        state.mode,
        tuple(state.rules.values()),
        state.session_init,
        tuple(state.problems),
        tuple(map(_source, state.sources)),
        {kind: dict(last.data) for kind, last in state.events.items() if kind},
    )


def _sent(shown: Sequence[Message]) -> list[Message]:
    """Return *shown* without answers that are not sent again, and their results."""
    gone = {
        message.id: message
        for message, after in zip(shown, [*shown[1:], None], strict=False)
        if message.finish in _FAILED and _is_unsent(message, after)
    }
    if not gone:
        return list(shown)

    calls = _named(gone.values(), "tool")
    left = [message for message in shown if message.id not in gone]
    return _changed(left, partial(_is_record_of, calls), _without)


def _is_unsent(message: Message, after: Message | None) -> bool:
    """Return whether an answer is not sent; what continues it comes right after."""
    is_continued = after is not None and after.data.get("customType") == _CONTINUES
    return message.data.get("unsent") is True and not is_continued


# -- edits -------------------------------------------------------------------------


def _edited(
    messages: list[Message], edits: dict[str, tuple[Part, ...]]
) -> list[Message]:
    """Return *messages* with the parts that *edits* give them, by their ids."""
    if not edits:
        return messages

    results: dict[str | None, tuple[Part, ...]] = {
        item.call_id: edits[message.id]
        for message in messages
        if message.id in edits
        for item in message.parts
        if item.type == "tool-result" and item.call_id
    }
    kept = (_as_edited(message, edits.get(message.id)) for message in messages)
    is_answered = partial(_is_call_of, results)
    return _changed(
        list(filter(None, kept)), is_answered, partial(_with_results, results)
    )


def _as_edited(message: Message, parts: tuple[Part, ...] | None) -> Message | None:
    if parts is None:
        return message

    # The text of a result stays one, of the same call.
    given = [item for item in message.parts if item.type == "tool-result"][:1]
    texts = [item for item in parts if item.type == "text"][: len(given)]
    results = [replace(given[0], text=item.text) for item in texts]
    return _holding(message, [*results, *parts[len(texts) :]])


def _is_call_of(results: Collection[str | None], item: Part) -> bool:
    return item.type == "tool" and item.call_id in results


def _with_results(
    results: Mapping[str | None, tuple[Part, ...]], message: Message, _: list[Part]
) -> Message | None:
    """Return *message* with the edited results in its calls, which have them, too."""
    parts = [
        _with_text(item, results[item.call_id]) if _is_call_of(results, item) else item
        for item in message.parts
    ]
    return _holding(message, parts)


def _with_text(call: Part, result: tuple[Part, ...]) -> Part:
    """Return a call with the text of its *result*; without one it has none yet."""
    if not result:
        return replace(call, status="pending", outcome=None, text=None)
    texts = (item.text for item in result if item.type == "text")
    return replace(call, text=next(texts, None))


# -- calls and results -----------------------------------------------------------

#: Changes a message some of whose parts were chosen; None omits the message.
_Change = Callable[[Message, list[Part]], Message | None]


def _repaired(state: _Gathered, messages: list[Message], name: str) -> list[Message]:
    """Return *messages* without unmatched calls and results."""
    repair = REPAIRS[name]

    def repair_and_report(message: Message, loose: list[Part]) -> Message | None:
        state.problems += [
            f"message {message.seq}: {item.type} {item.call_id} is unmatched"
            for item in loose
        ]
        return repair(message, loose)

    while True:
        calls, answered = _named(messages, "tool"), _named(messages, "tool-result")
        is_dangling = partial(_is_dangling, calls, answered)
        kept = _changed(messages, is_dangling, repair_and_report)

        # A dropped message may have held the calls of results that remain.
        if len(kept) == len(messages):
            return kept
        messages = kept


def _changed(
    messages: list[Message], is_chosen: Callable[[Part], bool], change: _Change
) -> list[Message]:
    """Return *messages* with *change* applied to those that have chosen parts."""
    out: list[Message | None] = []
    for message in messages:
        chosen = list(filter(is_chosen, message.parts))
        out.append(change(message, chosen) if chosen else message)

    return list(filter(None, out))


def _is_dangling(calls: set[str | None], answered: set[str | None], item: Part) -> bool:
    """Return whether a part is a call without a result, or a result without a call.

    *calls* are the ids of all calls, *answered* those of all results.
    """
    if item.type == "tool":
        return item.status in _UNSETTLED and item.call_id not in answered
    return item.type == "tool-result" and item.call_id not in calls


def _parts_in(messages: Iterable[Message]) -> Iterator[Part]:
    return chain.from_iterable(map(_PARTS, messages))


def _named(messages: Iterable[Message], kind: str) -> set[str | None]:
    """Return the ids of all calls, or of all results."""
    named = {item.call_id for item in _parts_in(messages) if item.type == kind}
    return named - {None, ""}


def _once(messages: list[Message]) -> list[Message]:
    """Return messages without records of results that their calls already have."""
    calls = [item for item in _parts_in(messages) if item.type == "tool"]
    settled = {item.call_id for item in calls if item.status in _SETTLED}
    repeated = _named(messages, "tool-result") & settled
    if not repeated:
        return messages

    return _changed(messages, partial(_is_record_of, repeated), _without)


def _is_record_of(calls: set[str | None], item: Part) -> bool:
    """Return whether a part is the record of a result of one of *calls*."""
    return item.type == "tool-result" and item.call_id in calls


def _without(message: Message, gone: list[Part]) -> Message | None:
    """Return *message* without the parts *gone*; None if no part is left."""
    named = set(map(id, gone))
    return _holding(message, [item for item in message.parts if id(item) not in named])


def _holding(message: Message, parts: list[Part]) -> Message | None:
    """Return *message* with other parts; None for no parts."""
    return replace(message, parts=tuple(parts)) if parts else None


def _unchanged(message: Message, _: list[Part]) -> Message | None:
    return message


def _dropped(_: Message, __: list[Part]) -> Message | None:
    return None


def _synthesised(message: Message, loose: list[Part]) -> Message | None:
    """Give the calls an error as their result, and omit results without a call."""
    repaired = []
    unmatched = set(map(id, loose))
    for item in message.parts:
        if id(item) not in unmatched:
            repaired.append(item)
        elif item.type == "tool":
            repaired.append(_interrupted(item))

    return _holding(message, repaired)


def _interrupted(call: Part) -> Part:
    shown = call.text or _NO_RESULT
    return replace(call, status="error", outcome="interrupted", text=shown)


#: Name → the repair of a message with unmatched parts.
REPAIRS: dict[str, _Change] = {
    "synthesise": _synthesised,
    "strip": _without,
    "drop": _dropped,
    "none": _unchanged,
}
