"""Messages that were records of a plain log, as the same records again.

What is left of a record in ``data`` wins over its columns and parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sessiondb.formats.content import file_of
from sessiondb.formats.event_log import fields
from sessiondb.formats.event_log.drafts import TEXTS
from sessiondb.formats.kit.fields import as_list, as_object
from sessiondb.formats.kit.spelled import put
from sessiondb.formats.kit.usage import put_usage
from sessiondb.model import Message, Part

Record = dict[str, Any]
#: Types of the records of an answer, by their names in ``order``.
_OF_ANSWER = {"started": fields.STARTED, "part": fields.CALLED}


def is_answer(message: Message) -> bool:
    """Return whether a message was made of the records of an answer."""
    return message.role == "assistant" and bool(as_list(message.data.get("order")))


def record_of(message: Message) -> Record:
    """Return the record that a message was by itself."""
    record: Record = _copy(message.data)
    if "type" not in record:
        record["type"] = _type_of(message)
    fields.put_time(record, message.time_created)

    if message.role == "tool":
        for part in message.parts:
            _put_result(record, part)
    elif message.kind == "context":
        _put_context(record, message.parts)
    else:
        record |= _said(message.parts)
    return record


def _type_of(message: Message) -> str:
    named = (name for name, role in fields.ROLES.items() if role == message.role)
    return next(named, message.kind or "custom")


def answer_records(message: Message) -> Iterator[tuple[int, Record]]:
    """Yield the records of an answer, each with how many messages are before it."""
    pieces = iter([part for part in message.parts if "record" in part.data])
    for name, between, *left in message.data["order"]:
        if name == "part":
            record = _part(next(pieces))
        else:
            record = _copy(as_object(message.data.get(name)))
        if name == "started":
            fields.put_time(record, message.time_created)
        elif name == "finished":
            _put_end(record, message, left[0])
        record.setdefault("type", _OF_ANSWER.get(name, fields.FINISHED))
        yield between, record


def _put_end(record: Record, message: Message, left: list[str]) -> None:
    fields.put_time(record, message.time_completed)
    record |= _said(message.parts)
    table = {name: of for name, of in fields.ANSWER.items() if name in left}
    put(record, table, message)
    if "finish" in left:
        record[fields.FINISH_KEYS[0]] = message.finish
    if "error" in left:
        record["error"] = message.error
    put_usage(record, message.tokens)


# -- parts ---------------------------------------------------------------------


def _part(part: Part) -> Record:
    """Return the record that a part was by itself: a call, or a text."""
    record: Record = _copy(part.data["record"])
    if part.type == "tool":
        put(record, fields.CALL, part)
        if part.input_json is not None and not _has(record, fields.INPUT):
            record[fields.INPUT[0]] = part.input
    elif part.data["key"] is not None:
        record[part.data["key"]] = part.text

    fields.put_time(record, part.time_started)
    return record


def _has(record: Record, keys: tuple[str, ...]) -> bool:
    return any(key in record for key in keys)


def _put_result(record: Record, part: Part) -> None:
    put(record, fields.RESULT, part)
    if "field" in part.data:
        record[part.data["field"]] = part.text


def _put_context(record: Record, parts: Iterable[Part]) -> None:
    own = []
    for part in parts:
        if "source" in part.data:
            record["sources"][part.data["source"]][part.data["field"]] = _one(part)
        else:
            own.append(part)
    record |= _said(own)


def _said(parts: Iterable[Part]) -> Record:
    """Return the texts of a record, and its lists of blocks, by their keys."""
    found: Record = {}
    for part in parts:
        key = part.data.get("field")
        if key is not None and "block" in part.data:
            found.setdefault(key, []).append(_one(part))
        elif key is not None:
            found[key] = _one(part)
    return found


def _one(part: Part) -> Any:
    """Return the text that a part was, or the block."""
    if "block" not in part.data:
        return part.text
    block = _copy(part.data["block"])
    if part.type == "file":
        block["data"] = file_of(part).data
    elif part.text is not None:
        block[TEXTS[block["type"]][1]] = part.text
    return block


def _copy(record: Any) -> Any:
    """Return a copy of JSON, which may be changed."""
    if isinstance(record, Mapping):
        return {key: _copy(value) for key, value in record.items()}
    return list(map(_copy, record)) if isinstance(record, list | tuple) else record
