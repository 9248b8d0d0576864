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
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sessiondb.arguments import one_of
from sessiondb.dataclass import dataclass, field, replace
from sessiondb.errors import abridged
from sessiondb.model import ContextSource, Message, ModelName, Part
from sessiondb.model.records import SOURCE, SOURCE_KEYS
from sessiondb.repository.context_record import Context

#: How calls without a result, and results without a call, are repaired.
REPAIRS = ("synthesise", "strip", "drop", "none")
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


@dataclass(slots=True)
class ContextState:
    """The context as the messages of a path, up to one of them, leave it."""

    places: dict[str | None, int]
    #: The first message of the tail that the last requested compaction is to keep.
    tail: Any = None
    #: The messages for a model, those with system texts included, and the place of the
    #: first that it is still shown.
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

    def apply(self, message: Message) -> None:
        """Change the context by a message: by its kind, its parts or its role."""
        if message.role == "event" or message.kind == "compaction":
            self._apply_event(message)
        elif message.role == "system":
            self._add_system(message)
        elif message.parts and all(part.type == "compaction" for part in message.parts):
            # The request of one names the first message of the tail that it is to keep.
            self.tail = message.parts[0].data.get("tail_start_id")
        else:
            self.shown.append(message)
            if message.role == "assistant" and not self.is_chosen:
                self.set_model(DEFAULT_ROLE, message.model_id, message.provider_id)
        self.sources += [part for part in message.parts if part.type == SOURCE]

    def _apply_event(self, message: Message) -> None:
        data = message.data
        match message.kind:
            case "custom_message":
                self.shown.append(message)
            case "branch_summary":
                if message.text:
                    self.shown.append(message)
            case "compaction":
                self._begin_compacted(message)
            case "reset":
                self.first, self.summary = len(self.shown), None
                self.events.pop("compaction", None)
            case "context":
                self.sources = []
                self.system = list(message.context_texts)
                self.sections = {}
                self._forget_system()
                self.shown.append(message)
            case "model_change":
                self._change_model(message)
            case "thinking_level_change":
                self.thinking = _first_of(data.get("level"), message.text)
            case "mode_change":
                self.mode = _first_of(data.get("mode"), message.agent, message.text)
                self.events[message.kind] = message
            case "rules":
                stated = data.get("rules")
                for rule in stated if isinstance(stated, list) else [dict(data)]:
                    key = json.dumps(rule, sort_keys=True, default=repr)
                    self.rules.setdefault(key, rule)
            case "session_init":
                self.session_init = dict(data)
            case "context_edit":
                target = _as_text(data.get("target_id"))
                if target:
                    self.edits[target] = message.parts
            case _:
                # It is not sent to a model; the last one of its kind counts.
                self.events[message.kind] = message

    def _add_system(self, message: Message) -> None:
        sections: dict[str | None, str | None] = {}
        texts = []
        for part in message.parts:
            sections[_as_text(part.data.get("section"))] = part.text
            if "section" not in part.data and part.text:
                texts.append(part.text)
        if not any(sections):
            self.system.append(message.text)
            self.shown.append(message)
            return

        self.system += texts
        # A section replaces the earlier one of its name; without a text it removes it.
        for name, text in sections.items():
            if name and text:
                self.sections[name] = text
            elif name:
                self.sections.pop(name, None)

    def _forget_system(self) -> None:
        """Remove the messages with system texts, which a new epoch replaces."""
        others = [message for message in self.shown if not message.is_system]
        self.first -= sum(item.is_system for item in self.shown[: self.first])
        self.shown = others

    def _begin_compacted(self, message: Message) -> None:
        # A compaction that failed, or is still being written, cuts nothing.
        is_unfinished = message.role == "assistant" and not message.time_completed
        if is_unfinished or message.error is not None:
            return

        data = message.data
        first = _first_of(data.get("first_kept_id"), data.get("tail_start_id"))
        self._keep_from(message, first or self.tail)
        self.summary = _first_of(message.text, data.get("summary"))
        self.events[message.kind] = message

    def _keep_from(self, message: Message, first_id: Any) -> None:
        """Drop the messages before the one with the id *first_id*; None drops all.

        *message* is the compaction that states it. The messages that are kept may
        begin with an event, which is not sent but has its place on the path; and before
        an earlier compaction, in place of which this one is.
        """
        self.first = len(self.shown)
        if not first_id:
            return

        place = self.places.get(_as_text(first_id))
        if place is None:
            self.problems.append(
                f"message {message.seq} keeps from {abridged(first_id)}, "
                "which is not on the path"
            )
        else:
            self.first = bisect_left(
                self.shown, place, key=lambda shown: self.places[shown.id]
            )

    def _change_model(self, message: Message) -> None:
        data = message.data
        self.set_model(
            data.get("role"),
            _first_of(message.model_id, data.get("model_id"), message.text),
            _first_of(message.provider_id, data.get("provider_id")),
        )
        if data.get("chosen") is True and data.get("role") in (None, DEFAULT_ROLE):
            self.is_chosen = True

    def set_model(self, role: Any, model: Any, provider: Any) -> None:
        """Record the model of a role; data of other types is ignored."""
        name = _as_text(model)
        if name:
            role_name = _as_text(role) or DEFAULT_ROLE
            self.models[role_name] = ModelName(name, _as_text(provider))


