"""Messages of Gemini CLI to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sessiondb.formats.gemini import fields
from sessiondb.formats.kit.fields import (
    as_text,
    check_storable,
    clean_name,
    is_object,
    take,
    text,
)
from sessiondb.formats.kit.genai import (
    files_of,
    parts_of,
    responses_of,
    result_of,
    texts_of,
)
from sessiondb.formats.kit.json import OddRecordError, check_id, usable_id
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import MessageDraft, PartDraft, Tokens

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
    if responses_of(content):
        return {"role": "tool", "parts": _content(record)}

    # Nobody typed these, and a model is shown them.
    if said.startswith(fields.SUMMARY):
        return {"role": "event", "kind": "compaction", "parts": _content(record)}
    if said.startswith(fields.INJECTED):
        return {"role": "event", "kind": "custom_message", "parts": _content(record)}

    typed = set(texts_of(record.get("displayContent")))
    parts = _content(record)
    return {"role": "user", "parts": tuple(_marked(parts, typed))}


def _marked(parts: tuple[PartDraft, ...], typed: set[str]) -> Iterator[PartDraft]:
    """Yield parts; the texts of files that a prompt mentions are not typed.

    ``displayContent`` is what was typed, where the content has more than that.
    """
    is_told = any(part.text in typed for part in parts)
    for part in parts:
        is_added = is_told and part.type == "text" and part.text not in typed
        yield replace(part, data={**part.data, "synthetic": True}) if is_added else part


# -- answers -------------------------------------------------------------------


def _answer(record: Record, _: str) -> Columns:
    parts = list(_content(record))
    # Since 0.40 the content of a resumed session has the thoughts and calls as well.
    if not any(part.type == "reasoning" for part in parts):
        parts = [*_thoughts(record), *parts]

    return {
        "role": "assistant",
        "parts": tuple(_with_results(parts, record)),
        "tokens": _tokens(record),
        **take(record, fields.MESSAGE),
    }


def _thoughts(record: Record) -> Iterator[PartDraft]:
    """Yield thoughts as the program sends them again: the subject, and what follows."""
    thoughts = record.get("thoughts")
    if type(thoughts) is not list or not all(map(is_object, thoughts)):
        return

    del record["thoughts"]
    for thought in thoughts:
        subject = as_text(thought.get("subject"))
        said = as_text(thought.pop("description", None)) or ""
        whole = f"**{subject}** {said}".strip() if subject else said
        created = time_of_text(thought.get("timestamp"))
        yield PartDraft("reasoning", whole, time_created=created, data=thought)


def _tokens(record: Record) -> Tokens | None:
    """Return disjoint counts; numbers that contradict each other stay in ``data``."""
    usage = record.get("tokens")
    if not is_object(usage):
        return None

    known = take(dict(usage), fields.TOKENS)
    if "input" in known:
        known["input"] -= known.get("cache_read", 0)
    if not known or known.get("input", 0) < 0:
        return None
    take(usage, fields.TOKENS)
    return Tokens(**known)


def _with_results(parts: list[PartDraft], record: Record) -> Iterator[PartDraft]:
    """Yield the parts of an answer, with its calls and their results."""
    calls = _take_calls(record)
    for part in parts:
        index = _index_of(part, calls)
        if index is None:
            yield part
        else:
            yield from _called(calls.pop(index))

    for call in calls:
        yield from _called(call)


def _take_calls(record: Record) -> list[Record]:
    """Take the calls of an answer; anything else in their place stays."""
    calls = record.get("toolCalls")
    if type(calls) is not list or not all(map(is_object, calls)):
        return []

    del record["toolCalls"]
    return calls


def _index_of(part: PartDraft, calls: list[Record]) -> int | None:
    """Return the place of a call of the content among those with results."""
    ids = [call.get("id") for call in calls]
    is_call = part.type == "tool" and part.call_id in ids
    return ids.index(part.call_id) if is_call else None


def _called(call: Record) -> Iterator[PartDraft]:
    """Yield a call with its result, and the files of that."""
    if not clean_name(call.get("name")):
        yield PartDraft("custom", data={"toolCall": call})
        return

    state = as_text(call.get("status")) or ""
    status, outcome = fields.STATUS.get(state, ("pending", None))
    given = {"input": call.pop("args")} if "args" in call else {}
    files = list(files_of(call.get("result")))
    ended = time_of_text(call.get("timestamp"))
    result = _result(call)
    known = take(call, fields.CALL)
    yield PartDraft(
        "tool",
        result,
        **known,
        **given,
        status=status,
        outcome=outcome,
        time_ended=ended if status in ("completed", "error") else None,
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
    own = [item for item in responses if item.get("id") == call.get("id")]
    named = own or [item for item in responses if "id" not in item]
    texts = [result_of(item).text for item in named[:1]]
    if not texts:
        said = texts_of(result)
        return "\n".join(said) if said else None
    return texts[0]
