"""Messages that were records of pi, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.formats.content import embedded_text
from sessiondb.formats.kit.blocks import block_of, text_block
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    is_object,
    overlay,
    put_fields,
    value_at,
    without_empty,
    without_keys,
    without_none,
)
from sessiondb.formats.pi import fields
from sessiondb.formats.pi.tree import MADE
from sessiondb.formats.pi.usage import put_tokens
from sessiondb.model import Message, Part

Record = dict[str, Any]
_FINISH: Mapping[str | None, str] = {
    finish: reason for reason, finish in fields.FINISH.items()
}


def record_of(message: Message, parent_id: str | None) -> Record:
    """Return the record of *message*, which continues the one with *parent_id*."""
    data = without_keys(fields.MARKS, message.data)

    record: Record = {"type": _type_of(message, data)}
    if record["type"] == "compaction":
        # The reader found it: the record names it in its own way, or not at all.
        data.pop("first_kept_id", None)
    if not message.id.startswith(MADE) and "id" not in data:
        record |= {"id": message.id, "parentId": parent_id}

    key, renamed = fields.RENAMED.get(record["type"], ("", ""))
    if renamed in data:
        data[key] = data.pop(renamed)

    _put_columns(record, message)
    return overlay(record, data)


def _type_of(message: Message, data: Record) -> str:
    """Return the type of a record; take one that the data has out of it."""
    if message.role != "event":
        return "message"
    record_type = as_string(data.pop("type", None))
    if record_type:
        return record_type
    # Messages of some roles are events of these kinds.
    if message.kind in ("custom", "custom_message"):
        return "message"
    return message.kind or "custom"


def _put_columns(record: Record, message: Message) -> None:
    """Write the columns and parts of *message* into its record, by the type of it."""
    match record["type"]:
        # One that is not of pi was kept in the data.
        case "message" if message.kind != "message":
            record["message"] = _inner_message(message)
        case "compaction" | "branch_summary":
            record |= _summary_of(message)
        case "custom_message":
            record |= _content_of(message.parts)
        case "context_edit":
            record |= without_empty({"replacement": _content_of(message.parts)})
        # A text with provider and model is in the data, as it was.
        case "model_change" if "model" not in message.data:
            put_fields(record, fields.MODEL_CHANGE, message)
        case "usage" | "model_usage":
            put_fields(record, fields.USAGE, message)
            _put_cost(record, message)


# -- messages ----------------------------------------------------------------


def _inner_message(message: Message) -> Record:
    role = message.role
    if role == "event":
        role = as_string(value_at(message.data, "message", "role"))
    match role:
        case "user":
            return {"role": "user", **_content_of(message.parts)}
        case "system":
            return _system_text(message)
        case "assistant":
            return _answer_record(message)
        case "tool":
            return _result_record(message)
        case "fileMention":
            return _mentioned_files(message)
        case "bashExecution" | "pythonExecution":
            (part,) = (item for item in message.parts if item.type == "tool")
            return without_none({**as_object(part.input), "output": part.text})
        case "branchSummary" | "compactionSummary":
            return _summary_of(message)
        case _:
            return _content_of(message.parts)


def _system_text(message: Message) -> Record:
    sections = {}
    content = []
    for part in message.parts:
        if "section" in part.data:
            sections[part.data["section"]] = part.text
        else:
            content.append(part)
    return {
        "role": "system",
        **_content_of(content),
        **without_empty({"sections": sections}),
    }


def _answer_record(message: Message) -> Record:
    record: Record = {"role": "assistant", **_content_of(message.parts)}
    put_fields(record, fields.ANSWER, message)
    put_tokens(record, message.tokens)

    ending = {
        "stopReason": _FINISH.get(message.finish),
        "errorMessage": value_at(message.error, "message"),
    }
    return record | without_none(ending)


def _result_record(message: Message) -> Record:
    record: Record = {"role": "toolResult", **_content_of(message.parts)}
    results = [part for part in message.parts if part.type == "tool-result"]
    put_fields(record, fields.RESULT, results[0])
    _put_cost(record, message)
    return record


def _mentioned_files(message: Message) -> Record:
    files = []
    for part in message.parts:
        if "added" not in part.data:
            file = {"path": part.data.get("filename"), "content": part.text}
            files.append(without_none(file) | without_keys(("filename",), part.data))
    return without_empty({"files": files})


def _summary_of(message: Message) -> Record:
    record = without_empty({"summary": message.text})
    _put_cost(record, message)
    return record


def _put_cost(record: Record, message: Message) -> None:
    put_fields(record, fields.PAID, message)
    put_tokens(record, message.tokens)


# -- content -----------------------------------------------------------------


def _content_of(parts: Iterable[Part]) -> Record:
    """Return the key with the content that parts were: a text, or a list of blocks.

    Empty if the content had another shape, which is in the data.
    """
    content = [part for part in parts if "added" not in part.data]
    if len(content) == 1 and content[0].data.get("plain"):
        return {"content": content[0].text or ""}
    blocks = [block_of_part(part) for part in content if not part.data.get("absent")]
    return {"content": blocks} if blocks else {}


def block_of_part(part: Part) -> Record:
    """Return a part as a block of a content."""
    if is_object(part.data.get("block")):
        return dict(part.data["block"])

    match part.type:
        case "text" | "tool-result" | "reasoning":
            return text_block(part, fields.OWN)
        case "tool":
            return block_of(part, "toolCall", fields.CALL)
        case "file":
            record: Record = {"type": "image"}
            if "data" not in part.data:
                record["data"] = embedded_text(part)
            record |= without_none({"mimeType": part.data.get("mime")})
            return overlay(record, without_keys(fields.OWN_OF_IMAGE, part.data))
        case _:
            return {"type": part.type, **part.data}
