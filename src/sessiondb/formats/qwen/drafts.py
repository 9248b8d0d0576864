"""Records of Qwen Code to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record of a log is one message: those of the system are events, and all of them are
links of the tree, as they are for the program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    fitting,
    take_fields,
    value_at,
)
from sessiondb.formats.kit.genai import (
    draft_of,
    mark_added_texts,
    parts_of,
    take_tokens,
    texts_of,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.qwen import fields
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
Columns = dict[str, Any]
_ADDED = late_pattern(rf"\s*(?:{'|'.join(fields.ADDED)})")


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message of a record; raises `OddRecordError` as `draft_of` does."""
    return draft_of(record, message_id, _columns_of)


def _columns_of(record: Record, kind: str) -> Columns:
    match kind:
        case "user":
            return _user_columns(record)
        case "assistant":
            return _answer_columns(record)
        case "tool_result":
            return _result_columns(record)
        case "system":
            return _event_columns(record)
        case _:
            return {"role": "event", "kind": kind, "parts": _take_content(record)}


def _take_content(record: Record) -> tuple[PartDraft, ...]:
    """Take the parts of a record's message."""
    message = as_object(record.get("message"))
    parts = tuple(parts_of(message.pop("parts", None)))

    # The type of the record is the same as the role.
    message.pop("role", None)
    if record.get("message") == {}:
        del record["message"]
    return parts


# -- messages ------------------------------------------------------------------


def _user_columns(record: Record) -> Columns:
    """A prompt, or a text that the program puts into the conversation."""
    subtype = as_text(record.get("subtype"))
    parts = _take_content(record)
    if subtype not in fields.TYPED or record.get("provenance") == "system":
        return {"role": "event", "kind": "custom_message", "parts": parts}

    typed = value_at(record, "systemPayload", "displayText")
    return {"role": "user", "parts": mark_added_texts(parts, _ADDED, typed)}


def _answer_columns(record: Record) -> Columns:
    usage = record.get("usageMetadata")
    return {
        "role": "assistant",
        "parts": _take_content(record),
        "tokens": take_tokens(usage, fields.TOKENS, total="totalTokenCount"),
        **take_fields(record, fields.RECORD),
    }


def _result_columns(record: Record) -> Columns:
    """A result; the outcome of its call is beside the message."""
    state = as_string(value_at(record, "toolCallResult", "status"))
    failure = fields.FAILED.get(state, {})

    parts: list[PartDraft] = []
    for part in _take_content(record):
        # Files of a result are parts of their own.
        is_result = part.type == "tool-result"
        parts.append(replace(part, **failure) if is_result else part)
    return {"role": "tool", "parts": tuple(parts)}


# -- events --------------------------------------------------------------------


def _event_columns(record: Record) -> Columns:
    subtype = fitting(record.get("subtype"), usable_id, "system")
    columns: Columns = {"role": "event", "kind": fields.KINDS.get(subtype, subtype)}
    match subtype:
        case "chat_compression":
            columns["parts"] = _summary_parts(record)
        case "session_model":
            model = as_text(value_at(record, "systemPayload", "modelId"))
            columns["model_id"] = model or None
        case "session_approval_mode":
            mode = as_text(value_at(record, "systemPayload", "mode"))
            if mode is not None:
                record["mode"] = mode
        case _:
            columns["parts"] = _take_content(record)
    return columns


def _summary_parts(record: Record) -> tuple[PartDraft, ...]:
    """Return the summary: the first content, unless all of the history is kept.

    `QwenTree.find_first_kept` has added the number of contents before those.
    """
    history = as_list(value_at(record, "systemPayload", "compressedHistory"))
    if record.pop("summarised", None) == 0 or not history:
        return ()
    texts = texts_of(value_at(history[0], "parts"))
    return tuple(PartDraft("text", summary) for summary in texts)


# -- requests without an answer ------------------------------------------------


def as_usage(draft: MessageDraft) -> MessageDraft:
    """Return a request whose answer is not recorded, with its usage."""
    event = dict(as_object(value_at(draft.data, "systemPayload", "uiEvent")))
    tokens = take_tokens(event, fields.EVENT_TOKENS, total="total_token_count")
    columns = take_fields(event, fields.EVENT)
    return replace(draft, kind="usage", tokens=tokens, **columns)
