"""Messages that were records of Goose, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from sessiondb.formats.content import embedded_text
from sessiondb.formats.goose import fields
from sessiondb.formats.kit.fields import (
    as_list,
    is_object,
    overlay,
    put_fields,
    value_at,
    without_keys,
)
from sessiondb.model import Message, Part

Record = dict[str, Any]


def record_of(message: Message, *, is_bare: bool = False) -> Record:
    """Return the record of *message*.

    With *is_bare* it comes from a log: what an export has besides is added.
    """
    others = deepcopy(dict(message.data))
    others.pop("row", None)
    absent = as_list(others.pop("absent", None))

    role = "user" if message.role == "tool" else message.role
    record: Record = {
        "id": message.id,
        "role": role,
        "created": message.time_created // 1000,
        "content": content_of(message.parts),
        "metadata": dict(fields.VISIBLE),
    }
    record |= others

    return record if is_bare else without_keys([str(key) for key in absent], record)


# -- content -----------------------------------------------------------------


def content_of(parts: Iterable[Part]) -> list[Any]:
    """Return parts as the blocks that they were."""
    blocks: list[Any] = []
    for part in parts:
        if part.type in ("text", "file") and "at" in part.data:
            if blocks:
                _put_item_of_part(blocks[-1], part)
        else:
            blocks.append(_block_of_part(part))

    return blocks


def _block_of_part(part: Part) -> Any:
    """Return the block that a part was; of some types the text is the part's."""
    match part.type:
        case "text":
            block: Record = {} if _is_untyped(part) else {"type": "text"}
            block["text"] = part.text
        case "reasoning":
            return _reasoning_block(part)
        case "tool":
            return _call_block(part)
        case "tool-result":
            return _result_block(part)
        case "file":
            block = {"type": "image", "data": embedded_text(part)}
            if part.data.get("mime") is not None:
                block["mimeType"] = part.data["mime"]
        case "custom":
            others = _data_of_block(part)
            return others if "type" in others else others.get("block")
        case _:
            block = {"type": part.type}
            if part.type in fields.TEXTS and part.text is not None:
                block["msg"] = part.text

    return overlay(block, _data_of_block(part))


def _is_untyped(part: Part) -> bool:
    """Return whether the block of a part had no type, as in the first releases."""
    return part.data.get("untyped") is True


def _data_of_block(part: Part) -> Record:
    """Return what a block has besides the values that columns and parts hold."""
    return deepcopy(without_keys(fields.OWN.get(part.type, ()), part.data))


def _reasoning_block(part: Part) -> Record:
    if is_object(part.data.get("redacted")):
        return {"type": "redactedThinking", **part.data["redacted"]}

    record: Record = {"type": "thinking"}
    if part.text is not None:
        key = "text" if part.data.get("type") == "reasoning" else "thinking"
        record[key] = part.text

    return overlay(record, _data_of_block(part))


def _call_block(part: Part) -> Record:
    if _is_untyped(part):
        record: Record = {}
        put_fields(record, fields.UNTYPED_CALL, part)
        arguments_of = record
    else:
        record = {"type": "toolRequest"}
        put_fields(record, fields.CALL, part)
        arguments_of = {"name": part.tool}

    if part.input_json is not None:
        arguments_of["arguments"] = part.input
    if arguments_of is not record:
        record["toolCall"] = {"value": arguments_of}

    return overlay(record, _data_of_block(part))


def _result_block(part: Part) -> Record:
    record: Record = {} if _is_untyped(part) else {"type": "toolResponse"}
    put_fields(record, fields.RESULT, part)
    record |= _data_of_block(part)
    if "at" in part.data:
        _put_item_of_part(record, part)

    return record


def _put_item_of_part(block: Record, part: Part) -> None:
    """Put into a result what became a part, where it was."""
    value = value_at(block, "toolResult", "value")
    items = as_list(value) + as_list(value_at(value, "content"))
    index = part.data.get("at")
    if type(index) is not int or not 0 <= index < len(items):
        return

    if part.type == "file":
        items[index]["data"] = embedded_text(part)
    else:
        items[index]["text"] = part.text
