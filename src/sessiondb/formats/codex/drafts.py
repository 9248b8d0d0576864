"""Records of Codex to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record is one message: items that the model sees are what was said, everything else is
an event. A record keeps its envelope and its types, so that `records` finds them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, starmap, zip_longest
from operator import and_
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.course import Course, ended_with
from sessiondb.formats.codex.given import of_settings, of_state, of_texts
from sessiondb.formats.codex.logs import is_header
from sessiondb.formats.content import embedded
from sessiondb.formats.kit.blocks import is_block
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    check_storable,
    clean_name,
    filled,
    fitting,
    is_object,
    take,
    text,
    within,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.texts import take_json
from sessiondb.model import MessageDraft, PartDraft, Tokens
from sessiondb.model.aliases import OUTCOMES

Record = dict[str, Any]
#: The columns of a message, and its parts.
Columns = dict[str, Any]
Parts = tuple[PartDraft, ...]
#: Makes the columns of a message, and takes them out of its record; None for none.
Make = Callable[[Course, Record], Columns | None]

#: How a call ended that did not fail, where a record states it.
COMPLETED = "completed"
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
#: Texts around a picture, which Codex labels as typed.
_MARK = re.compile(r'<image(?: name=\[[^]\n]*\])?(?: path="[^\n]*")?>|</image>')


def message_draft(
    record: Record, item: Record | None, known: Columns, course: Course
) -> MessageDraft:
    """Return the message that a record is, which holds *item* or is an event.

    The columns *known* are its id and its time.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    kind = as_text(record.get("type")) or as_text(record.get("record_type"))
    if kind is None and is_header(record):
        kind = "session_meta"
    if not usable_id(kind):
        raise OddRecordError("has no type")

    assert kind is not None
    check_storable(record)
    found = _columns(record, item, kind, course)
    return MessageDraft(data=record, **known, **found)


def item_of(record: Record) -> Record | None:
    """Return the item that a record holds, or is; None for an event."""
    if "payload" not in record:
        return record if as_text(record.get("type")) in fields.ITEMS else None

    payload: Any = record["payload"]
    is_item = record.get("type") == "response_item" and is_object(payload)
    return payload if is_item else None


def _columns(record: Record, item: Record | None, kind: str, course: Course) -> Columns:
    payload = as_object(record.get("payload", record)) if item is None else item
    makers = _RECORDS if item is None else _ITEMS
    if kind == "event_msg":
        makers = _EVENTS
    if makers is not _RECORDS:
        kind = as_text(payload.get("type")) or kind

    # A type that a later release adds is an event until its meaning is known.
    make = makers.get(kind, _nothing)
    # Of a record of Codex itself the reasoning is in an item, too.
    if kind == "agent_reasoning" and item is None and MARK in record:
        make = _thought_alone
    found = make(course, payload) or {}
    if found.get("role") == "tool":
        found = _with_outcome(record, found)
    if "role" not in found:
        known = {"role": "event", "kind": _kind(kind)}
        return known | _with_level(record, payload, found)

    # Items name no model: it is that of the last turn.
    return found | _model(course) if found["role"] == "assistant" else found


def _with_level(record: Record, payload: Record, found: Columns) -> Columns:
    """Put the level of an event into its data, unless that has another one."""
    if found.get("kind") == "thinking_level_change":
        if "level" in record:
            del found["kind"]
        record.setdefault("level", payload["effort"])

    return found


def _with_outcome(record: Record, found: Columns) -> Columns:
    """Return the columns of a result with the outcome that the record states itself."""
    outcome = record.get(fields.OUTCOME)
    if outcome != COMPLETED and not (text(outcome) and outcome in OUTCOMES):
        return found

    result, *more = found["parts"]
    ended = ended_with(None if outcome == COMPLETED else outcome)
    return {**found, "parts": (replace(result, **ended), *more)}


def _nothing(_: Course, __: Record) -> None:
    return None


def _model(course: Course) -> Columns:
    return filled({"model_id": course.model, "provider_id": course.provider})


def _kind(name: str) -> str:
    return fields.KINDS.get(name, name) if usable_id(name) else "custom"


# -- items ---------------------------------------------------------------------


def _message(course: Course, item: Record) -> Columns:
    author = as_text(item.get("role"))
    if author == "user":
        return _prompt(course, item)

    # Of another agent, or of an unknown role: the model is shown it.
    return {**_AUTHORS.get(author, _SHOWN), "parts": _content(item)}


def _prompt(course: Course, item: Record) -> Columns:
    typed = _typed(course, item)
    parts = _content(item, typed)
    if any(typed) or not parts:
        course.prompted()
        return {"role": "user", "parts": parts}

    # Codex added all of it, so it is not a turn of the user.
    sources = course.given.parts(of_texts(parts), item)
    return {**_SHOWN, "parts": (*parts, *sources)}


