"""Messages of Strands as messages of a session, and the same messages again.

A message that was redacted is stored as it is now, and nothing of what it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from strands.types.session import (
    SessionMessage,
    decode_bytes_values,
    encode_bytes_values,
)

from sessiondb.adapters.drafts import part_as_read
from sessiondb.adapters.strands.blocks import (
    block_of_part,
    part_of_block,
    readable_content,
)
from sessiondb.adapters.strands.keys import SOURCE
from sessiondb.model import Message, MessageDraft, Part, Tokens, bounds, text

#: The key of a message or an agent that is stored as JSON, since a column refused it.
AS_JSON = "json"


def exact_draft(
    message: SessionMessage, name: str, model: str | None, provider: str | None
) -> MessageDraft:
    """Return a message that comes back equal: `session_draft`, else `plain_draft`."""
    draft = session_draft(message, name, model, provider)
    try:
        parts = [part_as_read(part) for part in draft.parts]
    except (ValueError, TypeError):  # bytes or NaN in the input of a call
        return plain_draft(message, name)
    content = message.message
    if message.redact_message is not None:
        content = message.redact_message
    if _content_of(draft.role, parts, draft.data["strands"]) == content:
        return draft
    return plain_draft(message, name)


def session_draft(
    message: SessionMessage, name: str, model: str | None, provider: str | None
) -> MessageDraft:
    """Return a message of an agent; *name* is its id, *model* that of an answer.

    Raises `KeyError` and `TypeError` for something that is not a message.
    """
    content = message.message
    redacted = message.redact_message
    if redacted is not None:
        content = redacted
    parts = tuple([part_of_block(block) for block in content["content"]])

    remainder: dict[str, Any] = {
        "created_at": message.created_at,
        "updated_at": message.updated_at,
    }
    further = {k: v for k, v in content.items() if k not in ("role", "content")}
    if further:
        remainder["message"] = further
    if redacted is not None:
        remainder["redacted"] = True

    role: str = content["role"]
    if role == "assistant":
        return MessageDraft(
            role,
            parts,
            name,
            provider_id=provider,
            model_id=model,
            tokens=_tokens_of(content),
            time_created=milliseconds_of(message.created_at),
            data={SOURCE: remainder},
        )
    # Strands has results in messages of the user, who did not write them.
    if parts and all(part.type == "tool-result" for part in parts):
        remainder["role"], role = role, "tool"
    return MessageDraft(
        role,
        parts,
        name,
        time_created=milliseconds_of(message.created_at),
        data={SOURCE: remainder},
    )


def message_of_agent(message: Message, index: int) -> SessionMessage:
    """Return the message of an agent that a message of its session is."""
    remainder = message.data["strands"]
    if AS_JSON in remainder:
        return SessionMessage(
            message_id=index, **decode_bytes_values(json.loads(remainder[AS_JSON]))
        )
    content = _content_of(message.role, message.parts, remainder)
    return SessionMessage(
        message=content,
        message_id=index,
        redact_message=content if remainder.get("redacted") else None,
        created_at=remainder["created_at"],
        updated_at=remainder["updated_at"],
    )


def _content_of(role: str, parts: Sequence[Part], remainder: Mapping[str, Any]) -> Any:
    return {
        "role": remainder.get("role", role),
        "content": [block_of_part(part) for part in parts],
        **remainder.get("message", {}),
    }


def plain_draft(message: SessionMessage, name: str) -> MessageDraft:
    """Return a message that columns refuse as JSON, beside its role and its text."""
    content: Any = message.message
    redacted = message.redact_message
    if redacted is not None:
        content = redacted
    record = {
        "message": content,
        "redact_message": redacted,
        "created_at": message.created_at,
        "updated_at": message.updated_at,
    }
    words = readable_content(content["content"]) or ""
    role = content["role"] if content["role"] in ("user", "assistant") else "user"
    return MessageDraft(
        role,
        (text(words.encode(errors="replace").decode()),),
        name,
        data={SOURCE: {AS_JSON: json.dumps(encode_bytes_values(record))}},
    )


def milliseconds_of(time: str) -> int | None:
    """Return a time of Strands in Unix ms; None for one that cannot be stored."""
    try:
        moment = int(datetime.fromisoformat(time).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if bounds.TIME_LEAST <= moment <= bounds.TIME_MOST else None


def _tokens_of(content: Mapping[str, Any]) -> Tokens | None:
    """Return the tokens of an answer; None if it does not state them."""
    match content:
        case {"metadata": {"usage": dict(usage)}}:
            pass
        case _:
            return None

    def count(name: str) -> int | None:
        number = usage.get(name)
        is_count = type(number) is int and 0 <= number <= bounds.TOKENS_MOST
        return number if is_count else None

    sent, answered = count("inputTokens"), count("outputTokens")
    read, written = count("cacheReadInputTokens"), count("cacheWriteInputTokens")
    cached = (read or 0) + (written or 0)
    # Some models count the cache as input, and others beside it: the total says which.
    if sent is not None and cached and count("totalTokens") == sent + (answered or 0):
        sent = max(sent - cached, 0)
    tokens = Tokens(sent, answered, cache_read=read, cache_write=written)
    return tokens if tokens.known else None
