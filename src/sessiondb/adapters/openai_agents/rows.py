"""Rows of parts to items, for reads of a session that only this adapter wrote.

Such a session is read by one statement of `statements`, and its usual items are put
together here from their columns, as `formats.providers.responses.items` does it, to
which any other item is handed. A session that has messages of other programs, or whose
rows lack a value, is left to the reads of the store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from sessiondb import codec
from sessiondb.adapters.openai_agents.items import Item, is_item, items_of_parts
from sessiondb.errors import CodecError
from sessiondb.formats.providers.responses.fields import API
from sessiondb.formats.providers.rest import BLOCK, ITEM
from sessiondb.model import Part

#: seq, type, tool, call_id, text, input, data, holder, content: see `statements`.
PartRow: TypeAlias = Sequence[Any]

#: The types of blocks of content that have a text under the key ``text``.
_TEXT_BLOCKS = frozenset({"output_text", "input_text"})
#: Bytes of the data of a part that many items share, such as the role of a prompt.
_COMMON_BYTES = 64
#: The greatest size of a blob.
_MOST_BYTES = 10**9


class NotOnlyItemsError(Exception):
    """The store has to read the session: not all of it can be made of its rows."""


class UnknownResultError(Exception):
    """The text of a result is stored with a call that is before the rows."""


def path_rows(rows: Sequence[PartRow]) -> Sequence[PartRow]:
    """Return the rows of `ALL_PARTS` that are on the path to the leaf, in order.

    Raises `NotOnlyItemsError` if some message of the path is not among them.
    """
    if not rows:
        return rows
    (_, leaf_text, jumps_json, *_), *parts = rows
    if leaf_text is None or not parts:
        return []
    leaf = int(leaf_text)
    jumps: dict[int, int | None] = dict(json.loads(jumps_json))
    # The ranges of the path in which each message follows the one before it.
    ranges: list[tuple[int, int]] = []
    for seq in sorted(jumps, reverse=True):
        if seq <= leaf:
            ranges.append((seq, leaf))
            leaf = jumps[seq] or 0
    ranges.reverse()
    path = parts
    if len(ranges) != 1 or parts[0][0] < ranges[0][0]:
        path = _rows_in(ranges, parts)
    length = sum([last - first + 1 for first, last in ranges])
    if len({row[0] for row in path}) != length:
        # It begins before the rows, at the root of another branch; or a message has
        # no parts, or was removed by a shell.
        raise NotOnlyItemsError
    return path


def _rows_in(
    ranges: Sequence[tuple[int, int]], rows: Sequence[PartRow]
) -> list[PartRow]:
    """Return the rows in *ranges* of seqs; both are in order, and end alike."""
    path: list[PartRow] = []
    place = 0
    for row in rows:
        while ranges[place][1] < row[0]:
            place += 1
        if ranges[place][0] <= row[0]:
            path.append(row)
    return path


def last_path_rows(rows: Sequence[PartRow], most: int) -> tuple[list[PartRow], bool]:
    """Return the rows of `LAST_PARTS` that are on the path to the leaf, in order.

    Also whether they are all that are on it: *most* rows were asked for. A message of
    which some parts may be missing is left out. Raises `NotOnlyItemsError` if the path
    breaks off.
    """
    last_seq = rows[-1][0] if len(rows) == most else 0
    path: list[PartRow] = []
    seq = parent = rows[0][0] if rows else None
    for row in rows:
        if row[0] == last_seq:
            return path[::-1], False
        if row[0] != seq and row[0] != parent:
            continue
        seq, parent = row[0], row[-1]
        path.append(row[:-1])
    if parent is not None:
        raise NotOnlyItemsError
    return path[::-1], True


def items_of_rows(rows: Sequence[PartRow]) -> list[Item]:
    """Return the items of the messages of a path, of which *rows* are all parts.

    Raises `NotOnlyItemsError` and `UnknownResultError`.
    """
    try:
        return _items_of_rows(rows)
    except CodecError as error:
        # The read of the store names the message that is damaged.
        raise NotOnlyItemsError from error


def _items_of_rows(rows: Sequence[PartRow]) -> list[Item]:
    items: list[Item] = []
    results: dict[str, str | None] = {}
    common: dict[bytes, Item] = {}
    group: list[PartRow] = []
    next_seqs = [*[row[0] for row in rows], 0]
    for row, next_seq in zip(rows, next_seqs[1:], strict=True):
        seq, kind, tool, call_id, text, arguments, packed, holder, _ = row
        if seq == next_seq or group:
            group.append(row)
            if seq != next_seq:
                items += _items_of_group(group, results)
                group = []
            continue

        # Nine of ten items are a text, a call or a result, alone in its message.
        if holder is not None:
            text, arguments, packed = _with_content(row)
        block = None
        item = common.get(packed)
        if item is None:
            item, block = _usual_rest(packed)
            if item is not None and block is None and _is_common(packed, item):
                common[packed] = item

        if item is None:
            items += _items_of_group([row], results)
        elif kind == "text" and text is not None:
            if block is None:
                items.append({"content": text, **item})
            else:
                block["text"] = text
                items.append({"content": [block], **item})
        elif block is not None:
            items += _items_of_group([row], results)
        elif kind == "tool" and _is_plain_object(arguments):
            results[call_id] = text
            items.append(
                {"call_id": call_id, "name": tool, "arguments": arguments, **item}
            )
        elif kind == "tool-result":
            output = results.get(call_id) if text is None else text
            if output is None:
                raise UnknownResultError
            items.append({"call_id": call_id, "output": output, **item})
        else:
            items += _items_of_group([row], results)
    return items


def _usual_rest(packed: bytes | None) -> tuple[Item | None, Item | None]:
    """Return the rest of an item, and that of its only block of text, without both.

    (None, None) for any other data.
    """
    data = codec.unpack(packed)
    rest = data.get(API)
    if len(data) != 1 or type(rest) is not dict or type(rest.get(ITEM)) is not dict:
        return None, None
    item: Item = rest[ITEM]
    if len(rest) == 1:
        return item, None
    block = rest.get(BLOCK)
    if len(rest) != 2 or type(block) is not dict or "text" in block:
        return None, None
    return (item, block) if block.get("type") in _TEXT_BLOCKS else (None, None)


def _is_plain_object(arguments: str | None) -> bool:
    """Whether arguments are an object or list whose JSON is the text that was sent.

    Half a character is written as an escape in the file.
    """
    if arguments is None or arguments[:1] not in ("{", "["):
        return False
    return "\\u" not in arguments


def _is_common(packed: bytes, item: Item) -> bool:
    """Whether to remember an item without its text: copies of it share its values."""
    if len(packed) > _COMMON_BYTES:
        return False
    return all(type(value) is str for value in item.values())


def _with_content(row: PartRow) -> tuple[str | None, str | None, bytes | None]:
    """Return text, input and data of a part, one of which is in a blob."""
    text, arguments, packed, holder, content = row[4:9]
    column, name = holder[:1], holder[1:]
    if content is None or (packed is not None and column == "d"):
        raise NotOnlyItemsError
    # The content of packed data is compressed, and never begins like that otherwise.
    is_compressed = column == "d" and content[:1] == b"x"
    encoding = codec.COMPRESSED if is_compressed else codec.UTF8
    data = codec.content_of_blob(_MOST_BYTES, encoding, content)
    if sha256(data).hexdigest() != name:
        raise NotOnlyItemsError
    if column == "t":
        return data.decode(), arguments, packed
    if column == "i":
        return text, data.decode(), packed
    return text, arguments, data


def _items_of_group(
    group: Sequence[PartRow], results: dict[str, str | None]
) -> list[Item]:
    """Return the items of one message, of which *group* are the parts."""
    parts = [_part_of_row(row, results) for row in group if row[1] is not None]
    if parts and not is_item(parts):
        raise NotOnlyItemsError
    return items_of_parts(parts) if parts else []


def _part_of_row(row: PartRow, results: dict[str, str | None]) -> Part:
    _, kind, tool, call_id, text, arguments, packed, holder, _ = row[:9]
    if holder is not None:
        text, arguments, packed = _with_content(row)
    data = codec.unpack(packed)
    exact = data.pop(codec.EXACT, None)
    if isinstance(exact, str):
        text, data = exact, codec.unguard(data)
    if kind == "tool":
        results[call_id] = text
    elif kind == "tool-result" and text is None:
        text = results.get(call_id)
        if text is None:
            raise UnknownResultError
    return Part(
        0, "", kind, tool, call_id, None, None, None, arguments, text, data,
        False, 0, 0, None, None, False,
    )  # fmt: skip
