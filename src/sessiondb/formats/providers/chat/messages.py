"""Messages for Chat Completions: those that came from it as they were.

An answer is one message with all of its calls, and their results follow it. Reasoning
is left out unless it came from this API: servers beside OpenAI have it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sessiondb.formats.content import address_of
from sessiondb.formats.kit.fields import as_object, put_fields, structure
from sessiondb.formats.kit.texts import compact_json
from sessiondb.formats.providers.chat import drafts
from sessiondb.formats.providers.conversation import (
    CHAT,
    Answered,
    Entry,
    Said,
    SentFile,
    call_id_of,
    conversation_of,
    is_served,
    object_input,
    openai_role,
    texts_of,
    with_results_next,
)
from sessiondb.formats.providers.rest import BLOCK, ITEM, rest_of
from sessiondb.model import Message, Part

Record = dict[str, Any]


def messages_of(
    path: Sequence[Message], system: Iterable[str], summary: str | None
) -> list[Any]:
    """Return the messages of a conversation, after *system* texts and the *summary*."""
    messages: list[Any] = [{"role": "system", "content": text} for text in system]
    if summary:
        messages.append({"role": "user", "content": summary})
    for entry in _with_joined_answers(with_results_next(conversation_of(path))):
        if isinstance(entry, Answered):
            messages.append(_result_message(entry))
            continue
        message = _message_of(entry)
        if message is not None:
            messages.append(message)
    return messages


def _with_joined_answers(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries with the calls of other APIs in the message that precedes them."""
    joined: list[Entry] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if isinstance(entry, Said) and isinstance(last, Said):
            has_calls = any(
                part.type == "tool" and rest_of(part, CHAT) is None
                for part in entry.parts
            )
            if has_calls and entry.role == last.role == "assistant":
                last.parts += entry.parts
                continue
        joined.append(entry)
    return joined


def _message_of(statement: Said) -> Record | None:
    """Return what was said as a message; None if nothing of it can be sent."""
    leftover: Record = {}
    content: list[Any] = []
    calls: list[Record] = []
    for part in statement.parts:
        of_part = as_object(rest_of(part, CHAT))
        leftover |= as_object(of_part.get(ITEM))
        if "beside" in of_part:
            leftover[of_part["beside"]] = part.text
        elif part.type == "tool" and statement.role == "assistant":
            if not is_served(part):
                calls.append(_call_of(part))
        elif BLOCK in of_part:
            content.append(_block_of(part))
        else:
            content += _content_of_part(statement.role, part)

    message: Record = {"role": openai_role(statement)}
    if content:
        message["content"] = _joined(content)
    if calls:
        message["tool_calls"] = calls
    message |= leftover
    return message if len(message) > 1 else None


def _joined(content: list[Any]) -> Any:
    """Return a content: a text if it is nothing else, else a list of blocks."""
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return [
        {"type": "text", "text": item} if isinstance(item, str) else item
        for item in content
    ]


def _content_of_part(role: str, part: Part) -> list[Any]:
    """Return a part as a text or a block; nothing for one that cannot be sent."""
    if part.type == "file":
        # Only a prompt can have a file.
        file = SentFile(part)
        return [_file_block(file) if role == "user" else file.description]
    if part.type == "text" and rest_of(part, CHAT) is not None:
        return [part.text or ""]
    return list(texts_of([part]))


def _file_block(file: SentFile) -> Any:
    if file.is_image and file.is_sendable:
        return {"type": "image_url", "image_url": {"url": file.data_url}}
    # Other files have no address here.
    if file.content is None:
        return file.description
    content = {"filename": file.name or "file", "file_data": file.data_url}
    return {"type": "file", "file": content}


def _call_of(part: Part) -> Record:
    leftover = rest_of(part, CHAT)
    if leftover is None:
        called = {"name": part.tool, "arguments": compact_json(object_input(part))}
        return {"id": call_id_of(part), "type": "function", "function": called}

    call = {**as_object(leftover.get(BLOCK))}
    kind = call.get("type", "function")
    columns: Record = {}
    put_fields(columns, {key: drafts.CALL[key] for key in ("id", kind)}, part)
    key = drafts.ARGUMENTS[kind]
    arguments = part.input
    columns[kind][key] = compact_json(arguments) if structure(arguments) else arguments
    return {**columns, **call, kind: columns[kind] | as_object(call.get(kind))}


def _block_of(part: Part) -> Record:
    """Return the block of content that a part was."""
    block = dict(as_object(as_object(rest_of(part, CHAT)).get(BLOCK)))
    if part.type == "text":
        put_fields(block, drafts.TEXT, part)
    if part.type == "file":
        for holder, key in (("image_url", "url"), ("file", "file_data")):
            inner = block.get(holder)
            if isinstance(inner, dict) and key in inner:
                block[holder] = {**inner, key: inner[key] or address_of(part)}
    return block


def _result_message(answered: Answered) -> Record:
    record = answered.record
    leftover = {} if record is None else as_object(rest_of(record, CHAT))
    message: Record = {"role": "tool", "tool_call_id": answered.call_id}
    if record is not None and BLOCK in leftover:
        first = {"text": record.text or ""} | as_object(leftover.get(BLOCK))
        message["content"] = [first, *(_block_of(part) for part in answered.more)]
    else:
        # A result is a text here: of a file its name alone.
        more = [
            SentFile(part).description if part.type == "file" else part.text
            for part in answered.more
        ]
        message["content"] = "\n".join(filter(None, [answered.text, *more]))
    return message | as_object(leftover.get(ITEM))
