"""Messages as items of the Responses API: those that were items as they were.

A message of any other origin becomes items that the API accepts: texts, pictures and
files in a message, a call and its result by themselves. Reasoning of others is left
out, because the API refuses any that it did not make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sessiondb.formats.content import address_of
from sessiondb.formats.kit.fields import (
    as_object,
    put_fields,
    structure,
    without_none,
)
from sessiondb.formats.kit.texts import compact_json
from sessiondb.formats.providers.conversation import (
    Answered,
    Said,
    SentFile,
    call_id_of,
    conversation_of,
    is_served,
    object_input,
    openai_role,
    texts_of,
)
from sessiondb.formats.providers.responses import fields
from sessiondb.formats.providers.rest import (
    BLOCK,
    ITEM,
    begins_item,
    items_in,
    rest_of,
)
from sessiondb.model import Message, Part

Record = dict[str, Any]


def items_of(
    path: Sequence[Message], system: Iterable[str], summary: str | None
) -> list[Any]:
    """Return the items of a conversation, after *system* texts and the *summary*."""
    items = [_message_item("system", [_text_block(text)]) for text in system]
    if summary:
        items.append(_message_item("user", [_text_block(summary)]))
    for entry in conversation_of(path):
        if isinstance(entry, Answered):
            items.append(_result_item(entry))
        else:
            items += _items_of_said(entry)
    return items


def _items_of_said(statement: Said) -> list[Record]:
    items: list[Record] = []
    blocks: list[Record] = []
    for group in items_in(statement.parts, fields.API):
        part = group[0]
        is_block = statement.role != "assistant" and not begins_item(part, fields.API)
        if is_block:
            blocks += _blocks_of_part(part)
            continue
        if blocks:
            items.append(_message_item(openai_role(statement), blocks))
            blocks = []
        if begins_item(part, fields.API):
            items.append(item_of(group))
        else:
            items += _items_of_answer(part)
    if blocks:
        items.append(_message_item(openai_role(statement), blocks))
    return items


def _message_item(role: str, blocks: list[Record]) -> Record:
    return {"type": "message", "role": role, "content": blocks}


def _text_block(text: str) -> Record:
    return {"type": "input_text", "text": text}


def _blocks_of_part(part: Part) -> list[Record]:
    """Return a part of a prompt as a block of content; none for one without content."""
    if part.type == "file":
        return [_file_block(SentFile(part))]
    return [_text_block(text) for text in texts_of([part])]


def _file_block(file: SentFile) -> Record:
    if not file.is_sendable:
        return _text_block(file.description)
    if file.is_image:
        return {"type": "input_image", "detail": "auto", "image_url": file.data_url}
    block: Record = {"type": "input_file"}
    if file.content is None:
        return block | {"file_url": file.url}
    return block | {"filename": file.name or "file", "file_data": file.data_url}


def _items_of_answer(part: Part) -> list[Record]:
    """Return what a model of any provider said."""
    if part.type == "tool":
        if is_served(part):
            return []
        return [
            {
                "type": "function_call",
                "call_id": call_id_of(part),
                "name": part.tool,
                "arguments": compact_json(object_input(part)),
            }
        ]

    # Blocks of an answer need the id that the API gave to it, a text does not.
    is_file = part.type == "file"
    texts = [SentFile(part).description] if is_file else texts_of([part])
    return [{"type": "message", "role": "assistant", "content": text} for text in texts]


def _result_item(answered: Answered) -> Record:
    record = answered.record
    if record is not None and begins_item(record, fields.API):
        return item_of([record, *answered.more])

    call = answered.call
    leftover = {} if call is None else as_object(rest_of(call, fields.API))
    call_type = as_object(leftover.get(ITEM)).get("type", "function_call")
    blocks = [block for part in answered.more for block in _blocks_of_part(part)]
    texts = [_text_block(answered.text)] if answered.text else []
    return {
        "type": f"{call_type}_output",
        "call_id": answered.call_id,
        "output": [*texts, *blocks] if blocks else answered.text,
    }


# -- items as they were ------------------------------------------------------------


def item_of(parts: Sequence[Part]) -> Record:
    """Return the item that *parts* were."""
    part = parts[0]
    leftover = as_object(rest_of(part, fields.API))
    item = dict(as_object(leftover.get(ITEM)))
    if part.type == "tool":
        return _call_item(part, leftover) | item
    if part.type == "tool-result":
        return _output_item(parts, leftover) | item
    if item.get("type") == "reasoning":
        return _reasoning_lists(parts) | item
    if part.type == "custom" and BLOCK not in leftover:
        return item
    return {"content": _content_of(parts)} | item


def _content_of(parts: Sequence[Part]) -> Any:
    if BLOCK not in as_object(rest_of(parts[0], fields.API)):
        return parts[0].text or ""
    return [_block_of(part) for part in parts]


def _block_of(part: Part) -> Record:
    """Return the block of content that a part was."""
    block = dict(as_object(as_object(rest_of(part, fields.API)).get(BLOCK)))
    table = fields.TEXTS.get(block.get("type", ""))
    if table is not None:
        put_fields(block, table[1], part)
    if part.type == "file":
        put_fields(block, fields.FILE, _FileName(part))
        for key in fields.ADDRESSES:
            if key in block and block[key] is None:
                block[key] = address_of(part)
                break
    return block


class _FileName:
    """The name of a file, as `put_fields` takes it."""

    def __init__(self, part: Part) -> None:
        self.filename = part.data.get("filename")


def _reasoning_lists(parts: Sequence[Part]) -> Record:
    lists: Record = {}
    for part in parts:
        block = _block_of(part)
        for key, block_type in fields.THOUGHTS.items():
            if block.get("type") == block_type:
                lists.setdefault(key, []).append(block)
    return lists


def _call_item(call: Part, leftover: Record) -> Record:
    item: Record = {}
    put_fields(item, fields.SERVED if leftover.get("served") else fields.CALL, call)
    if leftover.get("unnamed"):
        item.pop("name", None)
    if "result" in leftover:
        item[leftover["result"]] = call.text
    if call.input_json is None:
        return item

    arguments = call.input
    key = leftover.get("value") or leftover.get("text") or fields.ARGUMENTS[0]
    is_text = "value" not in leftover
    item[key] = (
        compact_json(arguments) if is_text and structure(arguments) else arguments
    )
    return item


def _output_item(parts: Sequence[Part], leftover: Record) -> Record:
    record, *more = parts
    item: Record = {}
    table = fields.SERVED_RESULT if leftover.get("served") else fields.RESULT
    put_fields(item, table, record)
    if BLOCK in leftover or leftover.get("files"):
        blocks = [_block_of(part) for part in more]
        if BLOCK in leftover:
            blocks.insert(0, _block_of(record))
        item["output"] = blocks[0] if leftover.get("single") else blocks
    else:
        item["output"] = record.text or ""
    return without_none(item)
