"""Records of Codex to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record is one message: items that the model sees are what was said, everything else is
an event. A record keeps its envelope and its types, so that `records` finds them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sessiondb.formats.codex import fields
from sessiondb.formats.codex.course import Course
from sessiondb.formats.codex.logs import is_header
from sessiondb.formats.codex.outcomes import ending_of
from sessiondb.formats.codex.sources import (
    sources_of_settings,
    sources_of_state,
    sources_of_texts,
)
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

#: How a call ended that did not fail, where a record states it.
COMPLETED = "completed"
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
#: Texts around a picture, which Codex labels as typed.
_PICTURE_MARK = re.compile(r'<image(?: name=\[[^]\n]*\])?(?: path="[^\n]*")?>|</image>')
#: A text that the model is shown as if the user had said it.
_SHOWN_TO_MODEL: Columns = {"role": "event", "kind": "custom_message"}
_AUTHORS: Mapping[str | None, Columns] = {
    "assistant": {"role": "assistant"},
    "developer": {"role": "system"},
    "system": {"role": "system"},
}


def message_draft(
    record: Record, item: Record | None, id_and_time: Columns, course: Course
) -> MessageDraft:
    """Return the message that a record is, which holds *item* or is an event.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    kind = as_text(record.get("type")) or as_text(record.get("record_type"))
    if kind is None and is_header(record):
        kind = "session_meta"
    if not usable_id(kind):
        raise OddRecordError("has no type")

    assert kind is not None
    check_storable(record)
    columns = _message_columns(record, item, kind, course)
    return MessageDraft(data=record, **id_and_time, **columns)


def item_of(record: Record) -> Record | None:
    """Return the item that a record holds, or is; None for an event."""
    if "payload" not in record:
        return record if as_text(record.get("type")) in fields.ITEMS else None

    payload: Any = record["payload"]
    is_item = record.get("type") == "response_item" and is_object(payload)
    return payload if is_item else None


def _message_columns(
    record: Record, item: Record | None, kind: str, course: Course
) -> Columns:
    if item is not None:
        kind = as_text(item.get("type")) or kind
        columns = _read_item(course, item, kind)
    elif kind == "event_msg":
        event = as_object(record.get("payload", record))
        kind = as_text(event.get("type")) or kind
        columns = _read_event(course, event, kind, is_marked=MARK in record)
    else:
        payload = as_object(record.get("payload", record))
        columns = _read_record(course, payload, kind)
        if columns.get("kind") == "thinking_level_change":
            # The level goes into the data, unless that has another one.
            if "level" in record:
                del columns["kind"]
            record.setdefault("level", payload["effort"])

    role = columns.get("role")
    if role is None:
        return {"role": "event", "kind": _kind_of_event(kind), **columns}
    if role == "assistant":
        # Items name no model: it is that of the last turn.
        return columns | _model_columns(course)
    if role == "tool":
        return _with_stated_outcome(record, columns)
    return columns


def _kind_of_event(name: str) -> str:
    return fields.KINDS.get(name, name) if usable_id(name) else "custom"


def _model_columns(course: Course) -> Columns:
    return filled({"model_id": course.model, "provider_id": course.provider})


def _with_stated_outcome(record: Record, columns: Columns) -> Columns:
    """Return the columns of a result with the outcome that the record states itself."""
    outcome = record.get(fields.OUTCOME)
    if outcome != COMPLETED and not (text(outcome) and outcome in OUTCOMES):
        return columns

    result, *files = columns["parts"]
    ending = ending_of(None if outcome == COMPLETED else outcome)
    return {**columns, "parts": (replace(result, **ending), *files)}


# -- items ---------------------------------------------------------------------


def _read_item(course: Course, item: Record, kind: str) -> Columns:
    """Return the columns of an item; one of an unknown type has none.

    A type that a later release adds is an event until its meaning is known.
    """
    if kind in ("message", "agent_message"):
        author = as_text(item.get("role"))
        if author == "user":
            return _read_prompt(course, item)
        # Of another agent, or of an unknown role: the model is shown it.
        return {**_AUTHORS.get(author, _SHOWN_TO_MODEL), "parts": _content_parts(item)}
    if kind == "reasoning":
        return _read_reasoning(item)
    if kind in fields.RESULTS:
        return _read_result(course, item)
    if kind in fields.CALLS:
        return _read_call(item, fields.CALLS[kind])
    return {}


def _read_prompt(course: Course, item: Record) -> Columns:
    typed = _typed_blocks(course, item)
    parts = _content_parts(item, typed)
    if any(typed) or not parts:
        course.add_prompt()
        return {"role": "user", "parts": parts}

    # Codex added all of it, so it is not a turn of the user.
    sources = course.sources.take_new(sources_of_texts(parts), item)
    return {**_SHOWN_TO_MODEL, "parts": (*parts, *sources)}