def _typed(course: Course, item: Record) -> list[bool]:
    """Return whether a person added each block of a prompt.

    New records say what each block is, and who added it. In older ones an event repeats
    what was typed.
    """
    blocks = as_list(item.get("content"))
    about = item.get("internal_chat_message_metadata_passthrough")
    kinds = as_list(within(about, "content_item_kinds"))
    sources = as_list(within(about, "content_item_metadata"))
    if len(blocks) in (len(kinds), len(sources)):
        by_user = starmap(_is_by_user, zip_longest(kinds, sources))
        return list(map(and_, by_user, _are_content(blocks)))

    texts = [as_text(within(block, "text")) for block in blocks]
    # An event joins the texts of a prompt, which may be typed only as one.
    is_typed = course.is_typed
    if course.prompts and is_typed("".join(filter(None, texts))):
        return [True] * len(blocks)

    # A picture has no text: it was added with the texts around it.
    typed = list(map(is_typed, filter(text, texts)))
    pictures = any(typed) or not typed
    return [pictures if said is None else is_typed(said) for said in texts]


def _are_content(blocks: list[Any]) -> Iterator[bool]:
    """Yield whether each block is more than a mark around a picture."""
    has_picture = any(within(block, "type") == "input_image" for block in blocks)
    for block in blocks:
        mark = _MARK.fullmatch(as_string(within(block, "text")))
        yield not (has_picture and mark)


def _is_by_user(kind: Any, source: Any) -> bool:
    by = within(source, "provenance", "type")
    if text(by):
        return by == "user"

    # Without any label a block is what older releases wrote for a prompt.
    named: str = fitting(kind, text, "unknown")
    return named == "unknown" or named.startswith("user.")


def _reasoning(_: Course, item: Record) -> Columns:
    """A summary and, rarely, the content; both are lists of texts, or null."""
    parts: list[PartDraft] = []
    for key in ("summary", "content"):
        if _are(_has_text, item.get(key)):
            parts += (_thought(block, key) for block in item.pop(key))

    return {"role": "assistant", "parts": tuple(parts)}


def _thought_alone(_: Course, payload: Record) -> Columns | None:
    """Reasoning of another program, which no model of Codex may be sent."""
    if not text(payload.get("text")):
        return None
    part = PartDraft("reasoning", payload.pop("text"), data={"of": "text"})
    return {"role": "assistant", "parts": (part,)}


def _thought(block: Record, key: str) -> PartDraft:
    said = block.pop("text")
    return PartDraft("reasoning", said, data={"block": block, "of": key})


def _call(shape: fields.CallShape, _: Course, item: Record) -> Columns:
    if not (shape.tool or as_text(item.get("name"))):
        # A tool part needs the name of a tool; the record is kept as it is.
        return {"role": "assistant", "parts": (PartDraft("custom"),)}

    columns = {"tool": shape.tool, **_status(item, shape), **take(item, shape.fields)}
    if shape.json is not None:
        columns |= without_none({"input": take_json(item, shape.json)})
    parts = [PartDraft("tool", **columns)]

    if shape.tool == "image_generation" and text(item.get("result")):
        image = embedded("image/png", item.pop("result"))
        parts.append(PartDraft("file", data={**image, "of": "result"}))

    return {"role": "assistant", "parts": tuple(parts)}


def _status(item: Record, shape: fields.CallShape) -> Columns:
    """Return whether a call ended; no result follows one that the provider ran."""
    if not shape.is_hosted:
        return {"status": "pending"}
    if item.get("status") == "failed":
        return {"status": "error", "outcome": "failed"}

    return {"status": "completed"}


def _result(course: Course, item: Record) -> Columns:
    """A result, with the ending of its call."""
    known: Columns = take(item, fields.RESULT)
    said, more, data = _output(item)
    ended = course.ending(known.get("call_id"), said)
    part = PartDraft("tool-result", said, data=data, **known, **ended)
    return {"role": "tool", "parts": (part, *more)}


def _output(item: Record) -> tuple[str, list[PartDraft], Record]:
    """Return the text of a result, its other parts, and what writes them again.

    Of a list of blocks the texts are joined, for `Part.text` is what is searched.
    ``shape`` has the length of each text, and null for a block that is a part. The
    tools that a search found are in the record, and their names the text.
    """
    output: Any = item.get("output")
    if text(output):
        del item["output"]
        return output, [], {}
    if not _are(is_block, output):
        names = (within(tool, "name") for tool in as_list(item.get("tools")))
        return ", ".join(filter(text, names)), [], {"absent": True}

    del item["output"]
    texts = list(map(_plain, output))
    shape = [None if said is None else len(said) for said in texts]
    others = [block for block, said in zip(output, texts, strict=True) if said is None]
    more = list(map(_part, others))

    return "\n".join(filter(text, texts)), more, {"shape": shape}


