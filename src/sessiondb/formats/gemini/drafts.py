"""Messages of Gemini CLI to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.gemini import fields
from sessiondb.formats.kit.blocks import synthetic
from sessiondb.formats.kit.fields import (
    as_text,
    check_storable,
    clean_name,
    objects_in,
    take,
    text,
)
from sessiondb.formats.kit.genai import (
    files_of,
    parts_of,
    responses_of,
    result_of,
    take_tokens,
    texts_of,
)
from sessiondb.formats.kit.json import OddRecordError, check_id, usable_id
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import MessageDraft, PartDraft

Record = dict[str, Any]
Columns = dict[str, Any]


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message that a record is.

    Raises `OddRecordError` for one without a type or id, or that cannot be stored.
    """
    check_id(message_id)
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    check_storable(record)

    record.pop("id", None)
    kind = record.pop("type")
    make = _answer if kind in fields.ANSWERS else _prompt if kind == "user" else _event
    found = make(record, kind)
    found["time_created"] = time_of_text(record.get("timestamp"))
    return MessageDraft(id=message_id, data=record, **found)


def _event(record: Record, kind: str) -> Columns:
    """Notes of the program (``info``, ``warning``, ``error``) and unknown types."""
    return {"role": "event", "kind": kind, "parts": _content(record)}


def _content(record: Record) -> tuple[PartDraft, ...]:
    return tuple(parts_of(record.pop("content", None)))


# -- prompts -------------------------------------------------------------------


def _prompt(record: Record, _: str) -> Columns:
    content = record.get("content")
    said = "".join(texts_of(content)).strip()
    is_result = bool(responses_of(content))
    parts = _content(record)
    if is_result:
        return {"role": "tool", "parts": parts}

    # The program adds these, and a model is shown them.
    kinds = (kind for start, kind in fields.ADDED.items() if said.startswith(start))
    kind = next(kinds, None)
    if kind is not None:
        return {"role": "event", "kind": kind, "parts": parts}

    typed = set(texts_of(record.get("displayContent")))
    return {"role": "user", "parts": tuple(_marked(parts, typed))}


def _marked(parts: tuple[PartDraft, ...], typed: set[str]) -> Iterator[PartDraft]:
    """Yield parts; the texts of files that a prompt mentions are not typed.

    ``displayContent`` is what was typed, where the content has more than that.
    """
    said = {part.text for part in parts if part.type == "text"}
    # A prompt that was edited on its way has none of the typed texts.
    added = said - typed if said & typed else set()
    for part in parts:
        yield synthetic(part) if part.text in added else part


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
        subject = as_text(thought.get("subject"))
        said = as_text(thought.pop("description", None)) or ""
        whole = f"**{subject}** {said}".strip() if subject else said

        created = time_of_text(thought.get("timestamp"))
        yield PartDraft("reasoning", whole, time_created=created, data=thought)


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
    state = as_text(call.get("status")) or ""
    status, outcome = fields.STATUS.get(state, ("pending", None))
    has_ended = status in ("completed", "error")
    ended = time_of_text(call.get("timestamp")) if has_ended else None

    given = {"input": call.pop("args")} if "args" in call else {}
    files = list(files_of(call.get("result")))
    result = _result(call)
    known = take(call, fields.CALL)
    yield PartDraft(
        "tool",
        result,
        **known,
        **given,
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
    responses = responses_of(result)
    ids = (call.get("id"), None)
    own = [r for wanted in ids for r in responses if r.get("id") == wanted]
    if own:
        return result_of(own[0]).text

    said = texts_of(result)
    return "\n".join(said) if said else None
