"""Messages that were records of Codex, as the same records again; by `fields`, too.

What is left of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.drafts import item_of
from sessiondb.formats.content import file_of
from sessiondb.formats.kit.fields import (
    as_text,
    overlay,
    put,
    structure,
    within,
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
    made = _event(message) if item is None else _item(message, item)
    if "payload" not in rest:
        return overlay(made, rest)

    return overlay({"payload": made}, rest)


def _event(message: Message) -> Record:
    """Return what a column took out of an event: the summary of a compaction."""
    said = next((p for p in message.parts if not p.data.get("added")), None)
    is_summary = message.data.get("type") == "compacted" and said is not None
    return {"message": said.text or ""} if said is not None and is_summary else {}


def _item(message: Message, item: Record) -> Record:
    kind = as_text(item.get("type")) or ""
    if kind in fields.CALLS:
        return _call(message, fields.CALLS[kind])

    make = _ITEMS.get(kind)
    return {} if make is None else make(message)


def _content(message: Message) -> Record:
    if not message.parts:
        return {}

    first = message.parts[0]
    if first.data.get("plain"):
        return {"content": first.text or ""}

    return {"content": [_block(part) for part in message.parts]}


def _reasoning(message: Message) -> Record:
    record: Record = {}
    for part in message.parts:
        record.setdefault(part.data["of"], []).append(_block(part))

    return record


def _call(message: Message, shape: fields.CallShape) -> Record:
    part = message.parts[0]
    record: Record = {}
    if part.type != "tool":
        return record

    put(record, fields.CALL, part)
    if shape.tool is not None:
        del record["name"]

    if part.input_json is not None:
        given = part.input
        as_string = shape.is_json and structure(given)
        record[shape.input] = compact(given) if as_string else given

    for file in message.parts[1:]:
        record[file.data["of"]] = file_of(file).data

    return record


def _result(message: Message) -> Record:
    result, *more = message.parts
    record: Record = {}
    put(record, fields.RESULT, result)

    if "shape" in result.data:
        record["output"] = list(_pieces(result, iter(more)))
    elif not result.data.get("absent"):
        record["output"] = result.text or ""

    return record


def _pieces(result: Part, more: Iterator[Part]) -> Iterator[Record]:
    """Yield the blocks of a result: its texts, joined by newlines, and the others."""
    said, place = result.text or "", 0
    for length in result.data["shape"]:
        if length is None:
            yield _block(next(more))
        else:
            yield {"type": "input_text", "text": said[place : place + length]}
            place += length + 1


_ITEMS: Mapping[str, Callable[[Message], Record]] = {
    "message": _content,
    "agent_message": _content,
    "reasoning": _reasoning,
    "tool_search_output": _result,
    **dict.fromkeys(fields.RESULTS, _result),
}


def _block(part: Part) -> Record:
    record: Record = {}
    if part.type in ("text", "reasoning"):
        record["text"] = part.text or ""
    elif part.type == "file":
        record["image_url"] = _url(part)

    return overlay(record, within(part.data, "block") or {})


def _url(part: Part) -> str | None:
    if "url" in part.data:
        return as_text(part.data["url"])

    return f"data:{part.data.get('mime', '')};base64,{file_of(part).data}"
