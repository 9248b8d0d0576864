"""Messages of the Messages API to drafts: known fields become columns, the rest `data`.

These functions take their message apart, so it must not be used afterwards. Results of
calls are in a message of the user, which is one of role ``tool`` here.
"""

from __future__ import annotations

from typing import Any

from sessiondb.dataclass import replace
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    clean_name,
    fitting,
)
from sessiondb.formats.providers.anthropic.blocks import take_content
from sessiondb.formats.providers.anthropic.fields import tokens_of
from sessiondb.formats.providers.conversation import ANTHROPIC
from sessiondb.formats.providers.rest import block_part, check_parts
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.model.aliases import FINISH

Record = dict[str, Any]

#: The types of the parts that blocks with a meaning here become.
_KNOWN = frozenset({"text", "reasoning", "tool", "tool-result", "file", "custom"})


def message_draft(message: Record) -> MessageDraft:
    """Return the message that one of the API is, also an answer with its usage.

    Raises `OddRecordError` for one that cannot be stored.
    """
    role = message["role"]
    parts = _take_parts(message)
    if any(part.type == "tool-result" for part in parts):
        role = "tool"

    reason = as_text(message.get("stop_reason"))
    finish = None if reason is None else FINISH.get(reason, "other")
    data: Record = {}
    if role == "system":
        # Between other messages, unlike the system text of a request.
        data[ANTHROPIC] = {"role": role}
    if finish == "other":
        data["stop_reason"] = reason
    return MessageDraft(
        role,
        parts,
        response_id=fitting(message.get("id"), clean_name),
        model_id=fitting(message.get("model"), clean_name),
        tokens=tokens_of(as_object(message.get("usage"))),
        finish=finish,
        data=data,
    )


def system_draft(system: Any) -> MessageDraft:
    """Return the event that gives a conversation its system text.

    Raises `OddRecordError` for one that cannot be stored.
    """
    record = {"content": system}
    return MessageDraft("event", _take_parts(record), kind="context")


def _take_parts(message: Record) -> tuple[PartDraft, ...]:
    parts = []
    for part in take_content(message, "content"):
        if part.type not in _KNOWN:
            block = {"type": part.type, **part.data}
            part = PartDraft("custom", data={"block": block})  # noqa: PLW2901
        if part.type == "tool-result" and part.data.get("is_error") is True:
            part = replace(part, status="error", outcome="failed")  # noqa: PLW2901
        parts.append(block_part(part, ANTHROPIC))
    check_parts(parts)
    return tuple(parts)
