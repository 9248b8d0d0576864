"""Drafts from JSON objects: those of the command line, which `model.json` makes.

    {"role": "user", "parts": [{"type": "text", "text": "Fix the off-by-one"}]}

Of an object that was read, what the store sets itself is left out: the place of a
message in its session is that of its copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model.draft import MessageDraft, PartDraft
from sessiondb.model.records import Tokens

#: Fields of a message and of a part that are read, and that a store sets itself.
_OF_STORED_MESSAGES = frozenset(
    "session_id seq parent_seq usage_key usage_name inherited purpose".split()
)
_OF_STORED_PARTS = frozenset({"idx", "inherited"})
#: Fields by which the messages of providers are known.
_OF_PROVIDERS = frozenset(
    "content tool_calls tool_call_id call_id output arguments choices".split()
)
_PROVIDER_HINT = (
    "append_openai and append_anthropic take the messages of providers as they are"
)


class PartObject(TypedDict, total=False):
    """A part as a JSON object; see `PartDraft`. ``data.input`` is ``input``, too."""

    type: Required[str]
    text: str | None
    tool: str | None
    call_id: str | None
    status: str | None
    outcome: str | None
    title: str | None
    input: Any
    data: Mapping[str, Any]
    id: str | None
    time_created: int | None
    time_updated: int | None
    time_started: int | None
    time_ended: int | None
    synthetic: bool


class MessageObject(TypedDict, total=False):
    """A message as a JSON object; see `MessageDraft`."""

    role: Required[str]
    parts: Sequence[PartObject | PartDraft | str]
    id: str | None
    kind: str | None
    turn_id: str | None
    agent: str | None
    provider_id: str | None
    model_id: str | None
    response_id: str | None
    cost: float | None
    tokens: Tokens | Mapping[str, int | None] | None
    finish: str | None
    error: Any
    time_created: int | None
    time_completed: int | None
    data: Mapping[str, Any]


def message_draft(value: Any) -> MessageDraft:
    """Return the draft that *value* is or describes; raises `InvalidInputError`."""
    if isinstance(value, MessageDraft):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"a message is made by user(), assistant(), …, not {abridged(value)}",
            hint=_PROVIDER_HINT if hasattr(value, "model_dump") else None,
        )

    fields = _stated_fields(value, MessageDraft, _OF_STORED_MESSAGES, "message")
    if "role" not in fields:
        raise InvalidInputError("a message needs a role", hint=_PROVIDER_HINT)
    parts = fields.pop("parts", ())
    if not isinstance(parts, list | tuple):
        raise InvalidInputError(f"parts must be a list, not {abridged(parts)}")
    return MessageDraft(**fields, parts=tuple([part_draft(part) for part in parts]))


def part_draft(value: Any) -> PartDraft:
    """Return the draft that *value* is or describes; a string is a text.

    Raises `InvalidInputError`.
    """
    if isinstance(value, PartDraft):
        return value
    if isinstance(value, str):
        return PartDraft("text", value)
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"a part is a string or made by text(), tool(), …, not {abridged(value)}"
        )

    fields = _stated_fields(value, PartDraft, _OF_STORED_PARTS, "part")
    if "type" not in fields:
        raise InvalidInputError("a part needs a type", hint=_PROVIDER_HINT)
    data = fields.get("data")
    if isinstance(data, Mapping) and "input" in data and "input" not in fields:
        fields["data"] = {key: data[key] for key in data if key != "input"}
        fields["input"] = data["input"]
    return PartDraft(**fields)


def _stated_fields(
    value: Mapping[Any, Any],
    draft: type[MessageDraft | PartDraft],
    ignored: frozenset[str],
    what: str,
) -> dict[str, Any]:
    """Return the fields of a draft that an object has; raises `InvalidInputError`."""
    fields = {name: value[name] for name in value if name not in ignored}
    unknown = fields.keys() - set(draft.__slots__)
    if unknown:
        name = abridged(min(unknown, key=str))
        is_of_provider = not _OF_PROVIDERS.isdisjoint(unknown)
        raise InvalidInputError(
            f"a {what} has no field {name}",
            hint=_PROVIDER_HINT if is_of_provider else None,
        )
    return fields
