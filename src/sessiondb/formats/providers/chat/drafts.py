"""Messages of Chat Completions to drafts: known fields become columns, the rest `data`.

These functions take their message apart, so it must not be used afterwards. A message
has all calls of an answer; the result of each is a message of its own.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.content import file_at
from sessiondb.formats.kit.fields import (
    Fields,
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    clean_text,
    fitting,
    is_object,
    objects_in,
    take_fields,
    text,
    value_at,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.texts import take_json
from sessiondb.formats.kit.usage import take_usage
from sessiondb.formats.providers.conversation import CHAT
from sessiondb.formats.providers.rest import block_part, check_parts, with_item
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.model.aliases import FINISH, ROLE

Record = dict[str, Any]
Parts = tuple[PartDraft, ...]

#: Keys that files have here and blocks do not.
_OF_FILES = frozenset({"url", "mime", "content", "filename"})
#: The column of the text of a content or of a block.
TEXT: Fields = {"text": ("text", text)}
CALL: Fields = {
    "id": ("call_id", clean_text),
    "function": {"name": ("tool", clean_name)},
    "custom": {"name": ("tool", clean_name)},
}
RESULT: Fields = {"tool_call_id": ("call_id", clean_text)}
#: The types of calls, and the key of their arguments.
ARGUMENTS = {"function": "arguments", "custom": "input"}
#: Texts of an answer beside its content, and the types of their parts. The reasoning is
#: that of servers beside OpenAI.
BESIDE = {"reasoning_content": "reasoning", "reasoning": "reasoning", "refusal": "text"}
#: Keys of a message that a completion has and a request has not.
_RETURNED = frozenset({"annotations"})
#: Blocks that items do not have.
_BLOCKS = ("text", "image_url", "input_audio", "file")
#: Keys of messages that no item has.
_OF_CHAT = frozenset({*BESIDE, "tool_calls", "function_call", "name", "audio"})


def is_chat(message: Record) -> bool:
    """Return whether only Chat Completions has such a message.

    A message that the Responses API takes, too, is one of its items.
    """
    if message.get("role") in ("tool", "function"):
        return True
    if "type" in message:
        return False
    return not _OF_CHAT.isdisjoint(message) or any(
        block.get("type") in _BLOCKS for block in objects_in(message.get("content"))
    )


def message_draft(message: Record) -> MessageDraft:
    """Return the message that one of Chat Completions is.

    Raises `OddRecordError` for one that cannot be stored.
    """
    role = ROLE[message["role"]]
    parts = _result_parts(message) if role == "tool" else _said_parts(message)
    check_parts(parts)
    return MessageDraft(role, parts)


def _said_parts(message: Record) -> Parts:
    parts = [
        *_take_texts_beside(message, "reasoning"),
        *_take_content(message),
        *_take_texts_beside(message, "text"),
        *_take_calls(message),
    ]
    return with_item(parts or [PartDraft("custom")], CHAT, message)


def answer_draft(completion: Record) -> MessageDraft:
    """Return the answer that a completion is, the first if it has several choices.

    Raises `OddRecordError` for one that cannot be stored.
    """
    choice = objects_in(completion.get("choices"))[0]
    draft = message_draft(_message_to_send(as_object(choice.get("message"))))
    reason = as_text(choice.get("finish_reason"))
    finish = None if reason is None else FINISH.get(reason, "other")
    return MessageDraft(
        draft.role,
        draft.parts,
        response_id=fitting(completion.get("id"), clean_name),
        model_id=fitting(completion.get("model"), clean_name),
        tokens=take_usage({"usage": completion.get("usage")}),
        finish=finish,
        data={"stop_reason": reason} if finish == "other" else {},
    )


def _message_to_send(message: Record) -> Record:
    """Return the message of a completion as a request may have it.

    An API that returns more, and null for what there is not, need not take that again.
    """
    sent = without_keys(_RETURNED, without_none(message))
    if is_object(sent.get("audio")):
        sent["audio"] = {"id": sent["audio"].get("id")}
    if "tool_calls" in sent:
        # A stream counts them.
        sent["tool_calls"] = [
            without_keys({"index"}, call) for call in sent["tool_calls"]
        ]
    return sent


def _take_content(message: Record) -> Parts:
    content = message.get("content")
    if text(content):
        del message["content"]
        return (PartDraft("text", content),)

    blocks = as_list(content)
    if not blocks or not all(is_object(block) for block in blocks):
        return ()
    del message["content"]
    return tuple(block_part(_part_of_block(block), CHAT) for block in blocks)


def _part_of_block(block: Record) -> PartDraft:
    if text(block.get("text")):
        return PartDraft("text", **take_fields(block, TEXT), data=block)

    # A key of the block would be mistaken for ours when it is written again.
    if not _OF_FILES.isdisjoint(block):
        return PartDraft("custom", data=block)
    for holder, key in (("image_url", "url"), ("file", "file_data")):
        url = as_string(value_at(block, holder, key))
        if url:
            # None is the place of the value that the part has.
            block[holder][key] = None
            file = file_at(url)
            name = value_at(block, holder, "filename")
            if clean_name(name):
                file["filename"] = name
            return PartDraft("file", data={**block, **file})
    return PartDraft("custom", data=block)


def _take_texts_beside(message: Record, part_type: str) -> list[PartDraft]:
    parts = []
    for key, type_ in BESIDE.items():
        if type_ == part_type and text(message.get(key)):
            leftover = {CHAT: {"beside": key}}
            parts.append(PartDraft(type_, message.pop(key), data=leftover))
    return parts


def _take_calls(message: Record) -> list[PartDraft]:
    calls = message.get("tool_calls")
    if not calls or not all(is_call(call) for call in as_list(calls)):
        return []

    parts = []
    for call in message.pop("tool_calls"):
        kind = call.get("type", "function")
        holder, key = call[kind], ARGUMENTS[kind]
        columns = take_fields(call, CALL)
        arguments = take_json(holder, key)
        if arguments == holder.get(key):
            del holder[key]
        # It is removed if it has become empty.
        call[kind] = holder
        part = PartDraft(
            "tool", **columns, input=arguments, status="pending", data=call
        )
        parts.append(block_part(part, CHAT))
    return parts


def is_call(call: Any) -> bool:
    """Return whether a value is a call that can be stored as one."""
    if not is_object(call):
        return False
    kind = call.get("type", "function")
    holder = call.get(kind)
    return (
        kind in ARGUMENTS
        and is_object(holder)
        and clean_name(holder.get("name"))
        and text(holder.get(ARGUMENTS[kind]))
    )


def _result_parts(message: Record) -> Parts:
    parts = list(_take_content(message))
    columns = take_fields(message, RESULT)
    leftover: Record = {}
    first_text = ""
    if parts and parts[0].type == "text":
        first_text = parts[0].text or ""
        leftover = as_object(parts[0].data.get(CHAT))
        del parts[0]
    result = PartDraft("tool-result", first_text, **columns, data={CHAT: leftover})
    return with_item([result, *parts], CHAT, message)
