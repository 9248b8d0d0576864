"""Messages that were records of a plain log, as the same records again.

The rest of a record in ``data`` takes precedence over its columns and parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from sessiondb.formats.content import embedded_text
from sessiondb.formats.event_log import fields
from sessiondb.formats.event_log.drafts import TEXTS
from sessiondb.formats.event_log.lifting import (
    ANSWER_MARKS,
    DETAILS,
    FILE_MARKS,
    PART_MARKS,
    put_data,
    put_message_data,
)
from sessiondb.formats.kit.conversion import is_native
from sessiondb.formats.kit.fields import as_list, as_object
from sessiondb.formats.kit.spelled import keys_in, put_spelled
from sessiondb.formats.kit.usage import put_usage
from sessiondb.model import Message, Part

Record = dict[str, Any]
#: Types of the records of an answer, by their names in ``order``.
_OF_ANSWER = {
    "started": fields.STARTED,
    "part": fields.CALLED,
    "finished": fields.FINISHED,
}


#: The keys of a part that was read, one of which says where it was in its record.
_MARKS = frozenset({"field", "record", "source"})


def is_answer(message: Message) -> bool:
    """Return whether a message was made of the records of an answer."""
    return message.role == "assistant" and bool(as_list(message.data.get("order")))


def is_record(message: Message) -> bool:
    """Return whether a message was a record, unlike one that was added here."""
    if is_native(message.id):
        return False

    for part in message.parts:
        # A result may be in its record as it is, without a text of its own.
        if part.type != "tool-result" and _MARKS.isdisjoint(part.data):
            return False
    return True


def record_of(message: Message) -> Record:
    """Return the record that a message was by itself."""
    record = _copy(message.data)
    put_message_data(record)
    type_ = fields.type_of(message.role, message.kind)
    if message.role == "tool" and not _has_result(message):
        type_ = fields.RETURNED_PARTS
    record.setdefault("type", type_)
    fields.put_time(record, message.time_created)
    if message.role == "event":
        put_spelled(record, fields.STATED, message)
        if record.get(fields.COUNTED) is True:
            put_spelled(record, fields.COST, message)
            if message.tokens is not None and "tokens" not in record:
                record.setdefault("usage", {})
            put_usage(record, message.tokens)
    elif message.role != "tool":
        put_spelled(record, {**fields.STATED, **fields.KIND}, message)

    for part in message.parts:
        if (message.kind or message.role) == "tool":
            put_spelled(record, fields.RESULT, part)
        # Anything but an object was left in its place.
        if message.kind == "context" and "source" in part.data:
            record["sources"][part.data["source"]] = _source_record(part)

    _put_texts(record, message.parts)
    return record


def _has_result(message: Message) -> bool:
    return any(part.type == "tool-result" for part in message.parts)


def answer_records(message: Message) -> Iterator[tuple[int, Record]]:
    """Yield the records of an answer, each with how many messages are before it."""
    pieces = iter([part for part in message.parts if "record" in part.data])
    for name, between, *left in message.data["order"]:
        if name == "started":
            record = _start_record(message)
        elif name == "finished":
            record = _end_record(message, *left)
        else:
            record = _part_record(next(pieces))

        record.setdefault("type", _OF_ANSWER[name])
        yield between, record


def _start_record(message: Message) -> Record:
    record = _copy(as_object(message.data.get("started")))
    put_data(record, message.data, ANSWER_MARKS)
    fields.put_time(record, message.time_created)
    return record


def _end_record(message: Message, left: list[str]) -> Record:
    record = _copy(as_object(message.data.get("finished")))
    fields.put_time(record, message.time_completed)
    _put_texts(record, message.parts)

    # Columns that come from the start, or from another key, are not of this record.
    table = {name: spelling for name, spelling in fields.ENDED.items() if name in left}
    put_spelled(record, table, message)
    put_usage(record, message.tokens)
    return record


# -- parts ---------------------------------------------------------------------


def _part_record(part: Part) -> Record:
    """Return the record that a part was by itself: a call, or a text."""
    record = _copy(part.data["record"])
    if "as_block" in part.data:
        record[fields.PART] = _text_or_block(part)
        fields.put_time(record, part.time_started)
        return record

    put_data(record, part.data, PART_MARKS)
    if part.type == "tool":
        put_spelled(record, fields.CALL, part)
        # No arguments are written for a call without any: null would be others.
        if part.input_json is not None and not keys_in(record, fields.INPUT):
            record[fields.INPUT[0]] = part.input
    elif part.data["key"] is not None:
        record[part.data["key"]] = part.text

    fields.put_time(record, part.time_started)
    return record


def _source_record(part: Part) -> Record:
    """Return a source of a context, with its keys in their order."""
    source = {**as_object(part.input), **_copy(part.data["record"])}
    if part.data["key"]:
        source[part.data["key"]] = part.text

    keys = part.data.get("keys", source)
    return {key: source[key] for key in keys if key in source}


def _put_texts(record: Record, parts: Iterable[Part]) -> None:
    """Write the texts of a record, and its lists of blocks, under their keys."""
    for part in parts:
        # A part with a record of its own is written there.
        if "record" in part.data:
            continue
        if "as_block" in part.data:
            record.setdefault(part.data["field"], []).append(_text_or_block(part))
        # A text that was made of a structure has no key: the structure is in ``data``.
        elif "field" in part.data:
            record[part.data["field"]] = _text_or_block(part)


def _text_or_block(part: Part) -> Any:
    """Return the text that a part was, or the block."""
    if "as_block" not in part.data:
        return part.text

    block = _copy(part.data["as_block"])
    if part.type == "file":
        if "url" not in block and not _is_bare(part):
            block["data"] = embedded_text(part)
        put_data(block, part.data, FILE_MARKS, DETAILS)
        return block

    put_data(block, part.data, PART_MARKS)
    if part.text is not None:
        _, text_key = TEXTS.get(block["type"], ("", "text"))
        block[text_key] = part.text
    return block


def _is_bare(part: Part) -> bool:
    """Return whether a file is known by its name alone."""
    return part.data.keys().isdisjoint(("content", "url"))


def _copy(record: Mapping[str, Any]) -> Record:
    """Return a copy of a record, which may be changed."""
    return deepcopy(dict(record))
