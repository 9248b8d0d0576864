"""Content as a list of blocks, each an object that has a type, in both directions.

A block of text and a call have their values at known keys, of which a table of type
`Fields` knows the columns: a part is taken by it, and the block is made by it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

from sessiondb.dataclass import replace
from sessiondb.formats.kit.fields import (
    Fields,
    is_object,
    overlay,
    put_fields,
    take_fields,
    text,
    without_keys,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.model import Part, PartDraft

Record = dict[str, Any]
#: Blocks of text: the type of their part, and the key of the text.
TEXTS: Mapping[str, tuple[str, Fields]] = {
    "text": ("text", {"text": ("text", text)}),
    "thinking": ("reasoning", {"thinking": ("text", text)}),
}
_BLOCKS = {part: (block, table) for block, (part, table) in TEXTS.items()}


def is_block(value: Any) -> TypeGuard[Record]:
    """Return whether a value in a content is a block: an object with a usable type."""
    return is_object(value) and usable_id(value.get("type"))


def text_part(block: Record) -> PartDraft:
    """Return a block of text as a part, which holds what is left of it as ``data``."""
    kind, table = TEXTS[block.pop("type")]
    return PartDraft(kind, **take_fields(block, table), data=block)


def text_block(part: Part, added_keys: Collection[str] = ()) -> Record:
    """Return the block of text that a part was, without the *added_keys* of its data.

    A part that is not one of reasoning is a block of type ``text``.
    """
    kind, table = _BLOCKS.get(part.type, _BLOCKS["text"])
    return block_of(part, kind, table, added_keys)


def block_of(
    part: Part, kind: str, table: Fields, added_keys: Collection[str] = ()
) -> Record:
    """Return the block of type *kind* that a part was, which was taken by *table*.

    *added_keys* of its data are those that the block did not have.
    """
    record: Record = {"type": kind}
    put_fields(record, table, part)
    return overlay(record, without_keys(added_keys, part.data))


def mark_synthetic(part: PartDraft) -> PartDraft:
    """Return a part that the program added to a prompt, marked as such."""
    return replace(part, synthetic=True)
