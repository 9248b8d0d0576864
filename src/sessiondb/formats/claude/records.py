"""Messages that were lines of Claude Code, as the same lines again; by `fields`, too.

The rest of a line in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import filterfalse
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
    put,
    within,
    without,
)
from sessiondb.formats.kit.links import MADE
from sessiondb.model import Message, Part

Record = dict[str, Any]


def lines_of(message: Message) -> Iterator[tuple[int, Record]]:
    """Yield the lines of *message*, each with its distance from the first one."""
    rest = dict(message.data)
    if message.kind == "compaction":
        rest.pop("first_kept_id", None)
    is_answer = message.role == "assistant"
    others = as_list(rest.pop("other_lines", None)) if is_answer else []

    starts = [other["first"] for other in others]
    parts = _kept(message.parts)

    yield 0, _first(message, rest, parts[: min(starts, default=None)])
    ends = [*starts[1:], None]

    for other, end in zip(others, ends, strict=False):
        line = dict(other["record"])
        mine = parts[other["first"] : end]
        yield other["after"], _with_content(line, mine)


def last_uuid(records: Iterable[Record]) -> str | None:
    """Return the uuid of the last of some lines that has one."""
    named = [as_text(record.get("uuid")) for record in records]
    return next(filter(None, reversed(named)), None)


def _kept(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if "added" not in part.data]


def _first(message: Message, rest: Record, parts: Sequence[Part]) -> Record:
    implied = fields.TYPES.get(message.role, message.kind)
    kind = rest.get("type", implied)
    record: Record = {"type": kind}

    if not message.id.startswith(MADE):
        record["uuid"] = message.id
    put(record, fields.ANSWER, message)

    make = _MAKERS.get(kind, _event) if parts else _event
    return make(record, rest, parts)


def _event(record: Record, rest: Record, _: Sequence[Part]) -> Record:
    return overlay(record, rest)


def _said(record: Record, rest: Record, parts: Sequence[Part]) -> Record:
    return _with_content(overlay(record, rest), parts)


def _with_content(record: Record, parts: Sequence[Part]) -> Record:
    if parts:
        said = {"content": content_of(parts)}
        record["message"] = as_object(record.get("message")) | said
    return record


def _system(record: Record, rest: Record, parts: Sequence[Part]) -> Record:
    return overlay(record | {"content": parts[0].text}, rest)


def _attachment(record: Record, rest: Record, parts: Sequence[Part]) -> Record:
    if within(rest, "attachment", "type") == "queued_command":
        held = as_object(rest.get("attachment")) | {"prompt": content_of(parts)}
        return overlay(record, rest) | {"attachment": held}

    found = overlay(record, deepcopy(rest))
    sources = fields.sources_of(as_object(found.get("attachment")))
    for part in filter(_is_source, parts):
        known: Record = {}
        given = {"path": None, "scope": None, **as_object(part.input)}
        columns = SimpleNamespace(**given | {"text": part.text})
        put(known, fields.SOURCE, columns)
        source = sources[part.data["place"]]
        source |= overlay(known, source)

    texts = filterfalse(_is_source, parts)
    for part, item in zip(texts, as_list(found.get("rendered")), strict=False):
        item["content"] = part.text
    return found


def _is_source(part: Part) -> bool:
    return part.type == "source"


_MAKERS: Mapping[Any, Callable[[Record, Record, Sequence[Part]], Record]] = {
    "user": _said,
    "assistant": _said,
    "system": _system,
    "attachment": _attachment,
}


# -- content -----------------------------------------------------------------


def content_of(given: Sequence[Part]) -> str | list[Record]:
    """Return parts as the content that they were: a text, or a list of blocks."""
    if len(given) == 1 and given[0].data.get("plain"):
        return _written(given[0]).text or ""

    blocks: list[Record] = []
    images: list[Part] = []

    for part in reversed(given):
        if part.data.get("in_result"):
            images.append(part)
        else:
            blocks.append(_block(part, images))
            images = []

    return blocks[::-1]


def _block(part: Part, images: list[Part]) -> Record:
    if part.type == "tool-result":
        return _result(part, images)
    make = _BLOCKS.get(part.type)
    if make is not None:
        return make(part)
    return {"type": part.type, **part.data}


def _text(part: Part) -> Record:
    if "redacted" in part.data:
        return dict(part.data["redacted"])
    return text_block(_written(part), PART_KEYS)


def _written(part: Part) -> Part:
    """Return a part with its text as the program writes it."""
    return replace(part, text=part.data.get("command", part.text))


def _call(part: Part) -> Record:
    return block_of(part, "tool_use", fields.CALL)


def _result(part: Part, images: list[Part]) -> Record:
    """Return a result; its *images* are in the order from the last to the first."""
    record: Record = {"type": "tool_result"}
    put(record, fields.RESULT, part)
    rest = without(PART_KEYS - {"content"}, part.data)

    if part.data.get("listed"):
        record["content"] = [{"type": "text", "text": part.text}]
    elif isinstance(rest.get("content"), list):
        rest["content"] = [_item(item, images) for item in rest["content"]]
    elif part.text is not None:
        record["content"] = part.text

    return overlay(record, rest)


def _item(item: Any, images: list[Part]) -> Any:
    source = as_object(within(item, "source"))
    if source.get("type") != "base64" or "data" in source or not images:
        return item
    return {**item, "source": {**source, "data": embedded_text(images.pop())}}


def _file(part: Part) -> Record:
    block = without(PART_KEYS, part.data)
    source = as_object(block.get("source"))
    if source.get("type") == "base64" and "data" not in source:
        block["source"] = {**source, "data": embedded_text(part)}
    return block


_BLOCKS: Mapping[str, Callable[[Part], Record]] = {
    "text": _text,
    "reasoning": _text,
    "tool": _call,
    "file": _file,
    "custom": lambda part: dict(part.data["block"]),
}
