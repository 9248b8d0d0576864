"""Records of Goose to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Goose has
two roles: results of tools are messages of the user there, and so is much of the
text that the program adds for the agent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessiondb.formats.content import embedded_file
from sessiondb.formats.goose import fields
from sessiondb.formats.goose.usage import cost_of_usage, tokens_of_usage
from sessiondb.formats.goose.visibility import is_shown, visibility_of
from sessiondb.formats.kit.blocks import mark_synthetic
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    clean_text,
    fitting,
    is_object,
    take_fields,
    text,
    value_at,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.patterns import late_pattern

#: Types of parts that blocks become or that mean something here.
_HERE = frozenset(
    {
        "reasoning", "tool", "tool-result", "file", "custom", "compaction", "agent",
        "patch", "snapshot", "subtask", "retry", "step-start", "step-finish",
    }
)  # fmt: skip
#: Visible to the agent alone; see `visibility_of`.
_FOR_AGENT = (False, True)
_FAILED = {"status": "error", "outcome": "failed"}
#: Each load of a session puts one more of these before the text of an error.
_PREFIXES = late_pattern(r"\A(?:-32603: )+")

Record = dict[str, Any]
Parts = list[PartDraft]


def message_draft(
    record: Record, message_id: str, *, is_summary: bool = False
) -> MessageDraft:
    """Return the message that a record is.

    Raises `OddRecordError` for a record without a role, or one that cannot be stored.
    """
    stated_role = record.get("role")
    if not usable_id(stated_role):
        raise OddRecordError("has no role")

    # A record is written back with the keys that it had.
    absent = set(fields.KEYS).difference(record)
    kinds = [_kind_of_block(block) for block in as_list(record.get("content"))]
    role, kind = _role_of(record, str(stated_role), kinds)
    if is_summary:
        role, kind = "event", "compaction"
    if role == stated_role or (role == "tool" and stated_role == "user"):
        del record["role"]
    if record.get("id") == message_id:
        del record["id"]

    parts = tuple(_take_content(record))
    if role == "user" and not is_shown(record.get("metadata")):
        # A compaction repeats the prompt, and hides the one before it.
        parts = tuple(mark_synthetic(part) for part in parts)
    columns: Record = _model_columns(record) if role == "assistant" else {}
    time = _take_time(record)
    if absent:
        record["absent"] = sorted(absent)

    check_storable(record)
    columns["time_created"] = time
    return MessageDraft(role, parts, message_id, kind, data=record, **columns)


def _take_time(record: Record) -> int | None:
    """Take the time of a message; one that is not in ms stays in the record, too."""
    created = record.get("created")
    time = fields.time_of(created)
    if time is not None and time != created:
        del record["created"]

    return time


# -- roles -------------------------------------------------------------------


def _kind_of_block(block: Any) -> str | None:
    """Return the type of a block; of an untyped one by what it holds."""
    if not is_object(block):
        return None
    if "type" in block:
        return as_text(block["type"])

    # The first key in the order of the table decides: a result may have a text, too.
    for key, kind in fields.UNTYPED.items():
        if key in block:
            return kind
    return None


def _role_of(
    record: Record, stated_role: str, kinds: list[Any]
) -> tuple[str, str | None]:
    """Return the role of a message here, and the kind of an event."""
    if stated_role not in fields.ROLES:
        return "event", stated_role

    if kinds and fields.SHOWN_ONLY.issuperset(kinds):
        return "event", kinds[0]
    if "toolResponse" in kinds:
        return "tool", None

    # A model may call tools out of the user's sight: these are its own words.
    is_hidden = visibility_of(record.get("metadata")) == _FOR_AGENT
    if is_hidden and "toolRequest" not in kinds and stated_role != "system":
        return "event", "custom_message"

    return stated_role, None


def _model_columns(record: Record) -> Record:
    """Return the model that answered, its counts and its cost.

    The model that was requested may be another one.
    """
    inference = as_object(value_at(record, "metadata", "inference"))
    model = inference.get("resolvedModel") or inference.get("requestedModel")
    values = {"provider_id": inference.get("provider"), "model_id": model}
    columns: Record = {key: value for key, value in values.items() if clean_text(value)}
    used = value_at(record, "metadata", "usage")
    return columns | {"tokens": tokens_of_usage(used), "cost": cost_of_usage(used)}


# -- content -----------------------------------------------------------------


def _take_content(record: Record) -> Parts:
    """Take the blocks of a message; content that is not a list stays in the record."""
    parts: Parts = []
    if isinstance(record.get("content"), list):
        for block in record.pop("content"):
            parts += _parts_of_block(block)
    return parts


def _parts_of_block(block: Any) -> Parts:
    """Return the parts of a block: of a result what it holds besides its text, too.

    A block without a type, or with a key that means something else in a part, is kept
    as it is.
    """
    kind = _kind_of_block(block)
    part_keys = fields.OWN.get(kind, frozenset())
    if kind is None or not usable_id(kind) or not part_keys.isdisjoint(block):
        return [PartDraft("custom", data={"block": block})]
    if "type" not in block:
        return [_untyped_part(block)]

    del block["type"]
    if kind in fields.TEXTS:
        text_type, table = fields.TEXTS[kind]
        return [PartDraft(text_type, **take_fields(block, table), data=block)]
    match kind:
        case "toolRequest" | "frontendToolRequest":
            return [_call_part(block, kind)]
        case "toolResponse":
            return _result_parts(block)
        case "image":
            return [_image_part(block)]
        case "redactedThinking":
            return [PartDraft("reasoning", data={"redacted": block})]
        case "reasoning":
            columns = take_fields(block, fields.TEXTS["text"][1])
            return [PartDraft("reasoning", **columns, data={"type": kind, **block})]

    # A block of another type is kept under a name without a meaning here.
    if kind in _HERE:
        return [PartDraft("custom", data={"type": kind, **block})]
    return [PartDraft(kind, data=block)]


def _untyped_part(block: Record) -> PartDraft:
    """Return the part of a block of the first releases (November 2024)."""
    if "tool_result" in block:
        return _untyped_result(block)

    if "tool_name" in block and not clean_name(block["tool_name"]):
        return PartDraft("custom", data={"block": block})

    block["untyped"] = True
    if "tool_name" not in block:
        return PartDraft(
            "text", **take_fields(block, fields.TEXTS["text"][1]), data=block
        )

    columns = take_fields(block, fields.UNTYPED_CALL)
    if "arguments" in block:
        columns["input"] = block.pop("arguments")

    return PartDraft("tool", **columns, status="pending", data=block)


def _untyped_result(block: Record) -> PartDraft:
    """Return a result as it was: the content, or one side of what Rust returned."""
    columns = take_fields(block, fields.RESULT)
    value = block["tool_result"]
    sides = as_object(value)
    # One of the two is a list, the other is not there.
    items = as_list(value) + as_list(sides.get("Ok"))
    texts = [as_text(value), *(as_text(value_at(item, "text")) for item in items)]
    texts = [text for text in texts if text]

    result = texts[0] if texts else None
    if "Err" in sides:
        columns |= _FAILED
        result = str(sides["Err"])

    return PartDraft("tool-result", result, **columns, data={**block, "untyped": True})


def _call_part(block: Record, kind: str) -> PartDraft:
    """Return a call; one that could not be parsed has no name, and is kept as it is."""
    call = as_object(block.get("toolCall"))
    value = as_object(call.get("value"))
    tool_columns = take_fields(value, fields.CALLED)
    if "tool" not in tool_columns:
        return PartDraft("custom", _error_text(call), data={"type": kind, **block})

    columns = tool_columns | take_fields(block, fields.CALL)
    if "arguments" in value:
        columns["input"] = value.pop("arguments")

    # A name that a model gave to the call later.
    title = value_at(block, "_meta", "goose.toolSummary.title")
    columns["title"] = fitting(title, clean_text)

    if kind != "toolRequest":
        block["type"] = kind

    return PartDraft("tool", **columns, status="pending", data=block)


def _error_text(result: Record) -> str | None:
    """Return the error of a call or a result, without what loading it has added."""
    error = as_text(result.get("error"))
    return None if error is None else _PREFIXES.sub("", error)


def _image_part(block: Record) -> PartDraft:
    data = as_text(block.get("data"))
    if data is None:
        return PartDraft("custom", data={"type": "image", **block})

    del block["data"]
    content = embedded_file(block.pop("mimeType", None), data)

    return PartDraft("file", data={**content, **block})


# -- results -----------------------------------------------------------------


def _result_parts(block: Record) -> Parts:
    """Return a result, followed by its images and other texts.

    The part has the first text that is meant for the agent. Of what became parts, the
    record keeps the rest in its place: ``at`` says which one.
    """
    columns = take_fields(block, fields.RESULT)
    result = as_object(block.get("toolResult"))
    value = result.get("value")
    items = as_list(value) + as_list(value_at(value, "content"))

    item_parts: Parts = []
    for index, item in enumerate(items):
        # Some items are for the user alone.
        audience = value_at(item, "annotations", "audience")
        if not isinstance(audience, list) or "assistant" in audience:
            item_parts += _parts_of_item(index, item)

    if result.get("status") == "error" or value_at(value, "isError") is True:
        columns |= _FAILED

    part = PartDraft("tool-result", _error_text(result), **columns, data=block)
    if part.text is not None:
        return [part, *item_parts]

    for number, extra in enumerate(item_parts):
        if extra.type == "text":
            del item_parts[number]
            part = replace(part, text=extra.text, data={**block, **extra.data})
            break
    return [part, *item_parts]


def _parts_of_item(index: int, item: Any) -> Parts:
    """Return the part of an item that is a text or an image; empty for another one."""
    kind = value_at(item, "type")
    if kind == "text" and text(item.get("text")):
        return [PartDraft("text", item.pop("text"), data={"at": index})]

    if kind == "image" and text(item.get("data")):
        content = embedded_file(item.get("mimeType"), item.pop("data"))
        return [PartDraft("file", data={**content, "at": index})]

    return []
