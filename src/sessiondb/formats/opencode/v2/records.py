"""Sessions of OpenCode 2 to the JSON of its ``session export``, as they were.

Works on what the reader yields and on what the database returns, like `v1.records`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.formats.kit.fields import overlay, put
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
from sessiondb.formats.opencode.v1.records import as_stated, session_name, without
from sessiondb.formats.opencode.v2 import fields
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Session,
    SourceSession,
)
from sessiondb.model.draft import NO_INPUT

_NOT_OF_SESSION = frozenset({GENERATION, ROW_REST, INBOX, PENDING, INSTRUCTIONS})
_NOT_OF_PART = frozenset({NO_RAN, OUTPUT_FILE})
_STATUS = {ours: theirs for theirs, ours in fields.STATUS.items()}
_LISTS = {"file": "files", "agent": "agents"}


def export_json(
    session: Session | SourceSession, messages: Iterable[Message | MessageDraft]
) -> dict[str, Any]:
    """Return what ``opencode session export`` prints for a session that OpenCode 2 wrote."""
    records = (message_json(message) for message in messages)
    return {
        "info": session_info(session),
        "messages": [r for r in records if settled(r)],
    }


def session_info(session: Session | SourceSession) -> dict[str, Any]:
    """Return a session's own record."""
    info: dict[str, Any] = {"id": session_name(session)}
    put(info, fields.SESSION, as_stated(session))
    for key in ("title", "metadata"):
        if not info[key]:
            del info[key]
    if session.relation == "subagent" and session.parent_source_id is not None:
        info["parentID"] = session.parent_source_id
    return overlay(info, without(_NOT_OF_SESSION, session.data))


def settled(record: dict[str, Any] | None) -> bool:
    """Return whether OpenCode exports *record*: only what is finished is."""
    if record is None:
        return False
    if record["type"] == "assistant":
        time = record.get("time")
        return isinstance(time, dict) and time.get("completed") is not None
    return (
        record["type"] not in ("shell", "compaction")
        or record.get("status") != "running"
    )


def message_json(message: Message | MessageDraft) -> dict[str, Any] | None:
    """Return a message's record; None for what OpenCode did not write."""
    rest = message.data
    kind = rest.get("type") if message.role == "event" else message.role
    if type(kind) is not str:
        return None
    record: dict[str, Any] = {"id": message.id, "type": kind}
    put(record, fields.MESSAGE.get(kind, fields.OTHER), message)
    if kind in fields.COUNTED and message.tokens is not None:
        put(record, fields.USAGE, message.tokens)
    if kind == "assistant":
        if message.finish not in (None, "cancelled"):
            record["finish"] = message.finish
        if "content" not in rest:
            record["content"] = [part_json(part) for part in message.parts]
    elif kind == "shell":
        _put_shell(record, message.parts)
    else:
        for part in message.parts:
            _put_part(record, kind, part)
    return overlay(record, rest)


def _put_part(record: dict[str, Any], kind: str, part: Part | PartDraft) -> None:
    if part.type in _LISTS:
        record.setdefault(_LISTS[part.type], []).append(_attached(part.data))
    elif part.data.get(RECENT):
        record["recent"] = part.text
    elif part.type == "text":
        record["summary" if kind == "compaction" else "text"] = part.text


def _attached(data: Mapping[str, Any]) -> dict[str, Any]:
    item = dict(data)
    if isinstance(item.get("content"), bytes):
        item["data"] = base64.b64encode(item.pop("content")).decode()
        if "filename" in item:
            item["name"] = item.pop("filename")
    return item


def _put_shell(record: dict[str, Any], parts: Iterable[Part | PartDraft]) -> None:
    for part in parts:
        if part.call_id is not None:
            record["shellID"] = part.call_id
        record.update(_input(part) or {})
        if part.text is not None:
            record["output"] = {"output": part.text}


def part_json(part: Part | PartDraft) -> dict[str, Any]:
    """Return a piece of the content of an answer."""
    record: dict[str, Any] = {"type": part.type}
    put(record, fields.PART.get(part.type, {}), part)
    if part.type == "tool":
        if part.data.get(NO_RAN):
            del record["time"]["ran"]
        if state := _state(part):
            record["state"] = state
    return overlay(record, without(_NOT_OF_PART, _without_pieces(part)))


def _state(part: Part | PartDraft) -> dict[str, Any]:
    state: dict[str, Any] = {}
    if part.status is not None:
        state["status"] = _STATUS.get(part.status, part.status)
    given = _input(part)
    if given is not None:
        state["input"] = given
    if part.text is not None:
        if part.status == "error":
            state["error"] = {"message": part.text}
        else:
            rest = part.data.get("state")
            pieces = rest.get(PIECES) if isinstance(rest, dict) else None
            state["content"] = _pieces(part.text, pieces)
    return state


def _pieces(text: str, pieces: Any) -> list[Any]:
    """Cut a result into the texts that it was joined of; uncut if the lengths do not fit."""
    lengths = [item for item in pieces or () if isinstance(item, int)]
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


def _without_pieces(part: Part | PartDraft) -> Mapping[str, Any]:
    state = part.data.get("state")
    if part.status == "error" or part.text is None or not isinstance(state, dict):
        return part.data
    return {**part.data, "state": {k: v for k, v in state.items() if k != PIECES}}


def _input(part: Part | PartDraft) -> Any:
    if isinstance(part, Part):
        return part.input
    return None if part.input is NO_INPUT else part.input