def _as_text(value: Any) -> str | None:
    """Return a string as it is, None for data of any other type."""
    return value if isinstance(value, str) else None


def _first_of(*values: Any) -> Any:
    """Return the first of *values* that is not empty, else None."""
    for value in values:
        if value:
            return value
    return None


def _source_of(part: Part) -> ContextSource:
    """Return what a part says of its source; values of other types are left out."""
    facts = part.input if isinstance(part.input, dict) else {}
    fitting: dict[str, Any] = {
        key: value
        for key, value in facts.items()
        if isinstance(value, _SOURCE.get(key, ()))
    }
    return ContextSource(**fitting, text=part.text, title=part.title)


def context_of(path: Sequence[Message], repair: str = "synthesise") -> Context:
    """Return the context that the messages of *path* make up.

    Raises `InvalidInputError`.
    """
    one_of(repair, REPAIRS, "repair")
    state = ContextState({message.id: place for place, message in enumerate(path)})
    for message in path:
        state.apply(message)

    messages = _without_unsent(state.shown[state.first :])
    messages = _with_edits(messages, state.edits)
    messages = _repair_calls(state, messages, repair)
    conversation = [item for item in messages if not item.is_system]
    return Context(
        tuple(_without_repetitions(conversation)),
        (*state.system, *state.sections.values()),
        state.summary,
        state.models,
        state.thinking,
        state.mode,
        tuple(state.rules.values()),
        state.session_init,
        tuple(state.problems),
        tuple([_source_of(part) for part in state.sources]),
        {kind: dict(last.data) for kind, last in state.events.items() if kind},
        tuple(messages),
    )


def _without_unsent(shown: Sequence[Message]) -> list[Message]:
    """Return *shown* without answers that are not sent again, and their results."""
    unsent: list[Message] = []
    sent: list[Message] = []
    conversation = [message for message in shown if not message.is_system]
    next_of = dict(
        zip([item.id for item in conversation], conversation[1:], strict=False)
    )
    for message in shown:
        following = next_of.get(message.id)
        is_marked = message.finish in _FAILED and message.data.get("unsent") is True
        # The message that continues an answer comes right after it.
        if is_marked and (
            following is None or following.data.get("customType") != _CONTINUES
        ):
            unsent.append(message)
        else:
            sent.append(message)
    if not unsent:
        return sent
    return _without_results_of(sent, _call_ids(unsent, "tool"))


# -- edits -------------------------------------------------------------------------


