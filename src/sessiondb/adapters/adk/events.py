"""Events of ADK as messages of a session, and back.

Texts, thoughts, arguments of calls and contents of files are in the parts of a message;
all that no column has is in its ``data``, under the key ``adk``, as ADK's own model
writes it. Each part of an event's content is one part of the message, so the event is
made again of both. An event that our columns refuse is complete in ``data``, as JSON.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from google.adk.events.event import Event
from google.genai import types

from sessiondb.adapters.drafts import part_as_read
from sessiondb.ids import MAX_ID_BYTES
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Tokens,
    file,
    reasoning,
    text,
    tool,
    tool_result,
)
from sessiondb.model.bounds import TIME_LEAST, TIME_MOST, TOKENS_MOST
from sessiondb.model.draft import NO_INPUT

#: The only keys of a response of which people read the value alone.
_OUTPUTS = ({"result"}, {"output"}, {"error"})


class AdkPart(NamedTuple):
    """The values of a part of an event that a part of a message has."""

    type: str | None
    text: str | None
    input_json: str | None
    content: bytes | None = None


def exact_draft(event: Event, own_id: str | None) -> MessageDraft:
    """Return an event as a message of which it is made again, with the id *own_id*.

    None is any id. An event that would not come back equal is an `opaque_draft`.
    """
    draft = event_draft(event, own_id)
    # A copy: the event is made by putting back into the record.
    record = copy.deepcopy(draft.data["adk"])
    again = event_of_record(record, columns_of(map(part_as_read, draft.parts)))
    is_equal = _record_of(again) == _record_of(event)
    return draft if is_equal else opaque_draft(event, own_id)


def event_draft(event: Event, own_id: str | None) -> MessageDraft:
    """Return an event as a message with the id *own_id*; None is any id."""
    record = _record_of(event)
    parts = [
        _taken_part(part, part_record)
        for part, part_record in zip(
            _content_parts(event), record.get("content", {}).get("parts", ()),
            strict=False,
        )
    ]  # fmt: skip
    for transcription in (event.input_transcription, event.output_transcription):
        if not parts and transcription is not None and transcription.text:
            parts.append(text(transcription.text))
    role, kind = _role_and_kind(event)
    if kind == "compaction":
        parts += list(_summary(event))
    return MessageDraft(
        role,
        tuple(parts),
        own_id,
        kind,
        agent=None if event.author in ("", "user") else event.author,
        model_id=event.model_version if role == "assistant" else None,
        tokens=_tokens_of(event.usage_metadata),
        finish=_finish_of(event),
        error=_error_of(event),
        time_created=time_ms(event.timestamp),
        data={"adk": record},
    )


def opaque_draft(event: Event, own_id: str | None) -> MessageDraft:
    """Return an event as a message with nothing but its id, its role and its texts."""
    record = _record_of(event)
    texts = [part.text for part in _content_parts(event) if part.text]
    plain = "\n".join(texts).encode(errors="replace").decode()
    role, kind = _role_and_kind(event)
    parts = (text(plain),) if plain else ()
    return MessageDraft(role, parts, own_id, kind, data={"adk": json.dumps(record)})


def event_of(message: Message) -> Event | None:
    """Return the event that a message is; None for one of another program."""
    record = message.data.get("adk")
    if record is None:
        return None
    return event_of_record(record, columns_of(message.parts))


def columns_of(parts: Iterable[Part]) -> list[AdkPart]:
    """Return the values of parts from which an event is made."""
    return [
        AdkPart(part.type, part.text, part.input_json, part.data.get("content"))
        for part in parts
    ]


def event_of_record(record: dict[str, Any] | str, parts: Iterable[AdkPart]) -> Event:
    """Return the event of what `data` has under ``adk``, and of the message's parts."""
    if isinstance(record, str):
        record = json.loads(record)
    elif "content" in record:
        # Without parts they were none, or null.
        part_records = record["content"].get("parts", ())
        for part_record, part in zip(part_records, parts, strict=False):
            _put_back(part_record, part)
    # ADK validates JSON by decoding it first, so this is not slower.
    return Event.model_validate(record)


def message_id(event_id: str) -> str | None:
    """Return the id of an event if a message can have it, else None."""
    # A character has four bytes at most.
    can_be_id = event_id.isprintable() and 0 < len(event_id) <= MAX_ID_BYTES // 4
    return event_id if can_be_id else None


def time_ms(timestamp: float) -> int | None:
    """Return the time of an event in Unix ms, as near as a column can hold it."""
    if math.isnan(timestamp):
        return None
    return int(min(max(timestamp * 1000, TIME_LEAST), TIME_MOST))


