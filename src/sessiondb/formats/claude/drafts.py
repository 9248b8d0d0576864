"""Lines of Claude Code to drafts: known fields become columns, the rest is ``data``.

These functions take their records apart, so they must not be used afterwards. A line is
one message, but those of an answer are one together: the rest of its further lines is
in ``data`` under ``other_lines``, each with the index of its first part and with the
number of lines since the first one, so that all are written back in their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.tree import MessagePlace, calls_answered
from sessiondb.formats.kit.blocks import mark_synthetic
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    clean_name,
    cost,
    fitting,
    integer,
    is_object,
    take_fields,
    text,
    value_at,
    without_empty,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.providers.anthropic.blocks import take_content
from sessiondb.formats.providers.anthropic.fields import tokens_of
from sessiondb.model import MessageDraft, PartDraft, Tokens
from sessiondb.model.source import STATED_TOTAL, TOTAL_SINCE

Record = dict[str, Any]
Parts = tuple[PartDraft, ...]
#: The columns of a message.
Columns = dict[str, Any]


class NumberedRecord(NamedTuple):
    """A line of a message."""

    #: The number of records since the first line of the message.
    distance: int
    record: Record


def message_draft(lines: Sequence[NumberedRecord], place: MessagePlace) -> MessageDraft:
    """Return the message that lines are: several of an answer, else one."""
    record = lines[0].record
    kind = record["type"]
    columns = _take_columns(record, lines[1:])
    columns["time_created"] = time_of_text(record.get("timestamp"))

    # `records` knows these from the message itself.
    if kind == fields.TYPES.get(columns["role"], columns.get("kind")):
        del record["type"]
    if record.get("uuid") == place.name:
        del record["uuid"]
    if place.is_of_branch:
        columns["kind"] = "branch_summary"
    elif columns.get("kind") == "compaction":
        record |= without_empty({"first_kept_id": place.first_kept})

    return MessageDraft(id=place.name, data=record, **columns)


# -- messages ------------------------------------------------------------------


def _take_columns(record: Record, further: Sequence[NumberedRecord]) -> Columns:
    kind = record["type"]
    # A key of the line would be mistaken for ours: it is kept as an event.
    has_message = is_object(record.get("message")) and "other_lines" not in record
    match kind:
        case "user" if has_message:
            return _take_user_line(record)
        case "assistant" if has_message:
            return _take_answer(record, further)
        case "system":
            return _take_system_line(record)
        case "attachment":
            return _take_attachment(record)
        case "cost-state" if not {STATED_TOTAL, TOTAL_SINCE}.isdisjoint(record):
            # Keys of the record that would be mistaken for ours.
            return {"role": "event", "kind": kind}
        case _:
            return {"role": "event", "kind": fields.KINDS.get(kind, kind)}


def _take_user_line(record: Record) -> Columns:
    """Take a prompt, the summary of a compaction, or the results of calls."""
    has_results = bool(calls_answered(record))
    parts = _take_content(record["message"], "content")
    if record.get("isCompactSummary") is True:
        return {
            "role": "event",
            "kind": "compaction",
            "parts": parts,
            "cost": fitting(record.get(fields.COST), cost),
            "tokens": tokens_of(as_object(record.get("usage"))),
        }

    if fields.is_added(record):
        parts = _mark_as_added(parts)
    if not has_results:
        return {"role": "user", "parts": parts}

    note = record.get("toolUseResult")
    results = [
        _with_outcome(part, note) if part.type == "tool-result" else part
        for part in parts
    ]
    return {"role": "tool", "parts": tuple(results)}


def _with_outcome(result: PartDraft, note: Any) -> PartDraft:
    """Return a result with how its call ended, by the program's *note* beside it."""
    has_failed = result.data.get("is_error") is True
    is_refused = str(result.text).startswith(fields.DENIED) or note == fields.REJECTED
    if has_failed and is_refused:
        outcome = "denied"
    elif value_at(note, "interrupted") is True:
        outcome = "interrupted"
    elif has_failed:
        outcome = "failed"
    else:
        return result
    return replace(result, outcome=outcome, status="error")


def _take_answer(record: Record, further: Sequence[NumberedRecord]) -> Columns:
    lines = [record, *(line.record for line in further)]
    times = [time_of_text(line.get("timestamp")) for line in lines]
    columns = {
        "role": "assistant",
        "time_completed": max((t for t in times if t is not None), default=None),
        **_end_of_answer(lines),
        **take_fields(record, fields.ANSWER),
    }

    # Those of the first line have the time of the message.
    parts = [*_take_content(record["message"], "content")]
    others = []
    for distance, line in further:
        others.append({"after": distance, "first": len(parts), "record": line})
        parts += _take_timed_parts(line)
    if others:
        record["other_lines"] = others

    return {**columns, "parts": tuple(parts)}


