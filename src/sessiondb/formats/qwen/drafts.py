"""Records of Qwen Code to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record of a log is one message: those of the system are events, and all of them are
links of the tree, as they are for the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    fitting,
    take,
    within,
)
from sessiondb.formats.kit.genai import (
    Make,
    draft_of,
    marked,
    parts_of,
    take_tokens,
    texts_of,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.qwen import fields
from sessiondb.model import MessageDraft, PartDraft

Record = dict[str, Any]
Columns = dict[str, Any]
_ADDED = re.compile(rf"\s*(?:{'|'.join(fields.ADDED)})")


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message of a record; raises `OddRecordError` as `draft_of` does."""
    return draft_of(record, message_id, _ROLES, _unknown)


def _content(record: Record) -> tuple[PartDraft, ...]:
    """Take the parts of a record's message."""
    said = as_object(record.get("message"))
    parts = tuple(parts_of(said.pop("parts", None)))

    # The type of the record says the same as the role.
    said.pop("role", None)
    if record.get("message") == {}:
        del record["message"]
    return parts


def _unknown(record: Record, kind: str) -> Columns:
    return {"role": "event", "kind": kind, "parts": _content(record)}


# -- messages ------------------------------------------------------------------


def _user(record: Record, _: str) -> Columns:
    """A prompt, or a text that the program puts into the conversation."""
    subtype = as_text(record.get("subtype"))
    parts = _content(record)
    is_typed = subtype in fields.TYPED and record.get("provenance") != "system"
    if not is_typed:
        return {"role": "event", "kind": "custom_message", "parts": parts}

    typed = within(record, "systemPayload", "displayText")
    return {"role": "user", "parts": marked(parts, _ADDED, typed)}


def _assistant(record: Record, _: str) -> Columns:
    return {
        "role": "assistant",
        "parts": _content(record),
        "tokens": take_tokens(
            record.get("usageMetadata"), fields.TOKENS, total="totalTokenCount"
        ),
        **take(record, fields.RECORD),
    }


def _result(record: Record, _: str) -> Columns:
    """A result; the outcome of its call is beside the message."""
    state = as_string(within(record, "toolCallResult", "status"))
    found = fields.FAILED.get(state, {})

    # Files of a result are parts of their own.
    known = {"tool-result": found}
    parts = (replace(p, **known.get(p.type, {})) for p in _content(record))
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
    history = as_list(within(record, "systemPayload", "compressedHistory"))
    before = record.pop("summarised", len(history))

    # The first content is the summary, unless all of the history is kept.
    summary = history[: min(before, 1)]
    said = chain.from_iterable(texts_of(within(item, "parts")) for item in summary)
    return {"parts": tuple(map(partial(PartDraft, "text"), said))}


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
_ROLES: Mapping[str, Make] = {
    "user": _user,
    "assistant": _assistant,
    "tool_result": _result,
    "system": _system,
}


# -- requests without an answer ------------------------------------------------


def as_usage(draft: MessageDraft) -> MessageDraft:
    """Return a request whose answer is not recorded, with its usage."""
    event = dict(as_object(within(draft.data, "systemPayload", "uiEvent")))
    tokens = take_tokens(event, fields.EVENT_TOKENS, total="total_token_count")
    known = take(event, fields.EVENT)
    return replace(draft, kind="usage", tokens=tokens, **known)
