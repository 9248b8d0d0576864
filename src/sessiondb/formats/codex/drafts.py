"""Records of Codex to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record is one message: items that the model sees are what was said, everything else is
an event. A record keeps its envelope and its types, so that `records` finds them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.course import Course, tokens_of
from sessiondb.formats.content import embedded
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    filled,
    is_object,
    structure,
    take,
    text,
    within,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.texts import take_json, time_of_text
from sessiondb.model import MessageDraft, PartDraft

Record = dict[str, Any]
#: The columns of a message, and its parts.
Columns = dict[str, Any]
Parts = tuple[PartDraft, ...]

_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def message_draft(record: Record, message_id: str, course: Course) -> MessageDraft:
    """Return the message that a record is.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    kind = as_text(record.get("type")) or as_text(record.get("record_type"))
    if not usable_id(kind):
        raise OddRecordError("has no type")

    assert kind is not None
    check_storable(record)

    when = time_of_text(record.get("timestamp"))
    item = item_of(record)
    found = _event(record, kind, course) if item is None else _item(item, course)
    if found["role"] == "assistant":
        found |= _model(course)

    # A record is written when it is complete.
    found |= {"time_created": when, "time_completed": when}
    return MessageDraft(id=message_id, data=record, **found)


def item_of(record: Record) -> Record | None:
    """Return the item that a record holds, or is; None for an event."""
    kind, payload = record.get("type"), record.get("payload")
    if kind == "response_item" and is_object(payload):
        return payload

    is_bare = "payload" not in record and as_text(kind) in fields.ITEMS
    return record if is_bare else None


def _model(course: Course) -> Columns:
    return filled({"model_id": course.model, "provider_id": course.provider})


# -- items ---------------------------------------------------------------------


def _item(item: Record, course: Course) -> Columns:
    kind = as_text(item.get("type")) or ""
    if kind in fields.CALLS:
        return _call(item, fields.CALLS[kind])

    make = _ITEMS.get(kind)
    if make is not None:
        return make(item, course)

    return {"role": "event", "kind": _kind(kind or "response_item")}


def _message(item: Record, course: Course) -> Columns:
    role = as_text(item.get("role"))
    if role == "assistant":
        return {"role": role, "parts": _content(item)}
    if role in ("developer", "system"):
        return {"role": "system", "parts": _content(item)}
    if role != "user":
        return {"role": "event", "kind": "custom_message", "parts": _content(item)}

    typed = _typed(item, course)
    parts = _content(item, typed)
    # Nobody said what is all added: the model is shown it.
    is_said = any(typed) or not parts
    kind = {} if is_said else {"kind": "custom_message"}
    return {"role": "user" if is_said else "event", **kind, "parts": parts}


def _typed(item: Record, course: Course) -> list[bool]:
    """Return of each block of a prompt whether a person added it.

    New records say what each block is, and who added it. In older ones an event repeats
    what was typed.
    """
    blocks = as_list(item.get("content"))
    about = item.get("internal_chat_message_metadata_passthrough")
    kinds = as_list(within(about, "content_item_kinds"))
    sources = as_list(within(about, "content_item_metadata"))
    if len(blocks) in (len(kinds), len(sources)):
        return list(map(_is_by_user, *_filled(kinds, sources)))

    texts = [as_text(within(block, "text")) for block in blocks]
    # An event joins the texts of a prompt, and a picture comes with one.
    is_typed = course.is_typed
    if course.prompts and is_typed("".join(filter(None, texts))):
        return [True] * len(blocks)

    typed = [is_typed(said) for said in texts if said is not None]
    pictures = any(typed) or not typed
    return [pictures if said is None else is_typed(said) for said in texts]


