"""Sessions of OpenCode 2 to the records that its ``session export`` prints.

Works on the drafts of the reader and on the records of the database, like `v1.records`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    overlay,
    put_fields,
    value_at,
    without_empty,
    without_keys,
    without_none,
)
from sessiondb.formats.opencode.answers import finish_of, input_of
from sessiondb.formats.opencode.keys import (
    GENERATION,
    INBOX,
    INSTRUCTIONS,
    NO_RAN,
    OUTPUT_FILE,
    PENDING,
    PIECES,
    RECENT,
    ROW_REST,
)
from sessiondb.formats.opencode.v1.records import (
    as_recorded,
    drop_if_empty,
    put_tokens,
    session_name,
)
from sessiondb.formats.opencode.v2 import fields
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Session,
    SourceSession,
)

_NOT_OF_SESSION = frozenset({GENERATION, ROW_REST, INBOX, PENDING, INSTRUCTIONS})
_NOT_OF_PART = frozenset({NO_RAN, OUTPUT_FILE})
#: The status of a call in 2 by the one it has here.
_STATUS: Mapping[str | None, str] = {
    status: status_of_2 for status_of_2, status in fields.STATUS.items()
}


def export_json(
    session: Session | SourceSession, messages: Iterable[Message | MessageDraft]
) -> dict[str, Any]:
    """Return the JSON that ``opencode session export`` prints for a session of 2."""
    records = []
    for message in messages:
        record = message_json(message)
        if record is not None and is_settled(record):
            records.append(record)
    return {"info": session_info(session), "messages": records}


def session_info(session: Session | SourceSession) -> dict[str, Any]:
    """Return a session's own record."""
    info: dict[str, Any] = {"id": session_name(session)}
    put_fields(info, fields.SESSION, as_recorded(session))
    drop_if_empty(info, "title")
    drop_if_empty(info, "metadata")
    return overlay(info, without_keys(_NOT_OF_SESSION, session.data))


def is_settled(record: dict[str, Any]) -> bool:
    """Return whether OpenCode exports *record*: only what is finished is."""
    if record["type"] == "assistant":
        return value_at(record, "time", "completed") is not None
    can_run = record["type"] in ("shell", "compaction")
    return not can_run or record.get("status") != "running"


def message_json(message: Message | MessageDraft) -> dict[str, Any] | None:
    """Return a message's record; None for what OpenCode did not write."""
    kind = message.data.get("type") if message.role == "event" else message.role
    if type(kind) is not str:
        return None

    record: dict[str, Any] = {"id": message.id, "type": kind}
    put_fields(record, fields.MESSAGE.get(kind, fields.OTHER), message)
    put_tokens(record, message)
    if kind == "assistant":
        finish = finish_of(message.finish)
        if finish is not None:
            record["finish"] = finish
        if "content" not in message.data:
            record["content"] = [part_json(part) for part in message.parts]
    elif kind == "shell":
        for part in message.parts:
            put_fields(record, fields.SHELL, part)
            record.update(input_of(part) or {})
    else:
        _put_texts_and_lists(record, message)
    return overlay(record, message.data)


def _put_texts_and_lists(
    record: dict[str, Any], message: Message | MessageDraft
) -> None:
    text_key = "summary" if record["type"] == "compaction" else "text"
    for part in message.parts:
        if part.type in fields.LISTS:
            items = record.setdefault(fields.LISTS[part.type], [])
            items.append(_with_base64(part.data))
        elif part.data.get(RECENT):
            record["recent"] = part.text
        elif part.type == "text":
            record[text_key] = part.text


def _with_base64(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file or agent as a prompt has it, its content in base64."""
    item = dict(data)
    if isinstance(item.get("content"), bytes):
        item["data"] = base64.b64encode(item.pop("content")).decode()
        if "filename" in item:
            item["name"] = item.pop("filename")
    return item


def part_json(part: Part | PartDraft) -> dict[str, Any]:
    """Return a piece of the content of an answer."""
    record: dict[str, Any] = {"type": part.type}
    put_fields(record, fields.PART.get(part.type, {}), part)
    data = without_keys(_NOT_OF_PART, part.data)
    if part.type != "tool":
        return overlay(record, data)

    if NO_RAN in part.data:
        del record["time"]["ran"]
    status = _STATUS.get(part.status, part.status)
    state = without_none({"status": status, "input": input_of(part)})
    if part.text is not None and status == "error":
        state["error"] = {"message": part.text}
    record.update(without_empty({"state": state}))
    overlay(record, data)

    # The data have the lengths of the texts in the place of the content.
    if part.text is not None and status != "error":
        state = as_object(record.setdefault("state", {}))
        state["content"] = _cut_result(part.text, as_list(state.get(PIECES)))
    return record


def _cut_result(text: str, pieces: list[Any]) -> list[Any]:
    """Cut a result into the texts that it was joined of.

    Uncut if the lengths do not fit.
    """
    lengths = [item for item in pieces if isinstance(item, int)]
    if not lengths or sum(lengths) + len(lengths) - 1 != len(text):
        return [{"type": "text", "text": text}]

    content, start = [], 0

    for item in pieces:
        if isinstance(item, int):
            content.append({"type": "text", "text": text[start : start + item]})
            start += item + 1
        else:
            content.append(item)

    return content
