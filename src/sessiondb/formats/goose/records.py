"""Messages that were records of Goose, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

from sessiondb.formats.content import embedded_text
from sessiondb.formats.goose import fields
from sessiondb.formats.kit.fields import (
    as_list,
    is_object,
    overlay,
    put,
    within,
    without,
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

    return record if is_bare else without([str(key) for key in absent], record)


# -- content -----------------------------------------------------------------


def content_of(parts: Iterable[Part]) -> list[Any]:
    """Return parts as the blocks that they were."""
    blocks: list[Any] = []
    for part in parts:
        if part.type in ("text", "file") and "at" in part.data:
            if blocks:
                _put_item(blocks[-1], part)
        else:
            make = _BLOCKS.get(part.type, _other)
            blocks.append(make(part))

    return blocks


def _rest(part: Part) -> Record:
    return deepcopy(without(fields.OWN.get(part.type, ()), part.data))


def _text(part: Part) -> Record:
    typed = {} if part.data.get("untyped") is True else {"type": "text"}
    return overlay({**typed, "text": part.text}, _rest(part))


def _thinking(part: Part) -> Record:
    if is_object(part.data.get("redacted")):
        return {"type": "redactedThinking", **part.data["redacted"]}

    record: Record = {"type": "thinking"}
    if part.text is not None:
        key = "text" if part.data.get("type") == "reasoning" else "thinking"
        record[key] = part.text

    return overlay(record, _rest(part))


def _call(part: Part) -> Record:
    if part.data.get("untyped") is True:
        record: Record = {}
        put(record, fields.UNTYPED_CALL, part)
        arguments_of = record
    else:
        record = {"type": "toolRequest"}
        put(record, fields.CALL, part)
        arguments_of = {"name": part.tool}

    if part.input_json is not None:
        arguments_of["arguments"] = part.input
    if arguments_of is not record:
        record["toolCall"] = {"value": arguments_of}

    return overlay(record, _rest(part))


def _result(part: Part) -> Record:
    record: Record = (
        {} if part.data.get("untyped") is True else {"type": "toolResponse"}
    )
    put(record, fields.RESULT, part)
    record |= _rest(part)
    if "at" in part.data:
        _put_item(record, part)

    return record


def _put_item(block: Record, part: Part) -> None:
    """Put into a result what became a part, where it was."""
    value = within(block, "toolResult", "value")
    items = as_list(value) + as_list(within(value, "content"))
    index = part.data.get("at")
    if type(index) is not int or not 0 <= index < len(items):
        return

    if part.type == "file":
        items[index]["data"] = embedded_text(part)
    else:
        items[index]["text"] = part.text


def _image(part: Part) -> Record:
    record: Record = {"type": "image", "data": embedded_text(part)}
    if part.data.get("mime") is not None:
        record["mimeType"] = part.data["mime"]

    return overlay(record, _rest(part))


def _other(part: Part) -> Record:
    """Return a block of another type; of some the text is a part's."""
    record: Record = {"type": part.type}
    if part.type in fields.TEXTS and part.text is not None:
        record["msg"] = part.text

    return overlay(record, _rest(part))


def _custom(part: Part) -> Any:
    others = _rest(part)
    return others if "type" in others else others.get("block")


_BLOCKS: Mapping[str, Callable[[Part], Any]] = {
    "text": _text,
    "reasoning": _thinking,
    "tool": _call,
    "tool-result": _result,
    "file": _image,
    "custom": _custom,
}
