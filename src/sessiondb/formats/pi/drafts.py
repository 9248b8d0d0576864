"""Records of pi to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record of a log is one message: those outside of the conversation are events, and all
of them are links of the tree, as they are for the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sessiondb.formats.content import embedded_file
from sessiondb.formats.kit.blocks import is_block, text_part
from sessiondb.formats.kit.fields import (
    Fields,
    as_list,
    as_object,
    as_string,
    as_text,
    check_storable,
    clean_name,
    is_object,
    take_fields,
    text,
    value_at,
)
from sessiondb.formats.kit.json import OddRecordError, known_time, usable_id
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.pi import fields
from sessiondb.formats.pi.usage import take_tokens
from sessiondb.model import MessageDraft, PartDraft

#: How a reference to a file in the folder ``blobs`` begins.
BLOB = "blob:sha256:"

Record = dict[str, Any]
Parts = tuple[PartDraft, ...]
#: The columns of a message, besides its parts.
Columns = dict[str, Any]


def message_draft(record: Record, message_id: str, source: str) -> MessageDraft:
    """Return the message that a record is in a log of the program *source*.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    kind = record.pop("type")

    is_message = kind == "message"
    columns = _take_message(record) if is_message else _take_event(record, kind)

    # A record is written when it is over; a message also says when it began.
    written = time_of_text(record.get("timestamp"))
    begun = known_time(value_at(record, "message", "timestamp"))
    columns["time_created"] = written if begun is None else begun
    if columns["role"] == "assistant":
        columns["time_completed"] = written

    if source == "oh-my-pi":
        # It does not send failed answers again, and keeps to a model that was chosen,
        # whatever model answers (``session-context.ts``). pi and xcsh have no such
        # rules there.
        if columns.get("finish") in fields.FAILED:
            record["unsent"] = True
        if columns.get("kind") == "model_change" and "model" in record:
            record["chosen"] = True

    check_storable(record)
    return MessageDraft(id=message_id, data=record, **columns)


# -- messages ----------------------------------------------------------------


def _take_message(record: Record) -> Columns:
    message = record.get("message")
    if not is_object(message):
        return {"role": "event", "kind": "message"}

    columns = _take_by_role(message)
    if not message:
        del record["message"]
    return columns


def _take_by_role(message: Record) -> Columns:
    role = message.get("role")
    # Anything that a model is shown and that was not typed.
    shown: Columns = {"role": "event", "kind": "custom_message"}
    match role:
        case "user":
            del message["role"]
            return {"role": "user", "parts": _take_content(message)}
        case "system":
            return _take_system_text(message)
        case "assistant":
            return _take_answer(message)
        case "toolResult":
            return _take_result(message)
        case "bashExecution" | "pythonExecution":
            return _take_command(message, *fields.EXECUTIONS[role])
        case "fileMention":
            return shown | {"parts": _take_mentioned_files(message)}
        case "branchSummary" | "compactionSummary":
            return shown | {"parts": _take_text(message, "summary")}
        case _:
            return shown | {"parts": _take_content(message)}


def _take_system_text(message: Record) -> Columns:
    del message["role"]
    parts = list(_take_content(message))

    # The prompt of pi is in named sections, and its content empty. A later message has
    # those that changed, and null for one that was removed, which stays in the data.
    sections = as_object(message.get("sections"))
    removed = [name for name, value in sections.items() if value is None]
    texts = take_fields(
        message, {"sections": {name: (name, text) for name in sections}}
    )
    parts += [
        PartDraft("text", texts.get(name), data={"section": name})
        for name in (*texts, *removed)
    ]
    return {"role": "system", "parts": tuple(parts)}


def _take_answer(message: Record) -> Columns:
    del message["role"]
    columns = {
        "role": "assistant",
        **take_fields(message, fields.ANSWER),
        "parts": _take_content(message),
        "tokens": take_tokens(message),
    }

    reason = as_text(message.get("stopReason"))
    if reason in fields.FINISH:
        columns["finish"] = fields.FINISH[message.pop("stopReason")]
    elif reason is not None:
        columns["finish"] = "other"

    if text(message.get("errorMessage")):
        columns["error"] = {"message": message.pop("errorMessage")}
    return columns


def _take_result(message: Record) -> Columns:
    """Take a result: its first text is that of the call, the rest follows."""
    del message["role"]
    parts = list(_take_content(message))
    if not parts or parts[0].type != "text":
        parts.insert(0, PartDraft("text", data={"absent": True}))

    columns = take_fields(message, fields.RESULT)
    if message.get("isError") is True:
        columns |= {"outcome": "failed", "status": "error"}
    parts[0] = replace(parts[0], type="tool-result", **columns)
    return {"role": "tool", "parts": tuple(parts), **_take_cost(message)}


def _take_command(message: Record, tool: str, argument: Fields) -> Columns:
    """Take a command that the user ran; a model is shown it unless it is excluded."""
    outcome = None
    if message.get("cancelled") is True:
        outcome = "interrupted"
    elif message.get("exitCode") not in (None, 0):
        outcome = "failed"

    part = PartDraft(
        "tool",
        tool=tool,
        input=take_fields(message, argument),
        status="error" if outcome else "completed",
        outcome=outcome,
        **take_fields(message, fields.OUTPUT),
    )
    is_excluded = message.get("excludeFromContext") is True
    kind = "custom" if is_excluded else "custom_message"
    return {"role": "event", "kind": kind, "parts": (part,)}


