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
from sessiondb.formats.claude.drafts import PART_KEYS
from sessiondb.formats.content import embedded_text
from sessiondb.formats.kit.blocks import block_of, text_block
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    overlay,
    put_fields,
    value_at,
    without_keys,
)
from sessiondb.formats.kit.links import MADE
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
        content = {"content": content_of(parts)}
        record["message"] = as_object(record.get("message")) | content
    return record


def _attachment_line(record: Record, data: Record, parts: Sequence[Part]) -> Record:
    if fields.is_queued(data):
        attachment = as_object(data.get("attachment"))
        prompt = {"prompt": content_of(parts)}
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


# -- content -----------------------------------------------------------------


def content_of(parts: Sequence[Part]) -> str | list[Record]:
    """Return parts as the content that they were: a text, or a list of blocks."""
    if len(parts) == 1 and parts[0].data.get("plain"):
        return _as_written(parts[0]).text or ""

    # The images in a result are parts that follow it.
    groups: list[list[Part]] = []
    for part in parts:
        if not part.data.get("in_result"):
            groups.append([part])
        elif groups:
            groups[-1].append(part)
    return [_block_of_part(part, images) for part, *images in groups]


def _block_of_part(part: Part, images: list[Part]) -> Record:
    match part.type:
        case "text" | "reasoning":
            if "redacted" in part.data:
                return dict(part.data["redacted"])
            return text_block(_as_written(part), PART_KEYS)
        case "tool":
            return block_of(part, "tool_use", fields.CALL)
        case "tool-result":
            return _result_block(part, images)
        case "file":
            return _file_block(part)
        case "custom":
            return dict(part.data["block"])
        case _:
            return {"type": part.type, **part.data}


def _as_written(part: Part) -> Part:
    """Return a part with its text as the program writes it."""
    return replace(part, text=part.data.get("command", part.text))


def _result_block(part: Part, images: list[Part]) -> Record:
    block: Record = {"type": "tool_result"}
    put_fields(block, fields.RESULT, part)
    data = without_keys(PART_KEYS - {"content"}, part.data)

    if part.data.get("listed"):
        block["content"] = [{"type": "text", "text": part.text}]
    elif isinstance(data.get("content"), list):
        data["content"] = [_fill_in_image(item, images) for item in data["content"]]
    elif part.text is not None:
        block["content"] = part.text

    return overlay(block, data)


def _fill_in_image(item: Any, images: list[Part]) -> Any:
    """Return an item of a result, with the next of its *images* if it had one."""
    source = as_object(value_at(item, "source"))
    if not _has_lost_content(source) or not images:
        return item
    return {**item, "source": {**source, "data": embedded_text(images.pop(0))}}


def _file_block(part: Part) -> Record:
    block = without_keys(PART_KEYS, part.data)
    source = as_object(block.get("source"))
    if _has_lost_content(source):
        block["source"] = {**source, "data": embedded_text(part)}
    return block


def _has_lost_content(source: Record) -> bool:
    """Return whether the content of a source is in the part that it became."""
    return source.get("type") == "base64" and "data" not in source