def _typed_blocks(course: Course, item: Record) -> list[bool]:
    """Return whether a person added each block of a prompt.

    New records say what each block is, and who added it. In older ones an event repeats
    what was typed.
    """
    blocks = as_list(item.get("content"))
    metadata = item.get("internal_chat_message_metadata_passthrough")
    kinds = as_list(within(metadata, "content_item_kinds"))
    sources = as_list(within(metadata, "content_item_metadata"))
    if len(blocks) in (len(kinds), len(sources)):
        has_picture = any(within(block, "type") == "input_image" for block in blocks)
        typed = []
        for index, block in enumerate(blocks):
            kind = kinds[index] if index < len(kinds) else None
            source = sources[index] if index < len(sources) else None
            content = as_string(within(block, "text"))
            is_mark = has_picture and _PICTURE_MARK.fullmatch(content) is not None
            typed.append(_is_by_user(kind, source) and not is_mark)
        return typed

    texts = [as_text(within(block, "text")) for block in blocks]
    # An event joins the texts of a prompt, which may be typed only as one.
    if course.prompt_hashes and course.is_typed(
        "".join(part for part in texts if part)
    ):
        return [True] * len(blocks)

    are_typed = [course.is_typed(content) for content in texts if content is not None]
    # A picture has no text: it was added with the texts around it.
    is_picture_typed = any(are_typed) or not are_typed
    return [
        is_picture_typed if content is None else course.is_typed(content)
        for content in texts
    ]


def _is_by_user(kind: Any, source: Any) -> bool:
    """Return whether the user added a block, by its labels."""
    author = within(source, "provenance", "type")
    if text(author):
        return author == "user"

    # Without any label a block is what older releases wrote for a prompt.
    label: str = fitting(kind, text, "unknown")
    return label == "unknown" or label.startswith("user.")


def _read_reasoning(item: Record) -> Columns:
    """A summary and, rarely, the content; both are lists of texts, or null."""
    parts = []
    for key in ("summary", "content"):
        if _is_list_of(item.get(key), _has_text):
            for block in item.pop(key):
                thought = block.pop("text")
                data = {"block": block, "of": key}
                parts.append(PartDraft("reasoning", thought, data=data))
    return {"role": "assistant", "parts": tuple(parts)}


def _read_call(item: Record, shape: fields.CallShape) -> Columns:
    if not (shape.tool or as_text(item.get("name"))):
        # A tool part needs the name of a tool; the record is kept as it is.
        return {"role": "assistant", "parts": (PartDraft("custom"),)}

    columns = {"tool": shape.tool, **_status_of_call(item, shape)}
    columns |= take(item, shape.fields)
    if shape.json is not None:
        columns |= without_none({"input": take_json(item, shape.json)})
    parts = [PartDraft("tool", **columns)]

    if shape.tool == "image_generation" and text(item.get("result")):
        image = embedded("image/png", item.pop("result"))
        parts.append(PartDraft("file", data={**image, "of": "result"}))

    return {"role": "assistant", "parts": tuple(parts)}


def _status_of_call(item: Record, shape: fields.CallShape) -> Columns:
    """Return whether a call ended; no result follows one that the provider ran."""
    if not shape.is_hosted:
        return {"status": "pending"}
    if item.get("status") == "failed":
        return {"status": "error", "outcome": "failed"}
    return {"status": "completed"}


def _read_result(course: Course, item: Record) -> Columns:
    """A result, with the ending of its call."""
    columns: Columns = take(item, fields.RESULT)
    output, files, data = _read_output(item)
    ending = course.ending_of_call(columns.get("call_id"), output)
    part = PartDraft("tool-result", output, data=data, **columns, **ending)
    return {"role": "tool", "parts": (part, *files)}


def _read_output(item: Record) -> tuple[str, list[PartDraft], Record]:
    """Return the text of a result, its other parts, and what writes them again.

    Of a list of blocks the texts are joined, for `Part.text` is what is searched.
    ``shape`` has the length of each text, and null for a block that is a part. The
    tools that a search found are in the record, and their names the text.
    """
    output: Any = item.get("output")
    if text(output):
        del item["output"]
        return output, [], {}
    if not _is_list_of(output, is_block):
        names = [within(tool, "name") for tool in as_list(item.get("tools"))]
        return ", ".join(name for name in names if text(name)), [], {"absent": True}

    del item["output"]
    texts: list[str] = []
    parts: list[PartDraft] = []
    shape: list[int | None] = []
    for block in output:
        content = _plain_text(block)
        if content is None:
            parts.append(_part_of_block(block))
            shape.append(None)
        else:
            texts.append(content)
            shape.append(len(content))
    return "\n".join(texts), parts, {"shape": shape}


# -- content ---------------------------------------------------------------------


