"""Messages that were records of Codex, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.drafts import item_of
from sessiondb.formats.codex.sources import texts_of_sources
from sessiondb.formats.content import embedded_text, file_of
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    overlay,
    put,
    structure,
    without,
)
from sessiondb.formats.kit.texts import compact
from sessiondb.model import Message, Part

Record = dict[str, Any]
#: Keys of ``data`` that records do not have: where a message is from.
_OWN = ("copied_from", "segment")


def record_of(message: Message) -> Record:
    """Return the record that *message* was."""
    rest = without(_OWN, message.data)
    if message.kind == "thinking_level_change":
        rest.pop("level", None)

    item = item_of(rest)
    content = _event_content(message) if item is None else _item_content(message, item)
    content |= texts_of_sources(message.parts)
    # The oldest records have no envelope.
    return overlay({"payload": content} if "payload" in rest else content, rest)


def _event_content(message: Message) -> Record:
    """Return what a part took out of an event: the summary of a compaction."""
    if message.role == "assistant":
        return {part.data["of"]: part.text or "" for part in message.parts}
    if message.data.get("type") == "compacted":
        for part in message.parts:
            if part.type != "source" and "added" not in part.data:
                return {"message": part.text}
    return {}


def _item_content(message: Message, item: Record) -> Record:
    """Return what the columns and parts of a message took out of its item."""
    kind = as_string(item.get("type"))
    if kind in ("message", "agent_message"):
        return _said_content(message)
    if kind == "reasoning":
        record: Record = {}
        for part in message.parts:
            record.setdefault(part.data["of"], []).append(_block_of(part))
        return record
    if kind in fields.RESULTS:
        return _result_content(message)
    if kind in fields.CALLS:
        return _call_content(message, fields.CALLS[kind])
    return {}


def _said_content(message: Message) -> Record:
    # A source is in a text, too.
    parts = [part for part in message.parts if part.type != "source"]
    if not parts:
        return {}
    if parts[0].data.get("plain"):
        return {"content": parts[0].text or ""}
    return {"content": [_block_of(part) for part in parts]}


def _call_content(message: Message, shape: fields.CallShape) -> Record:
    record: Record = {}
    call, *files = message.parts
    if call.type != "tool":
        return record

    put(record, shape.fields, call)
    if shape.json is not None and call.input_json is not None:
        arguments = call.input
        record[shape.json] = compact(arguments) if structure(arguments) else arguments
    for file in files:
        record[file.data["of"]] = embedded_text(file)
    return record


def _result_content(message: Message) -> Record:
    result, *files = message.parts
    record: Record = {}
    put(record, fields.RESULT, result)
    if "shape" in result.data:
        record["output"] = list(_output_blocks(result, iter(files)))
    elif not result.data.get("absent"):
        record["output"] = result.text or ""
    return record


def _output_blocks(result: Part, files: Iterator[Part]) -> Iterator[Record]:
    """Yield the blocks of a result: its texts, joined by newlines, and the others."""
    output, start = result.text or "", 0
    for length in result.data["shape"]:
        if length is None:
            yield _block_of(next(files))
        else:
            yield {"type": "input_text", "text": output[start : start + length]}
            start += length + 1


def _block_of(part: Part) -> Record:
    """Return the block that a part was; one without a value for it is as it was."""
    block = as_object(part.data.get("block"))
    if part.type == "custom":
        return block
    if part.type == "file":
        return {"image_url": _picture_url(part), **block}
    return {"text": part.text or "", **block}


def _picture_url(part: Part) -> str:
    if "url" in part.data:
        return str(part.data["url"])
    return f"data:{part.data.get('mime', '')};base64,{file_of(part).data}"