def _filled(kinds: list[Any], sources: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return both lists in the length of the longer one."""
    pairs = zip_longest(kinds, sources)
    one, other = zip(*pairs, strict=True) if kinds or sources else ((), ())
    return list(one), list(other)


def _is_by_user(kind: Any, source: Any) -> bool:
    by = within(source, "provenance", "type")
    if text(by):
        return by == "user"

    named = as_text(kind) or "unknown"
    return named == "unknown" or named.startswith("user.")


def _other_agent(item: Record, course: Course) -> Columns:
    """What another agent said to this one."""
    del course
    return {"role": "event", "kind": "custom_message", "parts": _content(item)}


def _reasoning(item: Record, course: Course) -> Columns:
    """A summary and, rarely, the content; both are lists of texts, or null."""
    del course
    parts: list[PartDraft] = []

    for key in ("summary", "content"):
        blocks = as_list(item.get(key))
        if blocks and all(map(_is_text, blocks)):
            del item[key]
            parts += (_text(block, "reasoning", of=key) for block in blocks)

    return {"role": "assistant", "parts": tuple(parts)}


def _call(item: Record, shape: fields.CallShape) -> Columns:
    known: Columns = {"tool": shape.tool, **take(item, fields.CALL)}
    if not known["tool"]:
        # Without a tool it is no call; the record is kept as it is.
        if "call_id" in known:
            item["call_id"] = known["call_id"]
        return {"role": "assistant", "parts": (PartDraft("custom"),)}

    known["status"] = "pending"

    if shape.is_hosted:
        failed = item.get("status") == "failed"
        known["status"] = "error" if failed else "completed"
        known["outcome"] = "failed" if failed else None

    parts = [PartDraft("tool", **known, **_input(item, shape))]

    if shape.tool == "image_generation" and text(item.get("result")):
        image = embedded("image/png", item.pop("result"))
        parts.append(PartDraft("file", data={**image, "of": "result"}))

    return {"role": "assistant", "parts": tuple(parts)}


def _input(item: Record, shape: fields.CallShape) -> Columns:
    if shape.is_json:
        given = take_json(item, shape.input)
    else:
        given = item.get(shape.input)
        if not text(given) and not structure(given):
            return {}
        del item[shape.input]

    return {} if given is None else {"input": given}


def _result(item: Record, course: Course) -> Columns:
    """A result: a text, or a list of blocks whose texts are joined.

    ``shape`` has the length of each text, and null for a block that is a part.
    """
    known: Columns = take(item, fields.RESULT)
    output = item.get("output")
    said, more = "", []
    data: Record = {}

    if text(output):
        said = item.pop("output")
    elif isinstance(output, list) and output and all(map(_is_block, output)):
        texts = [_plain(block) for block in item.pop("output")]
        said = "\n".join(value for value in texts if value is not None)
        more = [_part(block, True) for block in output if _plain(block) is None]
        data["shape"] = [None if value is None else len(value) for value in texts]
    else:
        data["absent"] = True

    ending = course.ending(known.get("call_id"), said)
    part = PartDraft(
        "tool-result",
        said,
        outcome=ending.outcome,
        status="error" if ending.outcome else None,
        time_started=ending.started,
        time_ended=ending.ended,
        data=data,
        **known,
    )
    return {"role": "tool", "parts": (part, *more)}


def _searched(item: Record, course: Course) -> Columns:
    """The tools that a search found; the record keeps them."""
    del course
    names = (within(tool, "name") for tool in as_list(item.get("tools")))
    said = ", ".join(filter(text, names))
    data = {"absent": True}
    part = PartDraft("tool-result", said, data=data, **take(item, fields.RESULT))
    return {"role": "tool", "parts": (part,)}


_ITEMS: Mapping[str, Callable[[Record, Course], Columns]] = {
    "message": _message,
    "agent_message": _other_agent,
    "reasoning": _reasoning,
    "tool_search_output": _searched,
    **dict.fromkeys(fields.RESULTS, _result),
}


# -- content ---------------------------------------------------------------------


def _content(item: Record, typed: list[bool] | None = None) -> Parts:
    content = item.get("content")
    if text(content):
        del item["content"]
        return (PartDraft("text", content, data={"plain": True}),)
    if not isinstance(content, list) or not content or not all(map(_is_block, content)):
        return ()

    del item["content"]
    known = typed or [True] * len(content)
    return tuple(map(_part, content, known))


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _is_text(value: Any) -> bool:
    return is_object(value) and text(value.get("text"))


def _plain(block: Record) -> str | None:
    """Return the text of a block that has nothing else."""
    is_plain = block.keys() == {"type", "text"} and block["type"] == "input_text"
    return as_text(block["text"]) if is_plain else None


def _part(block: Record, typed: bool) -> PartDraft:
    if block["type"] in fields.TEXTS and text(block.get("text")):
        return _text(block, "text", is_added=not typed)
    if block["type"] == "input_image" and text(block.get("image_url")):
        return _image(block, is_added=not typed)

    return PartDraft("custom", data=_data(block, not typed))


def _text(
    block: Record, kind: str, *, of: str | None = None, is_added: bool = False
) -> PartDraft:
    said = block.pop("text")
    return PartDraft(kind, said, data=_data(block, is_added) | filled({"of": of}))


def _image(block: Record, *, is_added: bool) -> PartDraft:
    match = _DATA_URL.fullmatch(block["image_url"])
    if match is None:
        file = {"url": block.pop("image_url")}
    else:
        del block["image_url"]
        file = embedded(match[1], match[2])

    return PartDraft("file", data={**file, **_data(block, is_added)})


def _data(block: Record | None, is_added: bool) -> Record:
    data: Record = {} if block is None else {"block": block}
    return data | {"synthetic": True} if is_added else data


# -- events --------------------------------------------------------------------


def _event(record: Record, kind: str, course: Course) -> Columns:
    payload = record.get("payload")
    if kind == "event_msg":
        kind = as_text(within(payload, "type")) or kind

    found: Columns = {"role": "event", "kind": _kind(kind)}
    make = _EVENTS.get(kind)
    if make is None or not is_object(payload):
        return found

    found |= make(payload, course)
    if found["kind"] == "thinking_level_change":
        record.setdefault("level", payload["effort"])

    return found


def _kind(name: str) -> str:
    if name in fields.KINDS:
        return fields.KINDS[name]
    if not usable_id(name):
        return "custom"

    return f"codex_{name}" if name in fields.TAKEN else name


def _compacted(payload: Record, course: Course) -> Columns:
    """The summary; if the provider holds it, the texts that were kept."""
    del course
    if text(payload.get("message")) and payload["message"]:
        return {"parts": (PartDraft("text", payload.pop("message")),)}

    kept = (
        within(block, "text")
        for item in as_list(payload.get("replacement_history"))
        if within(item, "role") in ("user", "assistant")
        for block in as_list(within(item, "content"))
    )
    said = "\n\n".join(filter(text, kept))
    return {"parts": (PartDraft("text", said, data={"added": True}),)} if said else {}


def _turn(payload: Record, course: Course) -> Columns:
    """The settings of a turn, with its model: an event of what they change."""
    found = _model(course)
    effort, before = payload.get("effort"), course.turn_model
    course.turn_model = course.model

    if clean_name(effort) and effort != course.effort:
        course.effort = effort
        return found | {"kind": "thinking_level_change"}

    changed = course.model != before
    return found | ({"kind": "model_change"} if changed else {})


def _response(payload: Record, course: Course) -> Columns:
    return _counted(course, course.usage.of_response(payload))


def _total(payload: Record, course: Course) -> Columns:
    info = as_object(payload.get("info"))
    return _counted(course, course.usage.of_total(info))


def _counted(course: Course, counts: tuple[int, ...] | None) -> Columns:
    """The counts of a response; a record that repeats them is an event of its name."""
    tokens = tokens_of(counts)
    if tokens is None:
        return {}

    return {"kind": "usage", "tokens": tokens, **_model(course)}


def _ended(payload: Record, course: Course) -> Columns:
    """A turn that ended; the error of a provider is here alone."""
    del course
    error = payload.get("error")
    return {"kind": "failed", "error": error} if is_object(error) else {}


def _error(payload: Record, course: Course) -> Columns:
    del course
    said = payload.get("message")
    return {"error": {"message": said}} if text(said) else {}


_EVENTS: Mapping[str, Callable[[Record, Course], Columns]] = {
    "compacted": _compacted,
    "turn_context": _turn,
    "token_usage_record": _response,
    "token_count": _total,
    "task_complete": _ended,
    "turn_complete": _ended,
    "error": _error,
}
