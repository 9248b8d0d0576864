"""Messages of Gemini CLI to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.gemini import fields
from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    clean_name,
    objects_in,
    take_fields,
    text,
)
from sessiondb.formats.kit.genai import (
    CALL,
    draft_of,
    files_of,
    mark_added_texts,
    parts_of,
    responses_of,
    result_of,
    take_tokens,
    texts_of,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
Columns = dict[str, Any]
_ADDED = late_pattern(rf"\s*({'|'.join(fields.ADDED)})")


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message of a record; raises `OddRecordError` as `draft_of` does."""
    record.pop("id", None)
    return draft_of(record, message_id, _columns_of)


def _columns_of(record: Record, kind: str) -> Columns:
    if kind == "user":
        return _prompt_columns(record)
    if kind in fields.ANSWERS:
        return _answer_columns(record)
    # Notes of the program (``info``, ``warning``, ``error``) and unknown types.
    return {"role": "event", "kind": kind, "parts": _take_content(record)}


def _take_content(record: Record) -> tuple[PartDraft, ...]:
    return tuple(parts_of(record.pop("content", None)))


# -- prompts -------------------------------------------------------------------


def _prompt_columns(record: Record) -> Columns:
    content = record.get("content")
    texts = texts_of(content)
    is_result = bool(responses_of(content))
    parts = _take_content(record)
    if is_result:
        return {"role": "tool", "parts": parts}

    # The program adds these, and a model is shown them.
    note = _ADDED.match("".join(texts))
    if note is not None:
        return {"role": "event", "kind": fields.ADDED[note[1]], "parts": parts}

    parts = mark_added_texts(parts, _ADDED, record.get("displayContent"))
    return {"role": "user", "parts": parts}


# -- answers -------------------------------------------------------------------


def _answer_columns(record: Record) -> Columns:
    parts = list(_take_content(record))
    # Since 0.40 the content of a resumed session has the thoughts and calls as well.
    if not any(part.type == "reasoning" for part in parts):
        parts = [*_thoughts_of(record), *parts]

    return {
        "role": "assistant",
        "parts": tuple(_with_results(parts, record)),
        "tokens": take_tokens(record.get("tokens"), fields.TOKENS),
        **take_fields(record, fields.MESSAGE),
    }


def _thoughts_of(record: Record) -> Iterator[PartDraft]:
    """Yield thoughts as the program sends them again: the subject, then the text."""
    for thought in _take_objects(record, "thoughts"):
        shown = take_fields(thought, fields.THOUGHT).get("text", "")
        subject = as_text(thought.get("subject"))
        if subject:
            shown = f"**{subject}** {shown}".strip()

        created = time_of_text(thought.get("timestamp"))
        yield PartDraft("reasoning", shown, time_created=created, data=thought)


def _take_objects(record: Record, key: str) -> list[Record]:
    """Take a list of objects out of a record; anything else in its place stays."""
    objects = objects_in(record.get(key))
    return record.pop(key) if objects == record.get(key) else []


# -- calls -----------------------------------------------------------------------


def _with_results(parts: list[PartDraft], record: Record) -> Iterator[PartDraft]:
    """Yield the parts of an answer, with its calls and their results."""
    calls = _take_objects(record, "toolCalls")
    for part in parts:
        call = _take_call(calls, part)
        if call is None:
            yield part
        else:
            yield from _call_with_result(call)

    for call in calls:
        yield from _call_with_result(call)


def _take_call(calls: list[Record], part: PartDraft) -> Record | None:
    """Take the call of a part out of those with results; None if it is not there."""
    if part.type == "tool":
        for position, call in enumerate(calls):
            if call.get("id") == part.call_id:
                return calls.pop(position)
    return None


def _call_with_result(call: Record) -> Iterator[PartDraft]:
    """Yield a call with its result, and the files of that."""
    if not clean_name(call.get("name")):
        yield PartDraft("custom", data={"toolCall": call})
        return

    # A call in any other state waits for its tool, or for the user.
    state = as_string(call.get("status"))
    status, outcome = fields.STATUS.get(state, ("pending", None))
    time_ended = None
    if status in ("completed", "error"):
        time_ended = time_of_text(call.get("timestamp"))

    files = list(files_of(call.get("result")))
    result = _take_result(call)
    columns = take_fields(call, CALL)
    yield PartDraft(
        "tool",
        result,
        **columns,
        status=status,
        outcome=outcome,
        time_ended=time_ended,
        data=call,
    )
    yield from files


def _take_result(call: Record) -> str | None:
    """Return the text of a call's result; a result that is a text leaves the call."""
    result = call.get("result")
    if text(result):
        return str(call.pop("result"))

    response = _response_to(call, responses_of(result))
    if response is None:
        return "\n".join(texts_of(result)) or None
    return result_of(response).text


def _response_to(call: Record, responses: list[Record]) -> Record | None:
    """Return the response to a call, or else the first one without an id.

    A masked result has the responses to all calls of its turn.
    """
    for call_id in (as_text(call.get("id")), None):
        for response in responses:
            if as_text(response.get("id")) == call_id:
                return response
    return None
