"""Records of Codex to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record is one message: items that the model sees are what was said, everything else is
an event. A record keeps its envelope and its types, so that `records` finds them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, starmap, zip_longest
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.course import Course, tokens_of
from sessiondb.formats.codex.given import of_state, of_texts, of_turn
from sessiondb.formats.content import embedded
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    filled,
    fitting,
    is_object,
    structure,
    take,
    text,
    within,
    without_none,
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

    # Items name no model: it is that of the last turn.
    if found["role"] == "assistant":
        found |= _model(course)

    return MessageDraft(id=message_id, time_created=when, data=record, **found)


def item_of(record: Record) -> Record | None:
    """Return the item that a record holds, or is; None for an event."""
    kind = as_text(record.get("type"))
    if kind == "response_item":
        return fitting(record.get("payload"), is_object)  # type: ignore[no-any-return]

    is_bare = "payload" not in record and kind in fields.ITEMS
    return record if is_bare else None


def _model(course: Course) -> Columns:
    return filled({"model_id": course.model, "provider_id": course.provider})


# -- items ---------------------------------------------------------------------


def _item(item: Record, course: Course) -> Columns:
    kind = fitting(item.get("type"), text, "")
    make = _ITEMS.get(kind)
    if make is None:
        # Items that a later release adds are events until their meaning is known.
        return {"role": "event", "kind": _kind(kind or "response_item")}

    return make(item, course)


def _message(item: Record, course: Course) -> Columns:
    make = _AUTHORS.get(as_text(item.get("role")), _shown)
    return make(item, course)


def _answer(item: Record, course: Course) -> Columns:
    del course
    return {"role": "assistant", "parts": _content(item)}


def _instructions(item: Record, course: Course) -> Columns:
    del course
    return {"role": "system", "parts": _content(item)}


def _shown(item: Record, course: Course) -> Columns:
    """A message that the model is shown: of another agent, or of an unknown role."""
    del course
    return {"role": "event", "kind": "custom_message", "parts": _content(item)}


def _prompt(item: Record, course: Course) -> Columns:
    typed = _typed(item, course)
    parts = _content(item, typed)
    if any(typed) or not parts:
        return {"role": "user", "parts": parts}

    # Codex added all of it, so it is not a turn of the user.
    sources = course.given.parts(of_texts(parts))
    return {"role": "event", "kind": "custom_message", "parts": (*parts, *sources)}


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
        return list(starmap(_is_by_user, zip_longest(kinds, sources)))

    texts = [as_text(within(block, "text")) for block in blocks]
    # An event joins the texts of a prompt, which may be typed only as one.
    is_typed = course.is_typed
    if course.prompts and is_typed("".join(filter(None, texts))):
        return [True] * len(blocks)

    # A picture has no text: it was added with the texts around it.
    typed = list(map(is_typed, filter(text, texts)))
    pictures = any(typed) or not typed
    return [pictures if said is None else is_typed(said) for said in texts]


def _is_by_user(kind: Any, source: Any) -> bool:
    by = within(source, "provenance", "type")
    if text(by):
        return by == "user"

    # Without any label a block is what older releases wrote for a prompt.
    named: str = fitting(kind, text, "unknown")
    return named == "unknown" or named.startswith("user.")


def _reasoning(item: Record, course: Course) -> Columns:
    """A summary and, rarely, the content; both are lists of texts, or null."""
    del course
    parts: list[PartDraft] = []

    for key in ("summary", "content"):
        if _are(_has_text, item.get(key)):
            parts += (_thought(block, key) for block in item.pop(key))

    return {"role": "assistant", "parts": tuple(parts)}


def _thought(block: Record, key: str) -> PartDraft:
    said = block.pop("text")
    return PartDraft("reasoning", said, data={"block": block, "of": key})


def _call(shape: fields.CallShape, item: Record, course: Course) -> Columns:
    del course
    if not (shape.tool or as_text(item.get("name"))):
        # A tool part needs the name of a tool; the record is kept as it is.
        return {"role": "assistant", "parts": (PartDraft("custom"),)}

    columns = {
        "tool": shape.tool,
        "status": "pending",
        **take(item, shape.fields),
        **_input(item, shape),
    }
    if shape.is_hosted:
        columns |= _hosted(item)

    parts = [PartDraft("tool", **columns)]

    if shape.tool == "image_generation" and text(item.get("result")):
        image = embedded("image/png", item.pop("result"))
        parts.append(PartDraft("file", data={**image, "of": "result"}))

    return {"role": "assistant", "parts": tuple(parts)}


def _hosted(item: Record) -> Columns:
    """How a call of the provider ended: no result follows it."""
    if item.get("status") == "failed":
        return {"status": "error", "outcome": "failed"}

    return {"status": "completed"}


def _input(item: Record, shape: fields.CallShape) -> Columns:
    if not shape.is_json:
        return take(item, {shape.input: ("input", _is_input)})

    return without_none({"input": take_json(item, shape.input)})


def _is_input(value: Any) -> bool:
    return text(value) or structure(value)


def _result(item: Record, course: Course) -> Columns:
    """A result, with the ending of its call."""
    known: Columns = take(item, fields.RESULT)
    said, more, data = _output(item)
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


def _output(item: Record) -> tuple[str, list[PartDraft], Record]:
    """Return the text of a result, its other parts, and what writes them again.

    Of a list of blocks the texts are joined, for `Part.text` is what is searched.
    ``shape`` has the length of each text, and null for a block that is a part.
    """
    output: Any = item.get("output")
    if text(output):
        del item["output"]
        return output, [], {}
    if not _are(_is_block, output):
        return "", [], {"absent": True}

    del item["output"]
    texts = list(map(_plain, output))
    shape = [None if said is None else len(said) for said in texts]
    others = [block for block, said in zip(output, texts, strict=True) if said is None]
    more = [_part(block, True) for block in others]

    return "\n".join(filter(text, texts)), more, {"shape": shape}


def _searched(item: Record, course: Course) -> Columns:
    """The tools that a search found; the record keeps them."""
    del course
    names = (within(tool, "name") for tool in as_list(item.get("tools")))
    said = ", ".join(filter(text, names))
    data = {"absent": True}
    part = PartDraft("tool-result", said, data=data, **take(item, fields.RESULT))
    return {"role": "tool", "parts": (part,)}


_AUTHORS: Mapping[str | None, Callable[[Record, Course], Columns]] = {
    "user": _prompt,
    "assistant": _answer,
    "developer": _instructions,
    "system": _instructions,
}
_ITEMS: Mapping[str, Callable[[Record, Course], Columns]] = {
    "message": _message,
    "agent_message": _shown,
    "reasoning": _reasoning,
    "tool_search_output": _searched,
    **dict.fromkeys(fields.RESULTS, _result),
    **{name: partial(_call, shape) for name, shape in fields.CALLS.items()},
}


# -- content ---------------------------------------------------------------------


def _content(item: Record, typed: list[bool] | None = None) -> Parts:
    content: Any = item.get("content")
    if text(content):
        del item["content"]
        return (PartDraft("text", content, data={"plain": True}),)
    if not _are(_is_block, content):
        return ()

    known = typed or [True] * len(content)
    del item["content"]
    return tuple(map(_part, content, known))


def _are(fits: Callable[[Any], bool], values: Any) -> bool:
    """Return whether *values* is a list that is not empty, of values that fit."""
    found = as_list(values)
    return bool(found) and all(map(fits, found))


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _has_text(value: Any) -> bool:
    return text(within(value, "text"))


def _plain(block: Record) -> str | None:
    """Return the text of a block that has nothing else."""
    is_plain = block.keys() == {"type", "text"} and block["type"] == "input_text"
    return as_text(block["text"]) if is_plain else None


def _part(block: Record, typed: bool) -> PartDraft:
    key, make = _BLOCKS.get(block["type"], ("", _other))
    # A block without the value that it is made for is kept as it is.
    if not text(block.get(key)):
        make = _other

    return make(block, {} if typed else {"synthetic": True})


def _text(block: Record, marks: Record) -> PartDraft:
    said = block.pop("text")
    return PartDraft("text", said, data={"block": block, **marks})


def _image(block: Record, marks: Record) -> PartDraft:
    url = block.pop("image_url")
    match = _DATA_URL.fullmatch(url)
    file = {"url": url} if match is None else embedded(match[1], match[2])
    return PartDraft("file", data={**file, "block": block, **marks})


def _other(block: Record, marks: Record) -> PartDraft:
    return PartDraft("custom", data={"block": block, **marks})


#: How blocks become parts, and the key of the text that is needed for it.
_BLOCKS: Mapping[str, tuple[str, Callable[[Record, Record], PartDraft]]] = {
    **dict.fromkeys(fields.TEXTS, ("text", _text)),
    "input_image": ("image_url", _image),
}


# -- events --------------------------------------------------------------------


def _event(record: Record, kind: str, course: Course) -> Columns:
    payload = as_object(record.get("payload"))
    if kind == "event_msg":
        kind = as_text(payload.get("type")) or kind

    make = _EVENTS.get(kind, _nothing)
    found = {"role": "event", "kind": _kind(kind), **make(payload, course)}
    if found["kind"] == "thinking_level_change":
        record.setdefault("level", payload["effort"])

    return found


def _nothing(payload: Record, course: Course) -> Columns:
    del payload, course
    return {}


def _kind(name: str) -> str:
    return fields.KINDS.get(name, name) if usable_id(name) else "custom"


def _compacted(payload: Record, course: Course) -> Columns:
    """The summary; if the provider holds it, the texts that were kept."""
    del course
    if fitting(payload.get("message"), text):
        return {"parts": (PartDraft("text", payload.pop("message")),)}

    # The record keeps those, so they are not written again.
    kept = filter(_is_said, as_list(payload.get("replacement_history")))
    blocks = chain.from_iterable(as_list(item.get("content")) for item in kept)
    said = "\n\n".join(within(block, "text") for block in filter(_has_text, blocks))
    return {"parts": (PartDraft("text", said, data={"added": True}),)} if said else {}


def _is_said(item: Any) -> bool:
    return within(item, "role") in ("user", "assistant")


def _turn(payload: Record, course: Course) -> Columns:
    """The settings of a turn, with its model: an event of what they change."""
    found = {**_model(course), "parts": course.given.parts(of_turn(payload))}
    effort, before = payload.get("effort"), course.turn_model
    course.turn_model = course.model

    if clean_name(effort) and effort != course.effort:
        course.effort = effort
        return found | {"kind": "thinking_level_change"}

    changed = course.model != before
    return found | ({"kind": "model_change"} if changed else {})


def _state(payload: Record, course: Course) -> Columns:
    """Take the context that a model was given."""
    return {"parts": course.given.parts(of_state(payload))}


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
    "world_state": _state,
    "token_usage_record": _response,
    "token_count": _total,
    "task_complete": _ended,
    "turn_complete": _ended,
    "error": _error,
}
