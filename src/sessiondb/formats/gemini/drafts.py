"""Messages of Gemini CLI to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sessiondb.formats.gemini import fields
from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    clean_name,
    objects_in,
    take,
    text,
)
from sessiondb.formats.kit.genai import (
    CALL,
    Make,
    draft_of,
    files_of,
    marked,
    parts_of,
    responses_of,
    result_of,
    take_tokens,
    texts_of,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import MessageDraft, PartDraft

Record = dict[str, Any]
Columns = dict[str, Any]
_ADDED = re.compile(rf"\s*({'|'.join(fields.ADDED)})")


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message of a record; raises `OddRecordError` as `draft_of` does."""
    record.pop("id", None)
    return draft_of(record, message_id, _ROLES, _event)


def _event(record: Record, kind: str) -> Columns:
    """Notes of the program (``info``, ``warning``, ``error``) and unknown types."""
    return {"role": "event", "kind": kind, "parts": _content(record)}


def _content(record: Record) -> tuple[PartDraft, ...]:
    return tuple(parts_of(record.pop("content", None)))


# -- prompts -------------------------------------------------------------------


def _prompt(record: Record, _: str) -> Columns:
    content = record.get("content")
    texts = texts_of(content)
    is_result = bool(responses_of(content))
    parts = _content(record)
    if is_result:
        return {"role": "tool", "parts": parts}

    # The program adds these, and a model is shown them.
    note = _ADDED.match("".join(texts))
    if note is not None:
        return {"role": "event", "kind": fields.ADDED[note[1]], "parts": parts}

    return {
        "role": "user",
        "parts": marked(parts, _ADDED, record.get("displayContent")),
    }


# -- answers -------------------------------------------------------------------


def _answer(record: Record, _: str) -> Columns:
    parts = list(_content(record))
    # Since 0.40 the content of a resumed session has the thoughts and calls as well.
    if not any(part.type == "reasoning" for part in parts):
        parts = [*_thoughts(record), *parts]

    return {
        "role": "assistant",
        "parts": tuple(_with_results(parts, record)),
        "tokens": take_tokens(record.get("tokens"), fields.TOKENS),
        **take(record, fields.MESSAGE),
    }


def _thoughts(record: Record) -> Iterator[PartDraft]:
    """Yield thoughts as the program sends them again: the subject, and what follows."""
    for thought in _take_objects(record, "thoughts"):
        said = take(thought, fields.THOUGHT).get("text", "")
        subject = as_text(thought.get("subject"))
        shown = f"**{subject}** {said}".strip() if subject else said

        created = time_of_text(thought.get("timestamp"))
        yield PartDraft("reasoning", shown, time_created=created, data=thought)


def _take_objects(record: Record, key: str) -> list[Record]:
    """Take a list of objects out of a record; anything else in its place stays."""
    found = objects_in(record.get(key))
    return record.pop(key) if found == record.get(key) else []


def _with_results(parts: list[PartDraft], record: Record) -> Iterator[PartDraft]:
    """Yield the parts of an answer, with its calls and their results."""
    calls = _take_objects(record, "toolCalls")
    for part in parts:
        index = _index_of(part, calls)
        yield from [part] if index is None else _called(calls.pop(index))

    for call in calls:
        yield from _called(call)


def _index_of(part: PartDraft, calls: list[Record]) -> int | None:
    """Return the place of a call of the content among those with results."""
    ids = [call.get("id") for call in calls if part.type == "tool"]
    return ids.index(part.call_id) if part.call_id in ids else None


def _called(call: Record) -> Iterator[PartDraft]:
    """Yield a call with its result, and the files of that."""
    if not clean_name(call.get("name")):
        yield PartDraft("custom", data={"toolCall": call})
        return

    # A call in any other state waits for its tool, or for the user.
    state = as_string(call.get("status"))
    status, outcome = fields.STATUS.get(state, ("pending", None))
    has_ended = status in ("completed", "error")
    ended = time_of_text(call.get("timestamp")) if has_ended else None

    files = list(files_of(call.get("result")))
    result = _result(call)
    known = take(call, CALL)
    yield PartDraft(
        "tool",
        result,
        **known,
        status=status,
        outcome=outcome,
        time_ended=ended,
        data=call,
    )
    yield from files


def _result(call: Record) -> str | None:
    """Return the text of a call's result, and take it out of the call."""
    result = call.get("result")
    if text(result):
        return str(call.pop("result"))

    # A masked result has the responses to all calls of its turn.
    found = {as_text(item.get("id")): item for item in responses_of(result)[::-1]}
    own = found.get(as_text(call.get("id")), found.get(None))
    return "\n".join(texts_of(result)) or None if own is None else result_of(own).text


_ROLES: Mapping[str, Make] = {
    "user": _prompt,
    **dict.fromkeys(fields.ANSWERS, _answer),
}
