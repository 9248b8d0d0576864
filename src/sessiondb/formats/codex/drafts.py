"""Records of Codex to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record is one message: items that the model sees are what was said, everything else is
an event. A record keeps its envelope and its types, so that `records` finds them again.
"""

from __future__ import annotations

import re
from itertools import zip_longest
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
from sessiondb.formats.content import embedded_file
from sessiondb.formats.kit.blocks import is_block
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    check_storable,
    clean_name,
    is_object,
    objects_in,
    take_fields,
    text,
    value_at,
    without_empty,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.texts import take_json
from sessiondb.model import MessageDraft, PartDraft, Tokens
from sessiondb.model.aliases import OUTCOMES
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: The columns of a message, and its parts.
Columns = dict[str, Any]
Parts = tuple[PartDraft, ...]

#: How a call ended that did not fail, if a record states it.
COMPLETED = "completed"
_DATA_URL = late_pattern(r"data:([^;,]*);base64,(.*)", re.DOTALL)
#: Texts around a picture, which Codex labels as typed.
_PICTURE_TAG = late_pattern(
    r'<image(?: name=\[[^]\n]*\])?(?: path="[^\n]*")?>|</image>'
)


def message_draft(
    record: Record, item: Record | None, identity: Columns, course: Course
) -> MessageDraft:
    """Return the message that a record is, which holds *item* or is an event.

    The *identity* of a message is its id and its time.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    record_type = as_text(record.get("type")) or as_text(record.get("record_type"))
    if record_type is None and is_header(record):
        record_type = "session_meta"
    if record_type is None or not usable_id(record_type):
        raise OddRecordError("has no type")

    check_storable(record)
    if item is not None:
        item_type = as_text(item.get("type")) or record_type
        outcome = record.get(fields.OUTCOME)
        columns = _columns_of_item(item, item_type, outcome, course)
    elif record_type == "event_msg":
        columns = _columns_of_event(record, course)
    else:
        columns = _columns_of_record(record, record_type, course)

    if columns["role"] == "assistant":
        # Items name no model: it is that of the last turn.
        columns |= _model_of_turn(course)
    return MessageDraft(data=record, **identity, **columns)


def item_of(record: Record) -> Record | None:
    """Return the item that a record holds, or is; None for an event."""
    if "payload" not in record:
        return record if as_text(record.get("type")) in fields.ITEMS else None

    payload: Any = record["payload"]
    is_item = record.get("type") == "response_item" and is_object(payload)
    return payload if is_item else None


def _columns_of_item(
    item: Record, item_type: str, outcome: Any, course: Course
) -> Columns:
    """Return the columns of what was said; *outcome* is that which its record states.

    A type that a later release adds is an event until its meaning is known.
    """
    if item_type in ("message", "agent_message"):
        return _columns_of_message(item, course)
    if item_type == "reasoning":
        return {"role": "assistant", "parts": _reasoning_parts(item)}
    if item_type in fields.RESULTS:
        return {"role": "tool", "parts": _result_parts(item, outcome, course)}
    if item_type in fields.CALLS:
        shape = fields.CALLS[item_type]
        return {"role": "assistant", "parts": _call_parts(item, shape)}
    return _event_columns(item_type)


def _columns_of_record(record: Record, record_type: str, course: Course) -> Columns:
    """Return the columns of a record outside of the conversation: an event."""
    payload = as_object(record.get("payload", record))
    columns = _event_columns(record_type)
    match record_type:
        case "session_meta" | "turn_context":
            sources = sources_of_settings(payload)
            columns["parts"] = course.sources.new_parts(sources, payload)
            if record_type == "turn_context":
                columns |= _turn_settings(record, payload, course)
        case "world_state":
            sources = sources_of_state(payload)
            columns["parts"] = course.sources.new_parts(sources, payload)
        case "compacted":
            columns["parts"] = _summary_parts(payload)
        case "token_usage_record":
            columns |= _usage_columns(course.usage.tokens_of_response(payload), course)
    return columns


def _columns_of_event(record: Record, course: Course) -> Columns:
    """Return the columns of an event, which may mean something for later records."""
    payload = as_object(record.get("payload", record))
    event_type = as_text(payload.get("type")) or "event_msg"
    columns = _event_columns(event_type)
    match event_type:
        case "token_count":
            columns |= _usage_columns(course.usage.tokens_of_total(payload), course)
        case "task_started" | "turn_started":
            course.begin_task()
        case "task_complete" | "turn_complete":
            # The error of a provider is here alone.
            if is_object(payload.get("error")):
                columns |= {"kind": "failed", "error": payload["error"]}
        case "error":
            if text(payload.get("message")):
                columns["error"] = {"message": payload["message"]}
        case "thread_rolled_back":
            course.roll_back(payload)
        case "thread_settings_applied":
            course.apply_settings(payload)
        case (
            "item_completed"
            | "exec_command_end"
            | "patch_apply_end"
            | "mcp_tool_call_end"
        ):
            course.end_call(payload)
        case "agent_reasoning":
            # That of another program, which no model of Codex may be sent. In a record
            # of Codex itself, the reasoning is in an item, too.
            if MARK in record and text(payload.get("text")):
                part = PartDraft("reasoning", payload.pop("text"), data={"of": "text"})
                return {"role": "assistant", "parts": (part,)}
    return columns


def _event_columns(name: str) -> Columns:
    kind = fields.KINDS.get(name, name) if usable_id(name) else "custom"
    return {"role": "event", "kind": kind}


def _model_of_turn(course: Course) -> Columns:
    return without_empty({"model_id": course.model, "provider_id": course.provider})


# -- messages ------------------------------------------------------------------


def _columns_of_message(item: Record, course: Course) -> Columns:
    match item.get("role"):
        case "user":
            return _columns_of_prompt(item, course)
        case "assistant":
            return {"role": "assistant", "parts": _content_parts(item)}
        case "developer" | "system":
            return {"role": "system", "parts": _content_parts(item)}
    # Of another agent, or of an unknown role: the model is shown it.
    return {"role": "event", "kind": "custom_message", "parts": _content_parts(item)}


def _columns_of_prompt(item: Record, course: Course) -> Columns:
    typed = _typed_blocks(item, course)
    parts = _content_parts(item, typed)
    if True in typed or not parts:
        course.add_prompt()
        return {"role": "user", "parts": parts}

    # Codex added all of it, so it is not a turn of the user.
    sources = course.sources.new_parts(sources_of_texts(parts), item)
    return {"role": "event", "kind": "custom_message", "parts": (*parts, *sources)}


def _typed_blocks(item: Record, course: Course) -> list[bool]:
    """Return whether the user typed each block of a prompt.

    New records say what each block is, and who added it. In older ones an event repeats
    what was typed.
    """
    blocks = as_list(item.get("content"))
    labels = item.get("internal_chat_message_metadata_passthrough")
    kinds = as_list(value_at(labels, "content_item_kinds"))
    sources = as_list(value_at(labels, "content_item_metadata"))
    if len(blocks) not in (len(kinds), len(sources)):
        return _typed_by_events(blocks, course)

    has_picture = any(value_at(block, "type") == "input_image" for block in blocks)
    typed = []
    labels_of_blocks = zip_longest(kinds, sources)
    for block, (kind, source) in zip(blocks, labels_of_blocks, strict=False):
        block_text = as_string(value_at(block, "text"))
        is_tag = has_picture and _PICTURE_TAG.fullmatch(block_text) is not None
        typed.append(_is_by_user(kind, source) and not is_tag)
    return typed


def _typed_by_events(blocks: list[Any], course: Course) -> list[bool]:
    """Return whether the user typed each block, by the events of the rollout."""
    texts = [as_text(value_at(block, "text")) for block in blocks]
    # An event joins the texts of a prompt, which may be typed only as one.
    prompt = "".join(item for item in texts if item is not None)
    if course.prompt_hashes and course.is_typed(prompt):
        return [True] * len(blocks)

    # A picture has no text: it was added with the texts around it.
    typed = [None if item is None else course.is_typed(item) for item in texts]
    is_picture_typed = True in typed or False not in typed
    return [is_picture_typed if item is None else item for item in typed]


def _is_by_user(kind: Any, source: Any) -> bool:
    author = value_at(source, "provenance", "type")
    if text(author):
        return author == "user"

    # Without any label a block is what older releases wrote for a prompt.
    return not text(kind) or kind == "unknown" or kind.startswith("user.")


def _content_parts(item: Record, typed: list[bool] | None = None) -> Parts:
    content: Any = item.get("content")
    if text(content):
        del item["content"]
        return (PartDraft("text", content, data={"plain": True}),)
    if not _are_blocks(content):
        return ()

    del item["content"]
    if typed is None:
        return tuple(_part_of_block(block) for block in content)
    return tuple(
        _part_of_block(block, is_typed)
        for block, is_typed in zip(content, typed, strict=True)
    )


def _part_of_block(block: Record, is_typed: bool = True) -> PartDraft:
    """Return the part that a block is; one without its text or picture is kept."""
    data = {"block": block}
    part_type, key = fields.BLOCKS.get(block["type"], ("custom", ""))
    if not text(block.get(key)):
        return PartDraft("custom", data=data, synthetic=not is_typed)

    value = block.pop(key)
    if part_type == "text":
        return PartDraft(part_type, value, data=data, synthetic=not is_typed)

    match = _DATA_URL.fullmatch(value)
    file = {"url": value} if match is None else embedded_file(match[1], match[2])
    return PartDraft(part_type, data={**file, **data}, synthetic=not is_typed)


def _are_blocks(value: Any) -> bool:
    """Return whether a value is a list of blocks that is not empty."""
    blocks = as_list(value)
    return bool(blocks) and all(is_block(block) for block in blocks)


# -- reasoning, calls and results ------------------------------------------------


def _reasoning_parts(item: Record) -> Parts:
    """Return a summary and, rarely, the content: lists of texts, or null."""
    parts: list[PartDraft] = []
    for key in ("summary", "content"):
        blocks = as_list(item.get(key))
        if blocks and all(text(value_at(block, "text")) for block in blocks):
            del item[key]
            for block in blocks:
                thought = block.pop("text")
                data = {"block": block, "of": key}
                parts.append(PartDraft("reasoning", thought, data=data))
    return tuple(parts)


def _call_parts(item: Record, shape: fields.CallShape) -> Parts:
    if not (shape.tool or as_text(item.get("name"))):
        # A tool part needs the name of a tool; the record is kept as it is.
        return (PartDraft("custom"),)

    columns = {"tool": shape.tool, **_status_of_call(item, shape)}
    columns |= take_fields(item, shape.fields)
    if shape.json is not None:
        call_input = take_json(item, shape.json)
        if call_input is not None:
            columns["input"] = call_input
    part = PartDraft("tool", **columns)

    if shape.tool == "image_generation" and text(item.get("result")):
        image = embedded_file("image/png", item.pop("result"))
        return (part, PartDraft("file", data={**image, "of": "result"}))
    return (part,)


def _status_of_call(item: Record, shape: fields.CallShape) -> Columns:
    """Return whether a call ended; no result follows one that the provider ran."""
    if not shape.is_hosted:
        return {"status": "pending"}
    if item.get("status") == "failed":
        return {"status": "error", "outcome": "failed"}
    return {"status": "completed"}


def _result_parts(item: Record, outcome: Any, course: Course) -> Parts:
    """Return a result, with the ending of its call, and the files in it."""
    columns: Columns = take_fields(item, fields.RESULT)
    output, more, data = _take_output(item)
    columns |= course.ending_of_call(columns.get("call_id"), output)
    # sessiondb writes the outcome of a call if the text of its result does not say it.
    if outcome == COMPLETED:
        columns |= ending_of(None)
    elif text(outcome) and outcome in OUTCOMES:
        columns |= ending_of(outcome)
    return (PartDraft("tool-result", output, data=data, **columns), *more)


def _take_output(item: Record) -> tuple[str, list[PartDraft], Record]:
    """Return the text of a result, its other parts, and what writes them again.

    Of a list of blocks the texts are joined, for `Part.text` is what is searched.
    ``shape`` has the length of each text, and null for a block that is a part. The
    tools that a search found are in the record, and their names the text.
    """
    output: Any = item.get("output")
    if text(output):
        del item["output"]
        return output, [], {}
    if not _are_blocks(output):
        tools = [tool.get("name") for tool in objects_in(item.get("tools"))]
        return ", ".join(name for name in tools if text(name)), [], {"absent": True}

    del item["output"]
    texts: list[str] = []
    more: list[PartDraft] = []
    shape: list[int | None] = []
    for block in output:
        block_text = _plain_text(block)
        if block_text is None:
            more.append(_part_of_block(block))
            shape.append(None)
        else:
            texts.append(block_text)
            shape.append(len(block_text))
    return "\n".join(texts), more, {"shape": shape}


def _plain_text(block: Record) -> str | None:
    """Return the text of a block that has nothing else."""
    if block.keys() == {"type", "text"} and block["type"] == "input_text":
        return as_text(block["text"])
    return None


# -- events --------------------------------------------------------------------


def _turn_settings(record: Record, payload: Record, course: Course) -> Columns:
    """Return the model of a turn, and the kind of an event that changes a setting."""
    model = payload.get("model")
    if clean_name(model):
        course.model = model
    columns = _model_of_turn(course)
    is_other_model = course.model != course.turn_model
    course.turn_model = course.model

    effort = payload.get("effort")
    if clean_name(effort) and effort != course.effort:
        course.effort = effort
        # The level of the event is in its data, unless that has another one.
        if "level" not in record:
            record["level"] = effort
            columns["kind"] = "thinking_level_change"
    elif is_other_model:
        columns["kind"] = "model_change"
    return columns


def _usage_columns(tokens: Tokens | None, course: Course) -> Columns:
    """Return the counts of a response; none for a record that repeats them."""
    if tokens is None:
        return {}
    return {"kind": "usage", "tokens": tokens, **_model_of_turn(course)}


def _summary_parts(payload: Record) -> Parts:
    """Return the summary; if the provider holds it, the texts that were kept."""
    summary = payload.get("message")
    if summary and text(summary):
        del payload["message"]
        return (PartDraft("text", summary),)

    texts = []
    for item in objects_in(payload.get("replacement_history")):
        if item.get("role") in ("user", "assistant"):
            blocks = as_list(item.get("content"))
            texts += [value_at(block, "text") for block in blocks]

    # The record keeps those, so they are not written again.
    history = "\n\n".join(item for item in texts if text(item))
    return (PartDraft("text", history, data={"added": True}),) if history else ()