def _content_parts(item: Record, typed: list[bool] | None = None) -> Parts:
    """Return the parts of a message; *typed* says which blocks are of a person."""
    content: Any = item.get("content")
    if text(content):
        del item["content"]
        return (PartDraft("text", content, data={"plain": True}),)
    if not _is_list_of(content, is_block):
        return ()

    del item["content"]
    typed = typed or [True] * len(content)
    return tuple(
        [
            _part_of_block(block, is_typed)
            for block, is_typed in zip(content, typed, strict=True)
        ]
    )


def _is_list_of(values: Any, fits: Callable[[Any], bool]) -> bool:
    """Return whether *values* is a list that is not empty, of values that fit."""
    items = as_list(values)
    return bool(items) and all(fits(item) for item in items)


def _has_text(value: Any) -> bool:
    return text(within(value, "text"))


def _plain_text(block: Record) -> str | None:
    """Return the text of a block that has nothing else."""
    is_plain = block.keys() == {"type", "text"} and block["type"] == "input_text"
    return as_text(block["text"]) if is_plain else None


def _part_of_block(block: Record, is_typed: bool = True) -> PartDraft:
    """Return the part that a block is; one without its text or picture is kept."""
    data = {"block": block} if is_typed else {"block": block, "synthetic": True}
    kind, key = fields.BLOCKS.get(block["type"], ("custom", ""))
    if not text(block.get(key)):
        return PartDraft("custom", data=data)

    value = block.pop(key)
    if kind == "text":
        return PartDraft(kind, value, data=data)

    match = _DATA_URL.fullmatch(value)
    file = {"url": value} if match is None else embedded(match[1], match[2])
    return PartDraft(kind, data={**file, **data})


# -- records outside of the conversation, and events -----------------------------


def _read_record(course: Course, payload: Record, kind: str) -> Columns:
    """Return the columns of a record that is neither an item nor an event of a turn."""
    match kind:
        case "session_meta":
            return _source_columns(course, payload)
        case "turn_context":
            return _read_turn(course, payload)
        case "world_state":
            sources = sources_of_state(payload)
            return {"parts": course.sources.take_new(sources, payload)}
        case "compacted":
            return _read_compaction(payload)
        case "token_usage_record":
            return _usage_columns(course, course.usage.tokens_of_response(payload))
    return {}


def _read_event(
    course: Course, event: Record, kind: str, *, is_marked: bool
) -> Columns:
    """Return the columns of an event, and record what it means for later records.

    One that *is_marked* was written by sessiondb.
    """
    match kind:
        case "token_count":
            return _usage_columns(course, course.usage.tokens_of_total(event))
        case "task_started" | "turn_started":
            course.begin_task()
        case "task_complete" | "turn_complete":
            # The error of a provider is here alone.
            if is_object(event.get("error")):
                return {"kind": "failed", "error": event["error"]}
        case "error":
            if text(event.get("message")):
                return {"error": {"message": event["message"]}}
        case "thread_rolled_back":
            course.roll_back(event)
        case "thread_settings_applied":
            course.apply_settings(event)
        case "agent_reasoning":
            # Of a record of Codex itself the reasoning is in an item, too. That of
            # another program is here alone, since no model of Codex may be sent it.
            if is_marked and text(event.get("text")):
                thought = PartDraft("reasoning", event.pop("text"), data={"of": "text"})
                return {"role": "assistant", "parts": (thought,)}
        case _:
            if kind in fields.ENDINGS:
                course.end_call(event)
    return {}


def _source_columns(course: Course, payload: Record) -> Columns:
    sources = sources_of_settings(payload)
    return {"parts": course.sources.take_new(sources, payload)}


def _read_turn(course: Course, payload: Record) -> Columns:
    """The settings of a turn, with its model: an event of what they change."""
    course.model = fitting(payload.get("model"), clean_name, course.model)
    columns = {**_model_columns(course), **_source_columns(course, payload)}
    has_new_model = course.model != course.turn_model
    course.turn_model = course.model

    effort = payload.get("effort")
    if clean_name(effort) and effort != course.effort:
        course.effort = effort
        columns["kind"] = "thinking_level_change"
    elif has_new_model:
        columns["kind"] = "model_change"
    return columns


def _read_compaction(payload: Record) -> Columns:
    """The summary; if the provider holds it, the texts that were kept."""
    if fitting(payload.get("message"), text):
        return {"parts": (PartDraft("text", payload.pop("message")),)}

    # The record keeps those, so they are not written again.
    texts = []
    for item in as_list(payload.get("replacement_history")):
        if within(item, "role") in ("user", "assistant"):
            blocks = as_list(item.get("content"))
            texts += [block["text"] for block in blocks if _has_text(block)]
    summary = "\n\n".join(texts)
    if not summary:
        return {}
    return {"parts": (PartDraft("text", summary, data={"added": True}),)}


def _usage_columns(course: Course, tokens: Tokens | None) -> Columns:
    """The counts of a response; a record that repeats them is an event of its name."""
    if tokens is None:
        return {}
    return {"kind": "usage", "tokens": tokens, **_model_columns(course)}
