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

#: The results of calls by their call id; None is none.
Results: TypeAlias = dict[str, str | None]

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


def items_of_rows(rows: Sequence[PartRow], most: int | None = None) -> list[Item]:
    """Return the items of the messages of a path, of which *rows* are all parts.

    They are the last *most*. Raises `NotOnlyItemsError` and `UnknownResultError`.
    """
    items: list[Item] = []
    results: Results = {}
    common: dict[bytes | None, Item] = {}
    group: list[PartRow] = []
    last_unknown = -1
    next_seqs = [*[row[0] for row in rows], 0]
    for row, next_seq in zip(rows, next_seqs[1:], strict=True):
        try:
            if group or row[0] == next_seq:
                group.append(row)
                if row[0] != next_seq:
                    parts, group = group, []
                    items += _items_of_group(parts, results)
                continue

            item = _usual_item(row, results, common)
            if item is not None:
                items.append(item)
            else:
                items += _items_of_group([row], results)
        except UnknownResultError:
            # It may be before those that are wanted.
            last_unknown = len(items)
            items.append({})
        except CodecError as error:
            # The read of the store names the message that is damaged.
            raise NotOnlyItemsError from error

    first = 0 if most is None else max(0, len(items) - most)
    if last_unknown >= first:
        raise UnknownResultError
    return items[first:]


def _usual_item(
    row: PartRow, results: Results, common: dict[bytes | None, Item]
) -> Item | None:
    """Return the item of a message with one part, as nine of ten are.

    None for a part that is not a text, a call or a result. *common* has the rests of
    items that were the same before.
    """
    _, kind, tool, call_id, text, arguments, packed, holder, _ = row
    if holder is not None:
        text, arguments, packed = _with_content(row)
    block = None
    leftover = common.get(packed)
    if leftover is None:
        leftover, block = _usual_leftover(packed)
        if leftover is None:
            return None
        is_short = block is None and len(packed) <= _COMMON_BYTES
        # Its copies share the values, which only for texts makes no difference.
        if is_short and all(type(value) is str for value in leftover.values()):
            common[packed] = leftover

    if kind == "text" and text is not None:
        if block is None:
            return {"content": text, **leftover}
        block["text"] = text
        return {"content": [block], **leftover}
    if block is not None:
        return None
    if kind == "tool-result":
        output = results.get(call_id) if text is None else text
        if output is None:
            raise UnknownResultError
        return {"call_id": call_id, "output": output, **leftover}
    # Other arguments are not the text that was sent: half a character is an escape.
    is_object = kind == "tool" and arguments and arguments[0] in "{["
    if is_object and "\\u" not in arguments:
        results[call_id] = text
        return {"call_id": call_id, "name": tool, "arguments": arguments, **leftover}
    return None


def _usual_leftover(packed: bytes | None) -> tuple[Item | None, Item | None]:
    """Return the rest of an item, and that of its only block of text, without both.

    (None, None) for any other data.
    """
    data = codec.unpack(packed)
    leftover = data.get(API)
    if (
        len(data) != 1
        or type(leftover) is not dict
        or type(leftover.get(ITEM)) is not dict
    ):
        return None, None
    item: Item = leftover[ITEM]
    if len(leftover) == 1:
        return item, None
    block = leftover.get(BLOCK)
    if len(leftover) != 2 or type(block) is not dict or "text" in block:
        return None, None
    return (item, block) if block.get("type") in _TEXT_BLOCKS else (None, None)


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


def _items_of_group(group: Sequence[PartRow], results: Results) -> list[Item]:
    """Return the items of one message, of which *group* are the parts."""
    parts = [_part_of_row(row, results) for row in group if row[1] is not None]
    if parts and not is_item(parts):
        raise NotOnlyItemsError
    return items_of_parts(parts) if parts else []


def _part_of_row(row: PartRow, results: Results) -> Part:
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
