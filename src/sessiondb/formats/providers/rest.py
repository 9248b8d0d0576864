"""The rest of an item, a message or a block: all that its columns do not hold.

It is in the ``data`` of a part under the name of the API. ``item`` has the rest of what
begins with this part, ``block`` that of a block of content; a part with a rest but
without ``item`` continues what the part before it began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sessiondb.dataclass import replace
from sessiondb.formats.kit.fields import as_object, check_storable, without_keys
from sessiondb.model import Part, PartDraft

Record = dict[str, Any]
ITEM, BLOCK = "item", "block"
#: Keys of ``data`` that a file has whatever program it is from.
FILE_KEYS = ("url", "mime", "filename", "content")


def rest_of(part: Part, api: str) -> Record | None:
    """Return what an API left in a part; None if the part is not from it."""
    leftover = part.data.get(api)
    return leftover if type(leftover) is dict else None


def begins_item(part: Part, api: str) -> bool:
    """Return whether an item of an API begins with a part."""
    return type(as_object(rest_of(part, api)).get(ITEM)) is dict


def continues_item(part: Part, api: str) -> bool:
    """Return whether a part belongs to the item that a part before it began."""
    return rest_of(part, api) is not None and not begins_item(part, api)


def with_item(
    parts: Sequence[PartDraft], api: str, item: Record
) -> tuple[PartDraft, ...]:
    """Return the parts of one item, the first of which holds its rest."""
    first, *others = parts
    leftover = {ITEM: item, **as_object(first.data.get(api))}
    return (replace(first, data={**first.data, api: leftover}), *others)


def block_part(part: PartDraft, api: str) -> PartDraft:
    """Return a part whose ``data`` is the rest of a block, but for that of a file."""
    keys = FILE_KEYS if part.type == "file" else ()
    file = {key: part.data[key] for key in keys if key in part.data}
    return replace(part, data={**file, api: {BLOCK: without_keys(keys, part.data)}})


def check_parts(parts: Iterable[PartDraft]) -> None:
    """Raise `OddRecordError` for a part whose ``data`` cannot be stored."""
    for part in parts:
        check_storable(dict(part.data))


def items_in(parts: Iterable[Part], api: str) -> list[list[Part]]:
    """Return parts in groups: those of an item together, any other one alone."""
    groups: list[list[Part]] = []
    for part in parts:
        is_further = continues_item(part, api) and bool(groups)
        if is_further and begins_item(groups[-1][0], api):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups
