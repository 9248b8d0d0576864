"""Rows of messages to drafts: known keys become columns, the rest is ``data``.

These functions take what they are given apart. Programs in Rust write an enum as a map
with one key, its variant, or as a map with a ``type``: both are parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import attrgetter
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
_BETWEEN = re.compile(r"[^a-z]")


def message_draft(row: Record, message_id: str) -> MessageDraft:
    """Return the message of a row; raises `OddRecordError`."""
    role = as_string(row.get("role"))
    if not usable_id(role):
        raise OddRecordError("has no role")

    del row["role"]
    time = time_of(row, "time_created")
    value = _value_of(row.pop("content"))
    parts, record = _body(value)
    columns = _with_role(role, parts, record)
    check_storable(record)
    row |= without_empty({"content": record})
    return MessageDraft(id=message_id, data=row, time_created=time, **columns)


def time_of(row: Record, name: str) -> int | None:
    """Return a time of a row, in Unix ms or RFC 3339; one in ms leaves the row."""
    value = row.get(name)
    return take_spelled(row, {name: spelled(in_ms, name)}).get(
        name, time_of_text(value)
    )


def _value_of(raw: Any) -> Any:
    """Return the content of a row; raises `OddRecordError`."""
    if isinstance(raw, bytes):
        return decode(raw)
    return _decoded(raw)


def _decoded(value: Any) -> Any:
    """Return the JSON in a text; *value* itself if it is not JSON."""
    # A text that is "7" or "null" is meant as a text.
    if text(value) and value.lstrip()[:1] in ("[", "{"):
        with suppress(OddRecordError):
            return load_text(value)
    return value


def _with_role(role: str, parts: Parts, record: Record) -> dict[str, Any]:
    """Return a message with its role: results are of a tool, whatever their role."""
    make = _ROLES.get(role)
    if make is None:
        return {"role": "event", "kind": role, "parts": tuple(parts)}
    return {"role": role, "parts": tuple(parts), **make(parts, record)}


def _plain(parts: Parts, record: Record) -> Record:
    """Return no further columns."""
    del parts, record
    return {}


def _asked(parts: Parts, record: Record) -> Record:
    # Anthropic has results in messages of the user.
    if _types(parts) != {"tool-result"}:
        return {}

    record["role"] = "user"
    return {"role": "tool"}


def _types(parts: Parts) -> set[str]:
    return {part.type for part in parts}


def _returned(parts: Parts, record: Record) -> Record:
    if "tool-result" in _types(parts):
        return {}

    others = [part for part in parts if part.type != "text"]
    return {"parts": (_result_of(parts, record), *others)}


def _answer(parts: Parts, record: Record) -> Record:
    del parts
    columns = {"tokens": take_usage(record), **_taken(record, _MESSAGE)}
    # Each of its counts became a column.
    if record.get("usage") == {}:
        del record["usage"]

    return {**columns, "finish": first_of(record, _FINISH_KEYS, _FINISH)}


#: The columns of messages beside their parts, by the roles that are roles here, too.
_ROLES: Mapping[str, Callable[[Parts, Record], Record]] = {
    "user": _asked,
    "assistant": _answer,
    "system": _plain,
    "tool": _returned,
}


def _result_of(parts: Parts, record: Record) -> PartDraft:
    """Return the result that a message of a tool is by itself."""
    texts = [part for part in parts if part.type == "text"]
    records = list(filter(None, map(attrgetter("data"), texts)))
    content = "\n".join(str(part.text) for part in texts)
    ended, known_here = _ended(record), _taken(record, _RESULT)
    return PartDraft(
        "tool-result",
        content,
        **known_here,
        **ended,
        data=without_empty({"parts": records}),
    )


def _taken(record: Record, table: Table) -> dict[str, Any]:
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


def _body(value: Any) -> tuple[Parts, Record]:
    """Return the parts of a content, and the rest of a map."""
    if text(value) or isinstance(value, list):
        return list(map(_part, list_or_item(value))), {}
    if not is_object(value):
        return [], without_none({"value": value})

    kind = _kind(value)
    # A map of an unknown type that has a text or parts is a message.
    is_body = _type_of(kind) is None and not value.keys().isdisjoint(_BODY)
    if not kind or is_body:
        return _envelope(value), value
    return [_part(value)], {}


def _envelope(value: Record) -> Parts:
    reasons = take_spelled(value, _REASONS).values()
    parts = [PartDraft("reasoning", content) for content in reasons]

    for key in keys_in(value, _BODY):
        parts += map(_part, _items_at(value, key))
    for key in keys_in(value, _CALLS):
        parts += map(_tool, _items_at(value, key))
    return parts


def _is_reason(value: Any) -> bool:
    return text(value) and value != ""


#: Both may be there, a summary and the thoughts: each is a part.
_REASONS: Table = {key: spelled(_is_reason, key) for key in _REASONING}


def _items_at(record: Record, key: str) -> list[Any]:
    """Take a list, or a text as one; anything else stays, and is an empty one."""
    return list_or_item(
        take_spelled(record, {key: spelled(_are_items, key)}).get(key, [])
    )


def _are_items(value: Any) -> bool:
    return isinstance(value, str | list)


def _kind(value: Record) -> str:
    """Return the type of part that a map is; empty if it is not a part."""
    if text(value.get("type")):
        return str(value["type"])

    variant = next(iter(value), "")
    # Keys in lower case are of a message, as ``text`` is.
    is_variant = len(value) == 1 and variant[:1].isupper()
    return variant if is_variant and _type_of(variant) else ""


def _type_of(kind: str) -> str | None:
    """Return the type of a part here by its name there; None if it is not known."""
    return _TYPES.get(_BETWEEN.sub("", kind.lower()))


def _part(value: Any) -> PartDraft:
    if text(value):
        return PartDraft("text", value)

    kind = _kind(as_object(value))
    if not kind:
        return PartDraft("custom", data={"value": value})

    block = value if "type" in value else _flat(kind, value[kind])
    check_storable(block)
    return _MAKERS.get(_type_of(kind), _other)(block)


def _flat(kind: str, inner: Any) -> Record:
    """Return a variant as a map with a type; a tuple variant holds a text."""
    return {"type": kind, **(inner if is_object(inner) else {"text": inner})}


def _other(block: Record) -> PartDraft:
    kind = block["type"]
    # A part of this type would be taken for one that was understood.
    if kind in _HERE or not usable_id(kind):
        return PartDraft("custom", data={"block": block})

    del block["type"]
    return PartDraft(kind, data=block)


def _text(block: Record) -> PartDraft:
    return _with_text("text", block, ("text", "content"))


def _reasoning(block: Record) -> PartDraft:
    return _with_text("reasoning", block, ("text", *_REASONING, "content"))


def _with_text(kind: str, block: Record, keys: tuple[str, ...]) -> PartDraft:
    key, content = first_fitting(block, keys, text)
    if not key:
        return PartDraft("custom", data={"block": block})

    del block[key]
    return PartDraft(kind, content, data=_rest(block, kind))


def _tool(value: Any) -> PartDraft:
    block = dict(as_object(value))
    # OpenAI has the name and the arguments of a call one level deeper.
    block |= as_object(block.get("function"))
    columns = _taken(block, _CALL)
    if "tool" not in columns:
        return PartDraft("custom", data={"value": value})

    columns["input"] = _input(block)
    if "output" not in block and not has_failed(block):
        return PartDraft("tool", **columns, status="pending", data=_rest(block, "tool"))

    # The result is a part of the call: some programs complete it in place.
    ended, content = _ended(block), _result_text(block)
    return PartDraft("tool", content, **columns, **ended, data=_rest(block, "tool"))


def _input(block: Record) -> Any:
    key = next(iter(keys_in(block, _INPUT)), "")
    # Bytes and extensions have no place in the arguments.
    if not key or not is_json(block[key]):
        return NO_INPUT
    return _decoded(block.pop(key))


def _result(block: Record) -> PartDraft:
    columns, ended = _taken(block, _RESULT), _ended(block)
    content = _result_text(block)
    data = _rest(block, "tool-result")
    return PartDraft("tool-result", content, **columns, **ended, data=data)


def _ended(block: Record) -> Record:
    """Return how a call ended, by its result."""
    if has_failed(block):
        return {"status": "error", "outcome": "failed"}
    return {"status": "completed"}


def _result_text(block: Record) -> str:
    key, value = first_fitting(block, (*_OUTPUT, "error"), _is_output)
    if text(value):
        del block[key]
        return value

    # Anything but a text stays in the record, too.
    texts = [as_object(item).get("text", item) for item in list_or_item(value)]
    if all(map(text, texts)):
        return "\n".join(map(str, texts))
    return compact_json(value) if key and is_json(value) else ""


def _is_output(value: Any) -> bool:
    return value not in (None, "", [])


def _file(block: Record) -> PartDraft:
    """Return a file; its content is bytes, or base64 as providers expect it."""
    source = as_object(block.get("source"))
    _, mime_of_source = first_fitting(source, _MIMES, text)
    mime = _taken(block, _MIME).get("mime") or mime_of_source or ""
    columns = {"mime": mime, **take_spelled(block, _CONTENT)}
    holders = (holder for holder in (block, source) if text(holder.get("data")))
    holder = next(holders, None)
    if holder is not None and "content" not in columns:
        columns |= embedded_file(mime, holder.pop("data"))
    return PartDraft("file", data={**columns, **_rest(block, "file")})


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes)


_MIMES = ("mime", "mime_type", "media_type", "mimeType")
_MIME: Table = {"mime": spelled(text, *_MIMES)}
_CONTENT: Table = {"content": spelled(_is_bytes, "data")}


def _rest(block: Record, kind: str) -> Record:
    """Return the rest of a part, without a type that is the same as its own."""
    if _type_of(as_string(block.get("type"))) == kind:
        del block["type"]
    return block


_MAKERS: Mapping[str | None, Callable[[Record], PartDraft]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "tool-result": _result,
    "file": _file,
}
