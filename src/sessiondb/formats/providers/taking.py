"""Items and messages that a program has, checked, as drafts: one for each.

A caller's mistake is an `InvalidInputError` that names its place, such as
``items[2].role``; readers of files are more patient with what other programs wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.formats.kit.blocks import is_block
from sessiondb.formats.kit.fields import is_object, text
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.providers.anthropic import drafts as anthropic
from sessiondb.formats.providers.chat import drafts as chat
from sessiondb.formats.providers.objects import plain_value, records_of
from sessiondb.formats.providers.responses import drafts as responses
from sessiondb.formats.providers.responses import fields
from sessiondb.model import MessageDraft

Record = dict[str, Any]

#: The statuses of a response that has not ended.
_UNFINISHED = ("queued", "in_progress")
_OPENAI_ROLES = ("user", "assistant", "system", "developer")
_CHAT_ROLES = (*_OPENAI_ROLES, "tool")
_ANTHROPIC_ROLES = ("user", "assistant", "system")
#: The keys of items and of blocks whose values have to be texts, by their types.
_TEXTS_OF_ITEMS: Mapping[str, Collection[str]] = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "function_call_output": ("call_id",),
    "custom_tool_call_output": ("call_id",),
}
_TEXTS_OF_BLOCKS: Mapping[str, Collection[str]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "tool_use": ("id", "name"),
    "tool_result": ("tool_use_id",),
}


class PlacedDraft(NamedTuple):
    """A message, and what errors call the value that it is made of."""

    place: str
    draft: MessageDraft


def openai_drafts(items: Any) -> list[PlacedDraft]:
    """Return the messages that items, messages and responses of OpenAI are.

    Raises `InvalidInputError`.
    """
    return [
        _drafted(_openai_draft, record, f"items[{index}]")
        for index, record in enumerate(records_of(items, "items"))
    ]


def anthropic_drafts(messages: Any) -> list[PlacedDraft]:
    """Return the messages that those of Anthropic are; raises `InvalidInputError`."""
    return [
        _drafted(_anthropic_draft, record, f"messages[{index}]")
        for index, record in enumerate(records_of(messages, "messages"))
    ]


def anthropic_system(system: Any) -> PlacedDraft:
    """Return the event of a system text or its blocks; raises `InvalidInputError`."""
    record = {"content": plain_value(system, "system")}
    return _drafted(_system_draft, record, "system")


def _drafted(
    draft_of: Callable[[Record, str], MessageDraft], record: Record, place: str
) -> PlacedDraft:
    try:
        return PlacedDraft(place, draft_of(record, place))
    except OddRecordError as error:
        raise InvalidInputError(f"{place} {error}") from error


# -- OpenAI ------------------------------------------------------------------------


def _openai_draft(record: Record, place: str) -> MessageDraft:
    if "choices" in record:
        _check_completion(record, place)
        return chat.answer_draft(record)
    if "output" in record and "type" not in record:
        _check_response(record, place)
        return responses.answer_draft(record)
    if chat.is_chat(record):
        _check_chat_message(record, place)
        return chat.message_draft(record)

    _check_item(record, place)
    return responses.message_draft(record)


def _check_response(response: Record, place: str) -> None:
    if response.get("status") in _UNFINISHED:
        raise InvalidInputError(
            f"{place}.status is {response['status']}: the response has not ended"
        )
    output = response["output"]
    if type(output) is not list:
        raise _mistake(f"{place}.output", "a list", output)
    for index, item in enumerate(output):
        if not is_object(item):
            raise _mistake(f"{place}.output[{index}]", "an object", item)
        _check_item(item, f"{place}.output[{index}]")


def _check_item(item: Record, place: str) -> None:
    kind = item.get("type", "message" if "role" in item else None)
    if not usable_id(kind):
        raise _mistake(f"{place}.type", "the type of an item", kind)
    if kind == "message":
        _check_role(item, place, _OPENAI_ROLES)
        _check_content(item.get("content"), f"{place}.content")
    for key in _TEXTS_OF_ITEMS.get(str(kind), ()):
        _check_text(item, key, place)
    is_call = str(kind).endswith(fields.CALLS) and "name" in item
    if is_call and not item["name"]:
        raise _mistake(f"{place}.name", "the name of a tool", item["name"])


def _check_completion(completion: Record, place: str) -> None:
    choices = completion["choices"]
    if type(choices) is not list or not choices or not is_object(choices[0]):
        raise _mistake(f"{place}.choices", "a list with a choice", choices)
    message = choices[0].get("message")
    if not is_object(message):
        raise _mistake(f"{place}.choices[0].message", "an object", message)
    _check_chat_message(message, f"{place}.choices[0].message")


def _check_chat_message(message: Record, place: str) -> None:
    _check_role(message, place, _CHAT_ROLES)
    content = message.get("content")
    if content is not None or message["role"] != "assistant":
        _check_content(content, f"{place}.content")
    if message["role"] == "tool":
        _check_text(message, "tool_call_id", place)
    calls = message.get("tool_calls")
    if calls is None:
        return
    if type(calls) is not list:
        raise _mistake(f"{place}.tool_calls", "a list", calls)
    for index, call in enumerate(calls):
        call_place = f"{place}.tool_calls[{index}]"
        if not chat.is_call(call):
            raise _mistake(
                call_place, "a call with a name and arguments as a text", call
            )
        _check_text(call, "id", call_place)


# -- Anthropic ---------------------------------------------------------------------


def _anthropic_draft(message: Record, place: str) -> MessageDraft:
    _check_role(message, place, _ANTHROPIC_ROLES)
    content = message.get("content")
    _check_content(content, f"{place}.content")
    if isinstance(content, list):
        for index, block in enumerate(content):
            _check_block(block, f"{place}.content[{index}]")
    return anthropic.message_draft(message)


def _system_draft(record: Record, place: str) -> MessageDraft:
    content = record["content"]
    _check_content(content, place)
    if isinstance(content, list):
        for index, block in enumerate(content):
            if block["type"] != "text":
                raise _mistake(f"{place}[{index}].type", "text", block["type"])
            _check_block(block, f"{place}[{index}]")
    return anthropic.system_draft(content)


def _check_block(block: Record, place: str) -> None:
    kind = block["type"]
    for key in _TEXTS_OF_BLOCKS.get(kind, ()):
        _check_text(block, key, place)
    if kind == "tool_use":
        if not block["name"]:
            raise _mistake(f"{place}.name", "the name of a tool", block["name"])
        if not is_object(block.get("input")):
            raise _mistake(f"{place}.input", "an object", block.get("input"))
    if kind in ("image", "document") and not is_object(block.get("source")):
        raise _mistake(f"{place}.source", "an object", block.get("source"))


# -- values --------------------------------------------------------------------------


def _check_role(record: Record, place: str, roles: Collection[str]) -> None:
    role = record.get("role")
    if role not in roles:
        names = ", ".join(roles)
        raise InvalidInputError(f"{place}.role is one of {names}, not {abridged(role)}")


def _check_content(content: Any, place: str) -> None:
    if text(content):
        return
    if type(content) is not list:
        raise _mistake(place, "a text or a list of blocks", content)
    for index, block in enumerate(content):
        if not is_block(block):
            raise _mistake(f"{place}[{index}]", "an object with a type", block)


def _check_text(record: Record, key: str, place: str) -> None:
    value = record.get(key)
    if not text(value):
        raise _mistake(f"{place}.{key}", "a text", value)


def _mistake(place: str, wanted: str, value: Any) -> InvalidInputError:
    return InvalidInputError(f"{place} must be {wanted}, not {abridged(value)}")
