"""Blocks of content to parts, and parts as the same blocks again; by `fields`, too.

The rest of a block is the ``data`` of its part, and is laid over what the columns
say, so a value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sessiondb.formats.content import embedded_file, embedded_text
from sessiondb.formats.kit.blocks import (
    block_of,
    is_block,
    text_block,
    text_part,
)
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    clean_name,
    objects_in,
    overlay,
    put_fields,
    take_fields,
    text,
    value_at,
    without_keys,
)
from sessiondb.formats.providers.anthropic import fields
from sessiondb.model import Part, PartDraft

Record = dict[str, Any]

#: Keys of ``data`` that parts have and blocks do not, some of Claude Code alone.
PART_KEYS = frozenset(
    "plain command redacted listed added in_result mime content url filename".split()
)
#: The keys that a block of each type must not have, to be written again as it was.
_RESERVED: Mapping[str, frozenset[str]] = {
    "text": PART_KEYS,
    "thinking": PART_KEYS,
    "redacted_thinking": PART_KEYS,
    "image": PART_KEYS,
    "document": PART_KEYS,
    "tool_result": PART_KEYS - {"content"},
    **dict.fromkeys(fields.CALLS, PART_KEYS),
}
#: Those of a block of any other type: `content_of` recognises parts by them.
_RESERVED_OF_OTHERS = frozenset({"plain", "added", "in_result"})
#: Types of parts that blocks become; a block that already has one is kept apart.
_PART_TYPES = frozenset({"reasoning", "tool", "tool-result", "file", "custom"})


def take_content(holder: Record, key: str) -> tuple[PartDraft, ...]:
    """Take the content of a message: a text or a list of blocks.

    Empty, and taken is nothing, for anything else.
    """
    content = holder.get(key)
    if text(content):
        del holder[key]
        return (PartDraft("text", content, data={"plain": True}),)

    blocks = as_list(content)
    if not blocks or not all(is_block(block) for block in blocks):
        return ()
    del holder[key]
    return tuple(part for block in blocks for part in _parts_of_block(block))


def _parts_of_block(block: Record) -> Iterable[PartDraft]:
    kind = block["type"]
    reserved = _RESERVED.get(kind, _RESERVED_OF_OTHERS)
    # A key of the block would be mistaken for ours when it is written again.
    if kind in _PART_TYPES or not reserved.isdisjoint(block):
        return [_verbatim_part(block)]

    match kind:
        case "text" | "thinking":
            return [text_part(block)]
        case "redacted_thinking":
            return [PartDraft("reasoning", data={"redacted": block})]
        case "tool_result":
            return _result_parts(block)
        case "image" | "document":
            return [_file_part(block)]
        case _ if kind in fields.CALLS:
            return [_call_part(block)]
        case _:
            return [PartDraft(block.pop("type"), data=block)]


def _verbatim_part(block: Record) -> PartDraft:
    return PartDraft("custom", data={"block": block})


def _call_part(block: Record) -> PartDraft:
    # The database refuses a call without the name of its tool.
    if not clean_name(block.get("name")):
        return _verbatim_part(block)

    status = "completed"
    if block["type"] == "tool_use":
        del block["type"]
        status = "pending"
    return PartDraft(
        "tool", **take_fields(block, fields.CALL), status=status, data=block
    )


def _file_part(block: Record) -> PartDraft:
    """Return an image or a document; content that is repeated is stored once."""
    source = as_object(block.get("source"))
    data = take_fields(dict(block), fields.FILE) | take_fields(
        dict(source), fields.FILE_SOURCE
    )
    if _is_inline(source):
        data |= embedded_file(source.get("media_type"), source.pop("data"))
    return PartDraft("file", data={**data, **block})


def _result_parts(block: Record) -> Iterator[PartDraft]:
    """Yield a result: its text, and the images in it as parts that follow."""
    del block["type"]
    columns = take_fields(block, fields.RESULT)
    content = block.get("content")
    if text(content):
        del block["content"]
        yield PartDraft("tool-result", content, **columns, data=block)
        return

    items = objects_in(content)
    texts = [
        item["text"]
        for item in items
        if item.get("type") == "text" and text(item.get("text"))
    ]
    joined = "\n".join(texts) if texts else None
    if texts and content == [{"type": "text", "text": joined}]:
        del block["content"]
        block["listed"] = True
    yield PartDraft("tool-result", joined, **columns, data=block)

    for item in items:
        if item.get("type") == "image" and _is_inline(as_object(item.get("source"))):
            # The item in the result loses its content to this part.
            image = _file_part(item)
            data = {k: value for k, value in image.data.items() if k in PART_KEYS}
            yield PartDraft("file", data={**data, "in_result": True})


def _is_inline(source: Record) -> bool:
    """Return whether a source has the content of its file itself."""
    return source.get("type") == "base64" and text(source.get("data"))


# -- as blocks again -------------------------------------------------------------


def content_of(parts: Sequence[Part]) -> str | list[Record]:
    """Return parts as the content that they were: a text, or a list of blocks."""
    if len(parts) == 1 and parts[0].data.get("plain"):
        return parts[0].text or ""

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
            return text_block(part, PART_KEYS)
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
