"""Messages that were lines of Claude Code, as the same lines again; by `fields`, too.

The rest of a line in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    overlay,
    put_fields,
    without_keys,
)
from sessiondb.formats.kit.links import MADE
from sessiondb.formats.providers.anthropic.blocks import content_of
from sessiondb.model import Message, Part
from sessiondb.model.source import STATED_TOTAL, TOTAL_SINCE

Record = dict[str, Any]


def lines_of(message: Message) -> Iterator[tuple[int, Record]]:
    """Yield the lines of *message*, each with its distance from the first one."""
    data = dict(message.data)
    if message.kind == "compaction":
        data.pop("first_kept_id", None)
    if message.kind == "usage":
        data = without_keys({STATED_TOTAL, TOTAL_SINCE}, data)
    others = []
    if message.role == "assistant":
        others = as_list(data.pop("other_lines", None))

    parts = [part for part in message.parts if "added" not in part.data]
    ends = [*(other["first"] for other in others), None]
    yield 0, _first_line(message, data, parts[: ends[0]])

    for other, end in zip(others, ends[1:], strict=True):
        parts_of_line = parts[other["first"] : end]
        yield other["after"], _with_content(dict(other["record"]), parts_of_line)


def last_uuid(records: Iterable[Record]) -> str | None:
    """Return the uuid of the last of some lines that has one."""
    uuid = None
    for record in records:
        uuid = as_text(record.get("uuid")) or uuid
    return uuid


def _first_line(message: Message, data: Record, parts: Sequence[Part]) -> Record:
    kind = data.get("type", fields.TYPES.get(message.role, message.kind))
    record: Record = {"type": kind}
    if not message.id.startswith(MADE):
        record["uuid"] = message.id
    if message.role == "assistant":
        put_fields(record, fields.ANSWER, message)

    match kind:
        case "user" | "assistant":
            return _with_content(overlay(record, data), parts)
        case "system" if parts:
            return overlay(record | {"content": parts[0].text}, data)
        case "attachment" if parts:
            return _attachment_line(record, data, parts)
        case _:
            return overlay(record, data)


def _with_content(record: Record, parts: Sequence[Part]) -> Record:
    if parts:
        content = {"content": content_of(_as_written(parts))}
        record["message"] = as_object(record.get("message")) | content
    return record


def _attachment_line(record: Record, data: Record, parts: Sequence[Part]) -> Record:
    if fields.is_queued(data):
        attachment = as_object(data.get("attachment"))
        prompt = {"prompt": content_of(_as_written(parts))}
        return overlay(record, data) | {"attachment": attachment | prompt}

    line = overlay(record, deepcopy(data))
    sources = fields.sources_of(as_object(line.get("attachment")))
    texts = []
    for part in parts:
        if part.type == "source":
            source = sources[part.data["place"]]
            source |= overlay(_source_record(part), source)
        else:
            texts.append(part.text)

    for text, item in zip(texts, as_list(line.get("rendered")), strict=False):
        item["content"] = text
    return line


def _source_record(part: Part) -> Record:
    """Return a file that a model was given, without what its data has of it."""
    origin = as_object(part.input)
    columns = SimpleNamespace(
        path=origin.get("path"), scope=origin.get("scope"), text=part.text
    )
    record: Record = {}
    put_fields(record, fields.SOURCE, columns)
    return record


def _as_written(parts: Sequence[Part]) -> list[Part]:
    """Return parts with their texts as the program writes them."""
    return [
        replace(part, text=part.data["command"])
        if part.type == "text" and "command" in part.data
        else part
        for part in parts
    ]
