"""Records of Qwen Code to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record of a log is one message: those of the system are events, and all of them are
links of the tree, as they are for the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    fitting,
    is_object,
    take,
    within,
)
from sessiondb.formats.kit.genai import parts_of, texts_of
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.qwen import fields
from sessiondb.model import MessageDraft, PartDraft, Tokens

Record = dict[str, Any]
Columns = dict[str, Any]

_HOOK = ("<qwen:user-prompt-submit-context>", "<system-reminder>")


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message that a record is.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    kind = record.get("type")
    if not usable_id(kind):
        raise OddRecordError("has no type")
    check_storable(record)

    del record["type"]
    found = _ROLES.get(str(kind), _unknown)(record, str(kind))
    found["time_created"] = time_of_text(record.get("timestamp"))
    return MessageDraft(id=message_id, data=record, **found)


def _content(record: Record) -> tuple[PartDraft, ...]:
    """Take the parts of a record's message."""
    said = record.get("message")
    if not is_object(said):
        return ()

    parts = tuple(parts_of(said.pop("parts", None)))
    said.pop("role", None)
    if not said:
        del record["message"]
    return parts


def _unknown(record: Record, kind: str) -> Columns:
    return {"role": "event", "kind": kind, "parts": _content(record)}


# -- messages ------------------------------------------------------------------


def _user(record: Record, _: str) -> Columns:
    """A prompt, or what the program puts into the conversation in its place."""
    subtype = as_text(record.get("subtype"))
    parts = _content(record)
    is_typed = subtype in fields.TYPED and record.get("provenance") != "system"
    if not is_typed:
        return {"role": "event", "kind": "custom_message", "parts": parts}
    return {"role": "user", "parts": tuple(map(_marked, parts))}


def _marked(part: PartDraft) -> PartDraft:
    """Mark what a hook or the program adds to a prompt."""
    said = (part.text or "").lstrip()
    if part.type != "text" or not said.startswith(_HOOK):
        return part
    return replace(part, data={**part.data, "synthetic": True})


def _assistant(record: Record, _: str) -> Columns:
    return {
        "role": "assistant",
        "parts": _content(record),
        "tokens": _tokens(record),
        **take(record, fields.RECORD),
    }


def _tokens(record: Record) -> Tokens | None:
    """Return disjoint counts; numbers that contradict each other stay in ``data``.

    Thoughts are part of the output, or beside it, depending on the provider: the total
    says which.
    """
    usage = record.get("usageMetadata")
    if not is_object(usage):
        return None

    known = take(dict(usage), fields.TOKENS)
    tokens = _disjoint(known, usage.get("totalTokenCount"))
    if tokens is not None:
        take(usage, fields.TOKENS)
    return tokens


def _disjoint(known: dict[str, int], total: Any) -> Tokens | None:
    output, thoughts = known.get("output", 0), known.get("reasoning", 0)
    if total == known.get("input", 0) + output:
        output -= thoughts
    rest = known.get("input", 0) - known.get("cache_read", 0)
    if not known or min(rest, output) < 0:
        return None

    disjoint = {"input": rest, "output": output}
    return Tokens(**known | {key: disjoint[key] for key in disjoint if key in known})


def _result(record: Record, _: str) -> Columns:
    """A result; what became of its call is beside the message."""
    state = as_text(within(record, "toolCallResult", "status")) or ""
    status, outcome = fields.STATUS.get(state, (None, None))
    parts = [
        replace(part, status=status, outcome=outcome)
        if part.type == "tool-result" and outcome
        else part
        for part in _content(record)
    ]
    return {"role": "tool", "parts": tuple(parts)}


# -- events --------------------------------------------------------------------


def _system(record: Record, _: str) -> Columns:
    subtype = fitting(record.get("subtype"), usable_id, "system")
    kind = fields.KINDS.get(subtype, subtype)
    return {"role": "event", "kind": kind, **_EVENTS.get(subtype, _note)(record)}


def _note(record: Record) -> Columns:
    return {"parts": _content(record)}


def _compaction(record: Record) -> Columns:
    """Yield the summary; `reader` says which message is the first that stays."""
    history = within(record, "systemPayload", "compressedHistory")
    before = record.pop("summarised", len(as_list(history)))
    texts = [texts_of(within(item, "parts")) for item in as_list(history)[:before]]
    said = texts[0] if texts else []
    return {"parts": tuple(PartDraft("text", item) for item in said)}


def _model(record: Record) -> Columns:
    model = as_text(within(record, "systemPayload", "modelId"))
    return {"model_id": model or None}


def _mode(record: Record) -> Columns:
    mode = as_text(within(record, "systemPayload", "mode"))
    if mode is not None:
        record["mode"] = mode
    return {}


_EVENTS: Mapping[str, Callable[[Record], Columns]] = {
    "chat_compression": _compaction,
    "session_model": _model,
    "session_approval_mode": _mode,
}
_ROLES: Mapping[str, Callable[[Record, str], Columns]] = {
    "user": _user,
    "assistant": _assistant,
    "tool_result": _result,
    "system": _system,
}


# -- requests without an answer ------------------------------------------------


def as_usage(draft: MessageDraft) -> MessageDraft:
    """Return a request whose answer is not recorded, with what it used."""
    event = dict(as_object(within(draft.data, "systemPayload", "uiEvent")))
    known = take(event, fields.EVENT)
    model = known.pop("model_id", None)
    tokens = _disjoint(known, event.get("total_token_count"))
    return replace(draft, kind="usage", model_id=model, tokens=tokens)