def _take_timed_parts(line: Record) -> list[PartDraft]:
    """Take the parts of a further line of an answer, with its time."""
    created = time_of_text(line.get("timestamp"))
    parts = _take_content(as_object(line.get("message")), "content")
    return [replace(part, time_created=created) for part in parts]


def _end_of_answer(lines: Sequence[Record]) -> Columns:
    """Return usage, cost, end and error of an answer: each line repeats them so far."""
    first = lines[0]
    columns: Columns = {}
    for line in lines:
        reason = as_text(value_at(line, "message", "stop_reason"))
        if reason:
            columns["finish"] = fields.FINISH.get(reason, "other")
    if any(line.get("isAbortedMidStream") is True for line in lines):
        columns["finish"] = "cancelled"
    if first.get("isApiErrorMessage") is True:
        texts = [as_text(block.get("text")) for block in fields.blocks_of(first)]
        message = "\n".join(text for text in texts if text)
        columns |= {"finish": "error", "error": {"message": message}}

    costs = [line.get(fields.COST) for line in lines]
    columns["cost"] = max((usd for usd in costs if cost(usd)), default=None)
    # An answer of the program itself states zeros, which no provider counted.
    if value_at(first, "message", "model") != fields.SYNTHETIC:
        columns["tokens"] = _tokens_of_answer(lines)
    return columns


def _tokens_of_answer(lines: Sequence[Record]) -> Tokens | None:
    """Return the counts of the line with the most output, of equal ones the last."""
    highest = None
    most: int | None = None
    for line in lines:
        usage = as_object(value_at(line, "message", "usage"))
        tokens = tokens_of(usage)
        output: int = fitting(usage.get("output_tokens"), integer, 0)
        if tokens is not None and (most is None or output >= most):
            highest, most = tokens, output
    return highest


# -- events ----------------------------------------------------------------------


def _take_system_line(record: Record) -> Columns:
    shown = take_fields(record, fields.SHOWN)
    parts = [PartDraft("text", shown["text"])] if shown else []
    kind = fitting(record.get("subtype"), fields.is_subtype, "system")
    return {"role": "event", "kind": kind, "parts": tuple(parts)}


def _take_attachment(record: Record) -> Columns:
    """Take an addition to a prompt; the user typed some while the model worked."""
    attachment = as_object(record.get("attachment"))
    if fields.is_queued(record):
        parts = _take_content(attachment, "prompt")
        is_prompt = attachment.get("commandMode", "prompt") == "prompt"
        if not is_prompt or fields.is_added(attachment):
            parts = _mark_as_added(parts)
        if parts:
            return {"role": "user", "parts": parts}

    rendered = _take_rendered_texts(record)
    kind = "custom_message" if rendered else "attachment"
    # Later ones may have only what changed, which is added to the first one.
    is_complete = attachment.get("changed") is not True
    if attachment.get("type") == "instructions" and is_complete:
        kind = "context"
    sources = _take_sources(attachment)
    return {"role": "event", "kind": kind, "parts": (*rendered, *sources)}


def _take_rendered_texts(record: Record) -> list[PartDraft]:
    """Take the texts that a model is sent for an attachment, if all are texts."""
    rendered = as_list(record.get("rendered"))
    if not all(text(value_at(item, "content")) for item in rendered):
        return []
    return [mark_synthetic(PartDraft("text", item.pop("content"))) for item in rendered]


def _take_sources(attachment: Record) -> Iterator[PartDraft]:
    """Take the files that a model was given with an attachment."""
    for place, source in enumerate(fields.sources_of(attachment)):
        if is_object(source):
            columns = take_fields(source, fields.SOURCE)
            content = columns.pop("text", None)
            title = fitting(source.get("name"), clean_name, columns.get("path"))
            origin = {"kind": attachment["type"], **columns}
            data = {"place": place}
            yield PartDraft("source", content, title=title, input=origin, data=data)


# -- content -----------------------------------------------------------------


def _take_content(holder: Record, key: str) -> Parts:
    """Take the content of a message, its texts as the user typed them."""
    return tuple(
        _text_as_typed(part) if part.type == "text" else part
        for part in take_content(holder, key)
    )


def _text_as_typed(part: PartDraft) -> PartDraft:
    """Return a text part as the user typed it, else marked as added by the program."""
    command = fields.COMMAND.fullmatch(str(part.text))
    if command is not None:
        name, arguments = command.groups()
        typed = f"{name} {arguments}" if arguments else name
        return replace(part, text=typed, data={**part.data, "command": part.text})

    return mark_synthetic(part) if fields.is_injected(str(part.text)) else part


def _mark_as_added(parts: Parts) -> Parts:
    """Return parts with their texts marked as added by the program."""
    return tuple(
        mark_synthetic(part) if part.type == "text" else part for part in parts
    )
