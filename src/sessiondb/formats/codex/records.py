"""Messages that were records of Codex, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.drafts import item_of
from sessiondb.formats.codex.given import texts_in
from sessiondb.formats.content import embedded_text, file_of
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
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
    make = _event if item is None else _ITEMS.get(as_text(item.get("type")), _nothing)
    made = make(message) | texts_in(message.parts)
    # The oldest records have no envelope.
    return overlay({"payload": made} if "payload" in rest else made, rest)


def _nothing(_: Message) -> Record:
    return {}


def _event(message: Message) -> Record:
    """Return what a part took out of an event: the summary of a compaction."""
    if message.role == "assistant":
        return {part.data["of"]: _text(part) for part in message.parts}
    if message.data.get("type") != "compacted":
        return {}

    said = [part.text for part in _content(message) if "added" not in part.data]
    return {"message": said[0]} if said else {}


def _content(message: Message) -> list[Part]:
    """Return the parts of a message that are content: a source is in a text, too."""
    return [part for part in message.parts if part.type != "source"]


def _said(message: Message) -> Record:
    parts = _content(message)
    if not parts:
        return {}
    if parts[0].data.get("plain"):
        return {"content": _text(parts[0])}

    return {"content": list(map(_block, parts))}


def _reasoning(message: Message) -> Record:
    record: Record = {}
    for part in message.parts:
        record.setdefault(part.data["of"], []).append(_block(part))

    return record


def _call(shape: fields.CallShape, message: Message) -> Record:
    record: Record = {}
    part, *files = message.parts
    if part.type != "tool":
        return record

    put(record, shape.fields, part)
    if shape.json is not None and part.input_json is not None:
        given = part.input
        record[shape.json] = compact(given) if structure(given) else given

    for file in files:
        record[file.data["of"]] = embedded_text(file)

    return record


def _result(message: Message) -> Record:
    result, *more = message.parts
    record: Record = {}
    put(record, fields.RESULT, result)

    if "shape" in result.data:
        record["output"] = list(_pieces(result, iter(more)))
    elif not result.data.get("absent"):
        record["output"] = _text(result)

    return record


def _pieces(result: Part, more: Iterator[Part]) -> Iterator[Record]:
    """Yield the blocks of a result: its texts, joined by newlines, and the others."""
    said, place = _text(result), 0
    for length in result.data["shape"]:
        if length is None:
            yield _block(next(more))
        else:
            yield {"type": "input_text", "text": said[place : place + length]}
            place += length + 1


_ITEMS: Mapping[str | None, Callable[[Message], Record]] = {
    "message": _said,
    "agent_message": _said,
    "reasoning": _reasoning,
    **dict.fromkeys(fields.RESULTS, _result),
    **{name: partial(_call, shape) for name, shape in fields.CALLS.items()},
}


def _block(part: Part) -> Record:
    """Return the block that a part was; one without a value for it is as it was."""
    block = as_object(part.data.get("block"))
    if part.type == "custom":
        return block

    is_picture = part.type == "file"
    value = {"image_url": _url(part)} if is_picture else {"text": _text(part)}
    return {**value, **block}


def _text(part: Part) -> str:
    return part.text or ""


def _url(part: Part) -> str:
    if "url" in part.data:
        return str(part.data["url"])

    return f"data:{part.data.get('mime', '')};base64,{file_of(part).data}"