def _take_mentioned_files(message: Record) -> Parts:
    """Take the files that a prompt names with @: their content goes to the model."""
    files = as_list(message.get("files"))
    # If one of them is not a file, the list stays as it is.
    if not all(is_object(file) and "filename" not in file for file in files):
        return ()

    parts = []
    for file in files:
        columns = take_fields(file, fields.FILE)
        content = columns.pop("text", None)
        parts.append(PartDraft("file", content, data={**columns, **file}))
    if parts:
        del message["files"]
    return tuple(parts)


# -- events ------------------------------------------------------------------


def _take_event(record: Record, record_type: str) -> Columns:
    kind = fields.KINDS.get(record_type, record_type)
    if record_type == "custom_message" and record.get("customType") in fields.HIDDEN:
        kind = "custom"
    if kind != record_type or kind in ("custom", "custom_message"):
        # Messages of some roles are events of these kinds, too.
        record["type"] = record_type

    key, renamed = fields.RENAMED.get(record_type, ("", ""))
    if key in record:
        record[renamed] = record.pop(key)

    columns: Columns = {"role": "event", "kind": kind}
    match record_type:
        case "compaction" | "branch_summary":
            columns["parts"] = _take_text(record, "summary")
            columns |= _take_cost(record)
        case "custom_message":
            columns["parts"] = _take_content(record)
        case "context_edit":
            # The content that an earlier message has from here on; None omits it.
            if is_object(record.get("replacement")):
                columns["parts"] = _take_content(record["replacement"])
        case "model_change":
            columns |= _take_model(record)
        case "usage" | "model_usage":
            columns |= {**take_fields(record, fields.USAGE), **_take_cost(record)}
    return columns


def _take_cost(record: Record) -> Columns:
    """Take what anything but an answer cost: it counts, too (``usage-totals.ts``)."""
    return {**take_fields(record, fields.PAID), "tokens": take_tokens(record)}


def _take_model(record: Record) -> Columns:
    """Take provider and model; a text with both stays as it is."""
    model = as_text(record.get("model"))
    if model is None:
        return take_fields(record, fields.MODEL_CHANGE)

    # Without a provider, the text is the name of a model.
    provider = ""
    if "/" in model:
        provider, model = model.split("/", 1)
    names = {"provider_id": provider, "model_id": model}
    return {column: name for column, name in names.items() if clean_name(name)}


def settings_of_header(header: Record) -> Iterator[MessageDraft]:
    """Yield events of the model and the level that a header of version 1 states.

    Later versions have a record of each. These events are not records of a log.
    """
    created = time_of_text(header.get("timestamp"))
    model = take_fields(dict(header), fields.MODEL_CHANGE)
    if "model_id" in model:
        yield MessageDraft(
            "event",
            id=fields.MODEL,
            kind="model_change",
            data={"header": True},
            time_created=created,
            **model,
        )
    level = as_text(header.get("thinkingLevel"))
    if level:
        yield MessageDraft(
            "event",
            id=fields.LEVEL,
            kind="thinking_level_change",
            data={"header": True, "level": level},
            time_created=created,
        )


# -- content -----------------------------------------------------------------


def _take_text(record: Record, key: str) -> Parts:
    """Take a text that is not empty."""
    if not as_string(record.get(key)):
        return ()
    return (PartDraft("text", record.pop(key)),)


def _take_content(record: Record) -> Parts:
    """Take the content of a message, a text or a list of blocks."""
    content = record.get("content")
    if text(content):
        del record["content"]
        return (PartDraft("text", content, data={"plain": True}),)

    blocks = as_list(content)
    if not blocks or not all(is_block(block) for block in blocks):
        return ()
    del record["content"]
    return tuple(_part_of_block(block) for block in blocks)


def _part_of_block(block: Record) -> PartDraft:
    # A key of the block would be mistaken for ours when it is written again.
    if not fields.OWN.isdisjoint(block):
        return _verbatim_part(block)

    match block["type"]:
        case "text" | "thinking":
            return text_part(block)
        case "toolCall":
            return _call_part(block)
        case "image":
            return _image_part(block)
        case "redactedThinking":
            return PartDraft("reasoning", data={"block": block})
        case "reasoning" | "tool" | "tool-result" | "file" | "custom":
            # Blocks of other types become parts of these.
            return _verbatim_part(block)
        case _:
            return PartDraft(block.pop("type"), data=block)


def _verbatim_part(block: Record) -> PartDraft:
    return PartDraft("custom", data={"block": block})


def _call_part(block: Record) -> PartDraft:
    # The database refuses a call without the name of its tool.
    if not clean_name(block.get("name")):
        return _verbatim_part(block)

    del block["type"]
    return PartDraft(
        "tool", **take_fields(block, fields.CALL), status="pending", data=block
    )


def _image_part(block: Record) -> PartDraft:
    is_named = clean_name(block.get("mimeType", "image"))
    if not ("data" in block and is_named and fields.OWN_OF_IMAGE.isdisjoint(block)):
        return _verbatim_part(block)

    del block["type"]
    data, mime = as_text(block.get("data")), block.pop("mimeType", None)
    if data is None or data.startswith(BLOB):
        return PartDraft("file", data={"mime": mime, **block})

    del block["data"]
    return PartDraft("file", data={**embedded_file(mime, data), **block})