def _record_of(event: Event) -> dict[str, Any]:
    """Return an event as JSON values, without those that are as in any other event.

    By the names of Gemini's API ADK reads it faster than by its own.
    """
    record = event.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_defaults=True
    )
    # The default of a time is the present one, which an event of this moment may have.
    return {**record, "id": event.id, "timestamp": event.timestamp}


def _content_parts(event: Event) -> list[types.Part]:
    return (event.content and event.content.parts) or []


def _taken_part(part: types.Part, record: dict[str, Any]) -> PartDraft:
    """Return a part of an event as one of a message.

    The values of its columns are taken out of *record*.
    """
    if part.function_call is not None:
        call = record["functionCall"]
        arguments = call.pop("args", NO_INPUT)
        return tool(call.get("name", ""), arguments, call_id=call.get("id"))
    if part.function_response is not None:
        return _result_part(record["functionResponse"])
    if part.inline_data is not None and part.inline_data.data:
        blob = record["inlineData"]
        del blob["data"]
        return file(
            content=part.inline_data.data,
            mime=blob.get("mimeType"),
            filename=blob.get("displayName"),
        )
    if part.file_data is not None and part.file_data.file_uri:
        address = record["fileData"]
        return file(
            address["fileUri"],
            mime=address.get("mimeType"),
            filename=address.get("displayName"),
        )
    if part.text:
        content = record.pop("text")
        return reasoning(content) if part.thought else text(content)
    if part.executable_code is not None:
        return PartDraft("code", record["executableCode"].get("code"))
    if part.code_execution_result is not None:
        return PartDraft("code-result", record["codeExecutionResult"].get("output"))
    return PartDraft("block")


def _put_back(record: dict[str, Any], part: AdkPart) -> None:
    """Add to *record* what `_taken_part` took out of it."""
    if part.type in ("text", "reasoning"):
        record.setdefault("text", part.text)
    elif part.type == "tool" and part.input_json is not None:
        record["functionCall"].setdefault("args", json.loads(part.input_json))
    elif part.type == "file" and "inlineData" in record:
        record["inlineData"].setdefault("data", part.content)


def _result_part(record: dict[str, Any]) -> PartDraft:
    response = record.get("response", {})
    value: Any = response
    if response.keys() in _OUTPUTS:
        (value,) = response.values()
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return tool_result(record.get("id", ""), value)


def _role_and_kind(event: Event) -> tuple[str, str | None]:
    if event.actions.compaction is not None:
        return "event", "compaction"
    if event.get_function_responses():
        return "tool", None
    has_words = event.input_transcription or event.output_transcription
    if _content_parts(event) or has_words:
        return ("user" if event.author == "user" else "assistant"), None
    # An answer without any content has an error, or at least its cost.
    if event.error_code or event.usage_metadata or event.model_version:
        return "assistant", None
    return "event", "adk"


def _summary(event: Event) -> Iterator[PartDraft]:
    assert event.actions.compaction is not None, "its kind is compaction"
    for part in event.actions.compaction.compacted_content.parts or ():
        if part.text:
            yield text(part.text)


def _tokens_of(
    usage: types.GenerateContentResponseUsageMetadata | None,
) -> Tokens | None:
    """Return the tokens of an answer, each in one place; None if they contradict."""
    if usage is None:
        return None
    cache_read = usage.cached_content_token_count
    sent = usage.prompt_token_count
    if sent is not None:
        sent += (usage.tool_use_prompt_token_count or 0) - (cache_read or 0)
    tokens = Tokens(
        input=sent,
        output=usage.candidates_token_count,
        reasoning=usage.thoughts_token_count,
        cache_read=cache_read,
    )
    counts = [count for count in tokens.columns() if count is not None]
    is_valid = counts and min(counts) >= 0 and max(counts) <= TOKENS_MOST
    return tokens if is_valid else None


def _finish_of(event: Event) -> str | None:
    if event.error_code:
        return "error"
    if event.interrupted:
        return "cancelled"
    if event.finish_reason is None:
        return None
    if event.finish_reason == types.FinishReason.STOP:
        return "tool-calls" if event.get_function_calls() else "stop"
    is_long = event.finish_reason == types.FinishReason.MAX_TOKENS
    return "length" if is_long else "other"


def _error_of(event: Event) -> dict[str, str] | None:
    if not event.error_code and not event.error_message:
        return None
    error = {"code": event.error_code, "message": event.error_message}
    return {name: value for name, value in error.items() if value is not None}
