"""Rows of messages to drafts: known keys become columns, the rest is ``data``.

These functions take what they are given apart. Programs in Rust write an enum as a map
with one key, its variant, or as a map with a ``type``: both are parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sessiondb.formats.content import embedded_file
from sessiondb.formats.kit.conversion import is_json
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    check_storable,
    clean_name,
    clean_text,
    cost,
    is_object,
    list_or_item,
    text,
    without_empty,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, load_text, usable_id
from sessiondb.formats.kit.spelled import (
    Table,
    first_fitting,
    first_of,
    has_failed,
    in_ms,
    keys_in,
    spelled,
    take_spelled,
)
from sessiondb.formats.kit.texts import compact_json, time_of_text
from sessiondb.formats.kit.usage import take_usage
from sessiondb.formats.openoxide.content import decode
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.model.aliases import finishes
from sessiondb.model.draft import NO_INPUT
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
Parts = list[PartDraft]
_FINISH = finishes(
    "stop", "end_turn", "length", "max_tokens",
    "tool_calls", "tool-calls", "tool_use", "error", "cancelled",
)  # fmt: skip
_FINISH_KEYS = ("finish", "finish_reason", "stop_reason")
_MESSAGE: Table = {
    "agent": spelled(clean_name, "agent"),
    "provider_id": spelled(clean_name, "provider_id", "provider"),
    "model_id": spelled(clean_name, "model_id", "model"),
    "response_id": spelled(clean_name, "response_id"),
    "cost": spelled(cost, "cost", "cost_usd"),
}
#: Keys under which a message has a text or its parts, and its calls.
_BODY = ("content", "parts", "blocks", "text")
_REASONING = ("reasoning", "thinking")
_CALLS = ("tool_calls", "calls")
_CALL: Table = {
    "call_id": spelled(clean_text, "call_id", "id", "tool_call_id", "callID"),
    "tool": spelled(clean_name, "name", "tool", "tool_name"),
}
_RESULT: Table = {
    "call_id": spelled(clean_text, "call_id", "tool_call_id", "tool_use_id", "id"),
}
_INPUT = ("input", "arguments", "args")
_OUTPUT = ("output", "content", "result", "text")
#: Names of parts, in lower case and without anything between words.
_TYPES: Mapping[str, str] = {
    "text": "text",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "tool": "tool",
    "toolcall": "tool",
    "tooluse": "tool",
    "functioncall": "tool",
    "toolresult": "tool-result",
    "functioncalloutput": "tool-result",
    "image": "file",
    "file": "file",
}
_HERE = frozenset({"reasoning", "tool", "tool-result", "file", "custom"})
_BETWEEN = late_pattern(r"[^a-z]")


def message_draft(row: Record, message_id: str) -> MessageDraft:
    """Return the message of a row; raises `OddRecordError`."""
    role = as_string(row.get("role"))
    if not usable_id(role):
        raise OddRecordError("has no role")

    del row["role"]
    time = time_of(row, "time_created")
    content = row.pop("content")
    value = decode(content) if isinstance(content, bytes) else _decode_json(content)
    parts, record = _take_parts(value)
    columns = _columns_of_role(role, parts, record)
    check_storable(record)
    row |= without_empty({"content": record})
    return MessageDraft(id=message_id, data=row, time_created=time, **columns)


def time_of(row: Record, name: str) -> int | None:
    """Return a time of a row, in Unix ms or RFC 3339; one in ms leaves the row."""
    value = row.get(name)
    return take_spelled(row, {name: spelled(in_ms, name)}).get(
        name, time_of_text(value)
    )


def _decode_json(value: Any) -> Any:
    """Return the JSON in a text; *value* itself if it is not JSON."""
    # A text that is "7" or "null" is meant as a text.
    if text(value) and value.lstrip()[:1] in ("[", "{"):
        with suppress(OddRecordError):
            return load_text(value)
    return value


def _columns_of_role(role: str, parts: Parts, record: Record) -> dict[str, Any]:
    """Return the role of a message, its parts, and what it states beside them.

    Results are of a tool, whatever the role that they have there.
    """
    columns: dict[str, Any] = {"role": role, "parts": tuple(parts)}
    types = {part.type for part in parts}
    if role == "user" and types == {"tool-result"}:
        # Anthropic has results in messages of the user.
        record["role"] = "user"
        columns["role"] = "tool"
    elif role == "tool" and "tool-result" not in types:
        others = [part for part in parts if part.type != "text"]
        columns["parts"] = (_result_of_message(parts, record), *others)
    elif role == "assistant":
        columns |= _answer_columns(record)
    elif role not in ("user", "tool", "system"):
        columns |= {"role": "event", "kind": role}

    return columns


def _answer_columns(record: Record) -> Record:
    columns = {"tokens": take_usage(record), **_take_columns(record, _MESSAGE)}
    # Each of its counts became a column.
    if record.get("usage") == {}:
        del record["usage"]

    return {**columns, "finish": first_of(record, _FINISH_KEYS, _FINISH)}


def _result_of_message(parts: Parts, record: Record) -> PartDraft:
    """Return the result that a message of a tool is by itself."""
    texts = [part for part in parts if part.type == "text"]
    rest_of_texts = [part.data for part in texts if part.data]
    content = "\n".join(str(part.text) for part in texts)
    ending, columns = _ending_of_call(record), _take_columns(record, _RESULT)
    return PartDraft(
        "tool-result",
        content,
        **columns,
        **ending,
        data=without_empty({"parts": rest_of_texts}),
    )


def _take_columns(record: Record, table: Table) -> dict[str, Any]:
    """Take the values that *table* names, by any of their keys."""
    columns = take_spelled(record, table)
    for column, value in columns.items():
        same = [
            key for key in keys_in(record, table[column].keys) if record[key] == value
        ]
        for key in same:
            del record[key]

    return columns


# -- content -----------------------------------------------------------------


def _take_parts(value: Any) -> tuple[Parts, Record]:
    """Return the parts of a content, and the rest of a map."""
    if text(value) or isinstance(value, list):
        return [_part_of_value(item) for item in list_or_item(value)], {}
    if not is_object(value):
        return [], without_none({"value": value})

    kind = _type_there(value)
    # A map of an unknown type that has a text or parts is a message.
    is_body = _known_type(kind) is None and not value.keys().isdisjoint(_BODY)
    if not kind or is_body:
        return _take_parts_of_message(value), value
    return [_part_of_value(value)], {}


def _take_parts_of_message(value: Record) -> Parts:
    parts: Parts = []
    # Both may be there, a summary and the thoughts: each is a part.
    for key in _REASONING:
        if text(value.get(key)) and value[key]:
            parts.append(PartDraft("reasoning", value.pop(key)))

    for key in _BODY:
        parts += [_part_of_value(item) for item in _take_items(value, key)]
    for key in _CALLS:
        parts += [_call_part(item) for item in _take_items(value, key)]
    return parts


def _take_items(record: Record, key: str) -> list[Any]:
    """Take a list, or a text as one; anything else stays, and is an empty one."""
    if not isinstance(record.get(key), str | list):
        return []
    return list_or_item(record.pop(key))


def _type_there(value: Record) -> str:
    """Return the type of part that a map is; empty if it is not a part."""
    if text(value.get("type")):
        return str(value["type"])

    if len(value) != 1:
        return ""
    (variant,) = value
    # Keys in lower case are of a message, as ``text`` is.
    is_variant = variant[:1].isupper() and _known_type(variant) is not None
    return variant if is_variant else ""


def _known_type(kind: str) -> str | None:
    """Return the type of a part here by its name there; None if it is not known."""
    return _TYPES.get(_BETWEEN.sub("", kind.lower()))


def _part_of_value(value: Any) -> PartDraft:
    if text(value):
        return PartDraft("text", value)

    kind = _type_there(as_object(value))
    if not kind:
        return PartDraft("custom", data={"value": value})

    block = value
    if "type" not in value:
        inner = value[kind]
        # A tuple variant holds a text.
        block = {"type": kind, **(inner if is_object(inner) else {"text": inner})}

    check_storable(block)
    match _known_type(kind):
        case "text":
            return _text_part("text", block, ("text", "content"))
        case "reasoning":
            return _text_part("reasoning", block, ("text", *_REASONING, "content"))
        case "tool":
            return _call_part(block)
        case "tool-result":
            return _result_part(block)
        case "file":
            return _file_part(block)
        case _:
            return _unknown_part(block)


def _unknown_part(block: Record) -> PartDraft:
    kind = block["type"]
    # A part of this type would be taken for one that was understood.
    if kind in _HERE or not usable_id(kind):
        return PartDraft("custom", data={"block": block})

    del block["type"]
    return PartDraft(kind, data=block)


def _text_part(kind: str, block: Record, keys: tuple[str, ...]) -> PartDraft:
    key, content = first_fitting(block, keys, text)
    if not key:
        return PartDraft("custom", data={"block": block})

    del block[key]
    return PartDraft(kind, content, data=_rest_of_part(block, kind))


def _call_part(value: Any) -> PartDraft:
    block = dict(as_object(value))
    # OpenAI has the name and the arguments of a call one level deeper.
    block |= as_object(block.get("function"))
    columns = _take_columns(block, _CALL)
    if "tool" not in columns:
        return PartDraft("custom", data={"value": value})

    columns["input"] = _take_input(block)
    if "output" not in block and not has_failed(block):
        data = _rest_of_part(block, "tool")
        return PartDraft("tool", **columns, status="pending", data=data)

    # The result is a part of the call: some programs complete it in place.
    ending, content = _ending_of_call(block), _take_result_text(block)
    data = _rest_of_part(block, "tool")
    return PartDraft("tool", content, **columns, **ending, data=data)


def _take_input(block: Record) -> Any:
    for key in _INPUT:
        # Bytes and extensions have no place in the arguments.
        if key in block:
            return _decode_json(block.pop(key)) if is_json(block[key]) else NO_INPUT
    return NO_INPUT


def _result_part(block: Record) -> PartDraft:
    columns, ending = _take_columns(block, _RESULT), _ending_of_call(block)
    content = _take_result_text(block)
    data = _rest_of_part(block, "tool-result")
    return PartDraft("tool-result", content, **columns, **ending, data=data)


def _ending_of_call(block: Record) -> Record:
    """Return how a call ended, by its result."""
    if has_failed(block):
        return {"status": "error", "outcome": "failed"}
    return {"status": "completed"}


def _take_result_text(block: Record) -> str:
    for key in (*_OUTPUT, "error"):
        value = block.get(key)
        if value in (None, "", []):
            continue
        if text(value):
            del block[key]
            return value

        # Anything but a text stays in the record, too.
        texts = [as_object(item).get("text", item) for item in list_or_item(value)]
        if all(text(item) for item in texts):
            return "\n".join(texts)
        return compact_json(value) if is_json(value) else ""

    return ""


def _file_part(block: Record) -> PartDraft:
    """Return a file; its content is bytes, or base64 as providers expect it."""
    source = as_object(block.get("source"))
    _, mime_of_source = first_fitting(source, _MIMES, text)
    mime = _take_columns(block, _MIME).get("mime") or mime_of_source or ""
    data: dict[str, Any] = {"mime": mime}
    for holder in (block, source):
        content = holder.get("data")
        if isinstance(content, bytes) and holder is block:
            data["content"] = holder.pop("data")
            break
        if text(content):
            data |= embedded_file(mime, holder.pop("data"))
            break

    return PartDraft("file", data={**data, **_rest_of_part(block, "file")})


_MIMES = ("mime", "mime_type", "media_type", "mimeType")
_MIME: Table = {"mime": spelled(text, *_MIMES)}


def _rest_of_part(block: Record, kind: str) -> Record:
    """Return the rest of a part, without a type that is the same as its own."""
    if _known_type(as_string(block.get("type"))) == kind:
        del block["type"]
    return block
