"""Messages that were records of Codex, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.drafts import item_of
from sessiondb.formats.codex.sources import moved_texts
from sessiondb.formats.content import embedded_text, file_of
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    overlay,
    put_fields,
    structure,
    without_keys,
)
from sessiondb.formats.kit.texts import compact_json
from sessiondb.model import Message, Part

Record = dict[str, Any]
#: Keys of ``data`` that records do not have: which rollout a message is from.
_ROLLOUT_KEYS = ("copied_from", "segment")


def record_of(message: Message) -> Record:
    """Return the record that *message* was."""
    data = without_keys(_ROLLOUT_KEYS, message.data)
    if message.kind == "thinking_level_change":
        data.pop("level", None)

    item = item_of(data)
    content = _event_content(message) if item is None else _item_content(item, message)
    content |= moved_texts(message.parts)
    # The oldest records have no envelope.
    return overlay({"payload": content} if "payload" in data else content, data)


def _item_content(item: Record, message: Message) -> Record:
    """Return what parts took out of an item."""
    item_type = as_string(item.get("type"))
    if item_type in ("message", "agent_message"):
        return _said_content(message)
    if item_type == "reasoning":
        return _reasoning_content(message)
    if item_type in fields.RESULTS:
        return _result_content(message)
    if item_type in fields.CALLS:
        return _call_content(message, fields.CALLS[item_type])
    return {}


def _event_content(message: Message) -> Record:
    """Return what a part took out of an event: reasoning, or the summary."""
    if message.role == "assistant":
        return {part.data["of"]: part.text or "" for part in message.parts}

    if message.data.get("type") == "compacted":
        for part in message.parts:
            if part.type != "source" and "added" not in part.data:
                return {"message": part.text}
    return {}


def _said_content(message: Message) -> Record:
    # A source is in a text, too.
    parts = [part for part in message.parts if part.type != "source"]
    if not parts:
        return {}
    if parts[0].data.get("plain"):
        return {"content": parts[0].text or ""}
    return {"content": [_block_of_part(part) for part in parts]}


def _reasoning_content(message: Message) -> Record:
    content: Record = {}
    for part in message.parts:
        content.setdefault(part.data["of"], []).append(_block_of_part(part))
    return content


def _call_content(message: Message, shape: fields.CallShape) -> Record:
    content: Record = {}
    call, *files = message.parts
    if call.type != "tool":
        return content

    put_fields(content, shape.fields, call)
    if shape.json is not None and call.input_json is not None:
        call_input = call.input
        is_json = structure(call_input)
        content[shape.json] = compact_json(call_input) if is_json else call_input
    for file in files:
        content[file.data["of"]] = embedded_text(file)
    return content


def _result_content(message: Message) -> Record:
    content: Record = {}
    result, *more = message.parts
    put_fields(content, fields.RESULT, result)
    if "shape" in result.data:
        content["output"] = list(_output_blocks(result, more))
    elif not result.data.get("absent"):
        content["output"] = result.text or ""
    return content


def _output_blocks(result: Part, more: list[Part]) -> Iterator[Record]:
    """Yield the blocks of a result: its texts, joined by newlines, and the others."""
    text, position = result.text or "", 0
    others = iter(more)
    for length in result.data["shape"]:
        if length is None:
            yield _block_of_part(next(others))
        else:
            yield {"type": "input_text", "text": text[position : position + length]}
            position += length + 1


def _block_of_part(part: Part) -> Record:
    """Return the block that a part was; one without a value for it is as it was."""
    block = as_object(part.data.get("block"))
    if part.type == "custom":
        return block
    if part.type != "file":
        return {"text": part.text or "", **block}
    if "url" in part.data:
        return {"image_url": str(part.data["url"]), **block}

    mime, picture = part.data.get("mime", ""), file_of(part).data
    return {"image_url": f"data:{mime};base64,{picture}", **block}