def _with_edits(
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
    edited = []
    for message in messages:
        parts = list(message.parts)
        if message.id in edits:
            parts = _edited_parts(message, edits[message.id])
        # The calls have the edited results, too.
        for index, part in enumerate(parts):
            if part.type == "tool" and part.call_id in results:
                parts[index] = _with_result_text(part, results[part.call_id])
        if parts or (message.id not in edits and not message.parts):
            edited.append(replace(message, parts=tuple(parts)))
    return edited


def _edited_parts(message: Message, parts: tuple[Part, ...]) -> list[Part]:
    """Return the parts of an edit; the text of a result stays one, of the same call."""
    for item in message.parts:
        if item.type == "tool-result":
            texts = [part for part in parts if part.type == "text"][:1]
            results = [replace(item, text=part.text) for part in texts]
            return [*results, *parts[len(texts) :]]
    return list(parts)


def _with_result_text(call: Part, result: tuple[Part, ...]) -> Part:
    """Return a call with the text of its *result*; without one it has none yet."""
    if not result:
        return replace(call, status="pending", outcome=None, text=None)
    texts = [part.text for part in result if part.type == "text"]
    return replace(call, text=texts[0] if texts else None)


# -- calls and results -----------------------------------------------------------


def _repair_calls(
    state: ContextState, messages: list[Message], repair: str
) -> list[Message]:
    """Return *messages* without unmatched calls and results."""
    while True:
        calls = _call_ids(messages, "tool")
        answered = _call_ids(messages, "tool-result")
        repaired = []
        for message in messages:
            loose = [
                part for part in message.parts if _is_dangling(calls, answered, part)
            ]
            for part in loose:
                state.problems.append(
                    f"message {message.seq}: {part.type} {part.call_id} is unmatched"
                )
            if not loose or repair == "none":
                repaired.append(message)
            elif repair != "drop":
                parts = _repaired_parts(message, loose, is_stripped=repair == "strip")
                if parts:
                    repaired.append(replace(message, parts=parts))

        # A dropped message may have held the calls of results that remain.
        if len(repaired) == len(messages):
            return repaired
        messages = repaired


def _repaired_parts(
    message: Message, loose: list[Part], *, is_stripped: bool
) -> tuple[Part, ...]:
    """Return the parts of a message without the *loose* ones.

    Unless *is_stripped*, a call that is one stays, with an error as its result.
    """
    unmatched = {id(part) for part in loose}
    parts = []
    for part in message.parts:
        if id(part) not in unmatched:
            parts.append(part)
        elif part.type == "tool" and not is_stripped:
            result = part.text or _NO_RESULT
            parts.append(
                replace(part, status="error", outcome="interrupted", text=result)
            )
    return tuple(parts)


def _is_dangling(calls: set[str | None], answered: set[str | None], item: Part) -> bool:
    """Return whether a part is a call without a result, or a result without a call.

    *calls* are the ids of all calls, *answered* those of all results.
    """
    if item.type == "tool":
        return item.status in _UNSETTLED and item.call_id not in answered
    return item.type == "tool-result" and item.call_id not in calls


def _call_ids(messages: Iterable[Message], kind: str) -> set[str | None]:
    """Return the ids of all calls, or of all results."""
    ids = {
        part.call_id
        for message in messages
        for part in message.parts
        if part.type == kind
    }
    return ids - {None, ""}


def _without_repetitions(messages: list[Message]) -> list[Message]:
    """Return messages without records of results that their calls already have."""
    settled = {
        part.call_id
        for message in messages
        for part in message.parts
        if part.type == "tool" and part.status in _SETTLED
    }
    return _without_results_of(messages, _call_ids(messages, "tool-result") & settled)


def _without_results_of(
    messages: list[Message], calls: Collection[str | None]
) -> list[Message]:
    """Return messages without the records of results of *calls*; none is left empty."""
    if not calls:
        return messages

    out = []
    for message in messages:
        parts = [
            part
            for part in message.parts
            if part.type != "tool-result" or part.call_id not in calls
        ]
        if len(parts) == len(message.parts):
            out.append(message)
        elif parts:
            out.append(replace(message, parts=tuple(parts)))
    return out