_SHOWN: Columns = {"role": "event", "kind": "custom_message"}
_AUTHORS: Mapping[str | None, Columns] = {
    "assistant": {"role": "assistant"},
    "developer": {"role": "system"},
    "system": {"role": "system"},
}
_ITEMS: Mapping[str, Make] = {
    "message": _message,
    "agent_message": _message,
    "reasoning": _reasoning,
    **dict.fromkeys(fields.RESULTS, _result),
    **{name: partial(_call, shape) for name, shape in fields.CALLS.items()},
}


# -- content ---------------------------------------------------------------------


def _content(item: Record, typed: list[bool] | None = None) -> Parts:
    content: Any = item.get("content")
    if text(content):
        del item["content"]
        return (PartDraft("text", content, data={"plain": True}),)
    if not _are(is_block, content):
        return ()

    known = typed or [True] * len(content)
    del item["content"]
    return tuple(map(_part, content, known))


def _are(fits: Callable[[Any], bool], values: Any) -> bool:
    """Return whether *values* is a list that is not empty, of values that fit."""
    found = as_list(values)
    return bool(found) and all(map(fits, found))


def _has_text(value: Any) -> bool:
    return text(within(value, "text"))


def _plain(block: Record) -> str | None:
    """Return the text of a block that has nothing else."""
    is_plain = block.keys() == {"type", "text"} and block["type"] == "input_text"
    return as_text(block["text"]) if is_plain else None


def _part(block: Record, typed: bool = True) -> PartDraft:
    """Return the part that a block is; one without its text or picture is kept."""
    data = {"block": block} if typed else {"block": block, "synthetic": True}
    kind, key = fields.BLOCKS.get(block["type"], ("custom", ""))
    if not text(block.get(key)):
        return PartDraft("custom", data=data)

    value = block.pop(key)
    if kind == "text":
        return PartDraft(kind, value, data=data)

    match = _DATA_URL.fullmatch(value)
    file = {"url": value} if match is None else embedded(match[1], match[2])
    return PartDraft(kind, data={**file, **data})


# -- events --------------------------------------------------------------------


def _compacted(_: Course, payload: Record) -> Columns:
    """The summary; if the provider holds it, the texts that were kept."""
    if fitting(payload.get("message"), text):
        return {"parts": (PartDraft("text", payload.pop("message")),)}

    # The record keeps those, so they are not written again.
    kept = filter(_is_said, as_list(payload.get("replacement_history")))
    blocks = chain.from_iterable(as_list(item.get("content")) for item in kept)
    said = "\n\n".join(within(block, "text") for block in filter(_has_text, blocks))
    return {"parts": (PartDraft("text", said, data={"added": True}),)} if said else {}


def _is_said(item: Any) -> bool:
    return within(item, "role") in ("user", "assistant")


def _header(course: Course, payload: Record) -> Columns:
    return {"parts": course.given.parts(of_settings(payload), payload)}


def _turn(course: Course, payload: Record) -> Columns:
    """The settings of a turn, with its model: an event of what they change."""
    course.model = fitting(payload.get("model"), clean_name, course.model)
    found = {**_model(course), **_header(course, payload)}
    effort, before = payload.get("effort"), course.turn_model
    course.turn_model = course.model

    if clean_name(effort) and effort != course.effort:
        course.effort = effort
        return found | {"kind": "thinking_level_change"}

    changed = course.model != before
    return found | ({"kind": "model_change"} if changed else {})


def _state(course: Course, payload: Record) -> Columns:
    return {"parts": course.given.parts(of_state(payload), payload)}


def _response(course: Course, payload: Record) -> Columns | None:
    return _counted(course, course.usage.of_response(payload))


def _total(course: Course, payload: Record) -> Columns | None:
    return _counted(course, course.usage.of_total(payload))


def _counted(course: Course, tokens: Tokens | None) -> Columns | None:
    """The counts of a response; a record that repeats them is an event of its name."""
    known = {"kind": "usage", "tokens": tokens, **_model(course)}
    return None if tokens is None else known


def _ended(_: Course, payload: Record) -> Columns:
    """A turn that ended; the error of a provider is here alone."""
    error = payload.get("error")
    return {"kind": "failed", "error": error} if is_object(error) else {}


def _error(_: Course, payload: Record) -> Columns:
    said = payload.get("message")
    return {"error": {"message": said}} if text(said) else {}


#: Records outside of the conversation, by their type, and events by theirs. All of them
#: are messages; these have columns or parts, or mean something for later records.
_RECORDS: Mapping[str, Make] = {
    "session_meta": _header,
    "compacted": _compacted,
    "turn_context": _turn,
    "world_state": _state,
    "token_usage_record": _response,
}
_EVENTS: Mapping[str, Make] = {
    "token_count": _total,
    "task_started": Course.begin_task,
    "turn_started": Course.begin_task,
    "task_complete": _ended,
    "turn_complete": _ended,
    "error": _error,
    "thread_rolled_back": Course.roll_back,
    "thread_settings_applied": Course.apply_settings,
    **dict.fromkeys(fields.ENDINGS, Course.end_call),
}
