"""Rows of messages to drafts: known keys become columns, the rest is ``data``.

These functions take what they are given apart. Programs in Rust write an enum as a map
with one key, its variant, or as a map with a ``type``: both are parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sessiondb.formats.kit.conversion import is_json
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    check_storable,
    clean_name,
    clean_text,
    cost,
    is_object,
    text,
)
from sessiondb.formats.kit.json import OddRecordError, load_text, usable_id
from sessiondb.formats.kit.spelled import Table, first_of, spelled, take
from sessiondb.formats.kit.texts import compact, time_of_text
from sessiondb.formats.kit.usage import take_usage
from sessiondb.formats.openoxide.content import decode
from sessiondb.model import MessageDraft, PartDraft, bounds
from sessiondb.model.draft import NO_INPUT

Record = dict[str, Any]
Parts = list[PartDraft]
ROLES = frozenset({"user", "assistant", "system", "tool"})
_FINISH = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool-calls",
    "tool-calls": "tool-calls",
    "tool_use": "tool-calls",
    "error": "error",
    "cancelled": "cancelled",
}
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
    role = as_text(row.get("role")) or ""
    if not usable_id(role):
        raise OddRecordError("has no role")

    del row["role"]
    time = time_of(row, "time_created")
    value = _value_of(row.pop("content"))
    parts, known = _body(value)
    found = _with_role(role, parts, known)
    check_storable(known)
    row |= {"content": known} if known else {}
    return MessageDraft(
        id=message_id, data=row, time_created=time, time_completed=time, **found
    )


def time_of(row: Record, name: str) -> int | None:
    """Return a time of a row, in Unix ms or RFC 3339; one in ms leaves the row."""
    value = row.get(name)
    if type(value) is int and bounds.TIME_LEAST <= value <= bounds.TIME_MOST:
        del row[name]
        return value
    return time_of_text(value)


def _value_of(raw: Any) -> Any:
    """Return what the content of a row is; raises `OddRecordError`."""
    if isinstance(raw, bytes):
        return decode(raw)
    if text(raw) and raw.lstrip()[:1] in ("[", "{"):
        try:
            return load_text(raw)
        except OddRecordError:
            return raw
    return raw


def _with_role(role: str, parts: Parts, known: Record) -> dict[str, Any]:
    """Return a message with its role: results are of a tool, whoever sent them."""
    found: dict[str, Any] = {"role": role}
    if role == "assistant":
        found |= _answer(known)
    elif role == "tool" and not any(part.type == "tool-result" for part in parts):
        others = [part for part in parts if part.type != "text"]
        parts = [_result_of(parts, known), *others]
    elif role == "user" and parts and all(p.type == "tool-result" for p in parts):
        known["role"] = role
        found["role"] = "tool"
    elif role not in ROLES:
        found = {"role": "event", "kind": role}
    return {**found, "parts": tuple(parts)}


def _answer(known: Record) -> dict[str, Any]:
    found = {"tokens": take_usage(known), **_taken(known, _MESSAGE)}
    if known.get("usage") == {}:
        del known["usage"]
    return {**found, "finish": first_of(known, _FINISH_KEYS, _FINISH)}


def _result_of(parts: Parts, known: Record) -> PartDraft:
    """Return the result that a message of a tool is by itself."""
    said = [part for part in parts if part.type == "text"]
    rest = [part.data for part in said if part.data]
    outcome = _outcome(known)
    return PartDraft(
        "tool-result",
        "\n".join(part.text or "" for part in said),
        **_taken(known, _RESULT),
        status="error" if outcome else "completed",
        outcome=outcome,
        data={"parts": rest} if rest else {},
    )


def _taken(record: Record, table: Table) -> dict[str, Any]:
    """Take what *table* names, under whatever key it is: nothing is written again."""
    known = take(record, table)
    for column, value in known.items():
        for key in table[column].keys:
            if record.get(key) == value:
                del record[key]
    return known


# -- content -----------------------------------------------------------------


def _body(value: Any) -> tuple[Parts, Record]:
    """Return the parts of a content, and what else a map has."""
    if text(value):
        return [PartDraft("text", value)], {}
    if isinstance(value, list):
        return list(map(_part, value)), {}
    if not is_object(value):
        return [], {} if value is None else {"value": value}

    kind = _kind(value)
    # A map of an unknown type that has a text or parts is a message.
    if kind is None or (
        _named(kind) not in _TYPES and not value.keys().isdisjoint(_BODY)
    ):
        return _envelope(value), value
    return [_part(value)], {}


def _envelope(value: Record) -> Parts:
    parts: Parts = []
    for key in ("reasoning", "thinking"):
        if text(value.get(key)) and value[key]:
            parts.append(PartDraft("reasoning", value.pop(key)))

    for key in _BODY:
        if text(value.get(key)):
            parts.append(PartDraft("text", value.pop(key)))
        elif isinstance(value.get(key), list):
            parts += map(_part, value.pop(key))

    for key in _CALLS:
        if isinstance(value.get(key), list):
            parts += [_tool(call) for call in value.pop(key)]
    return parts


def _kind(value: Record) -> str | None:
    """Return the type of part that a map is; None for one that is no part."""
    if text(value.get("type")):
        return str(value["type"])
    variant, *more = value or [""]
    is_variant = not more and _named(variant) in _TYPES and variant[:1].isupper()
    return variant if is_variant else None


def _named(kind: str) -> str:
    return _BETWEEN.sub("", kind.lower())


def _part(value: Any) -> PartDraft:
    if text(value):
        return PartDraft("text", value)
    kind = _kind(value) if is_object(value) else None
    if kind is None:
        return PartDraft("custom", data={"value": value})

    block = value
    if "type" not in value:
        inner = value[kind]
        block = {"type": kind, **(inner if is_object(inner) else {"text": inner})}
    check_storable(block)
    make = _MAKERS.get(_TYPES.get(_named(kind), ""))
    return _other(block) if make is None else make(block)


def _other(block: Record) -> PartDraft:
    kind = block["type"]
    if kind in _HERE or not usable_id(kind):
        return PartDraft("custom", data={"block": block})
    del block["type"]
    return PartDraft(kind, data=block)


def _text(block: Record) -> PartDraft:
    return _with_text("text", block, ("text", "content"))


def _reasoning(block: Record) -> PartDraft:
    return _with_text("reasoning", block, ("text", "reasoning", "thinking", "content"))


def _with_text(kind: str, block: Record, keys: tuple[str, ...]) -> PartDraft:
    key = next((key for key in keys if text(block.get(key))), None)
    if key is None:
        return PartDraft("custom", data={"block": block})
    found = block.pop(key)
    return PartDraft(kind, found, data=_rest(block, kind))


def _tool(given: Any) -> PartDraft:
    block = dict(as_object(given))
    # OpenAI has the name and the arguments of a call one level deeper.
    inner = block.get("function")
    block |= inner if is_object(inner) else {}
    known = _taken(block, _CALL)
    if "tool" not in known:
        return PartDraft("custom", data={"value": given})

    given_input = _input(block)
    outcome = _outcome(block)
    found = _result_text(block) if "output" in block or outcome else None
    status = "pending" if found is None else "error" if outcome else "completed"
    return PartDraft(
        "tool",
        found,
        **known,
        input=given_input,
        status=status,
        outcome=outcome,
        data=_rest(block, "toolcall"),
    )


def _input(block: Record) -> Any:
    key = next((key for key in _INPUT if key in block), None)
    if key is None or not is_json(block[key]):
        # Bytes and extensions have no place in the arguments.
        return NO_INPUT
    value = block.pop(key)
    if text(value) and value.lstrip()[:1] in ("[", "{"):
        try:
            return load_text(value)
        except OddRecordError:
            return value
    return value


def _result(block: Record) -> PartDraft:
    known = _taken(block, _RESULT)
    outcome = _outcome(block)
    return PartDraft(
        "tool-result",
        _result_text(block),
        **known,
        status="error" if outcome else "completed",
        outcome=outcome,
        data=_rest(block, "toolresult"),
    )


def _outcome(block: Record) -> str | None:
    error = block.get("error") not in (None, "", False)
    return "failed" if error or block.get("is_error") is True else None


def _result_text(block: Record) -> str:
    keys = (*_OUTPUT, "error")
    key = next((key for key in keys if block.get(key) not in (None, "", [])), None)
    if key is None:
        return ""
    if text(block[key]):
        return str(block.pop(key))

    # Anything but a text stays in the record, too.
    items = block[key] if isinstance(block[key], list) else [block[key]]
    texts = [item if text(item) else as_object(item).get("text") for item in items]
    if all(map(text, texts)):
        return "\n".join(map(str, texts))
    return compact(block[key]) if is_json(block[key]) else ""


def _file(block: Record) -> PartDraft:
    content = block.get("data")
    known: Record = {}
    if isinstance(content, bytes):
        known["content"] = block.pop("data")
    mime = next((block.pop(k) for k in ("mime", "mime_type") if text(block.get(k))), "")
    return PartDraft("file", data={**known, "mime": mime, **_rest(block, "file")})


def _rest(block: Record, kind: str) -> Record:
    """Return what is left of a part, without a type that says the same as its own."""
    if _TYPES.get(_named(as_text(block.get("type")) or "")) == _TYPES[kind]:
        del block["type"]
    return block


_MAKERS: Mapping[str, Callable[[Record], PartDraft]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "tool-result": _result,
    "file": _file,
}
