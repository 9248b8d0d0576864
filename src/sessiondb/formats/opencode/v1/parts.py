"""Parts of any message as OpenCode 1.x has them; their ids are given later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.formats.content import file_of
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.neutral import (
    WHOLE_OUTPUT,
    arguments,
    details_of,
    is_json,
)
from sessiondb.formats.opencode.v2.records import part_json
from sessiondb.model import Message, Part

if TYPE_CHECKING:
    from sessiondb.formats.opencode.v1.writer import WriterV1

Record = dict[str, Any]
#: Parts that 1.x has under the same name, with what they must have.
_SAME = {
    "patch": ("hash", "files"),
    "snapshot": ("snapshot",),
    "agent": ("name",),
    "step-start": (),
}


def parts_of(to: WriterV1, message: Message) -> list[Record]:
    """Return the parts of a message; what 1.x has no part for is lost."""
    parts = []
    for part in message.parts:
        record = _record(to, message, part)
        if record is None:
            to.lose(f"part {part.type}", message)
        else:
            parts.append(record)
    snapshot = message.data.get("snapshot")
    return _stepped(message, parts, snapshot) if isinstance(snapshot, dict) else parts


def _record(to: WriterV1, message: Message, part: Part) -> Record | None:
    if part.type in ("text", "reasoning"):
        return _said(message, part)
    if part.type == "tool":
        return _tool(to, message, part)
    if part.type == "file":
        return _file(part)
    if part.type == "step-finish":
        return _step_finish(message, part)
    needed = _SAME.get(part.type)
    if needed is not None and all(_fits(part.data.get(key)) for key in needed):
        return {"type": part.type, **{key: part.data[key] for key in needed}}
    return None


def _said(message: Message, part: Part) -> Record:
    record = {"type": part.type, "text": part.text or ""}
    if part.type == "text":
        return {**record, **_flags(part), **_time(part)}
    return {**record, **(_time(part) or {"time": {"start": message.time_created}})}


def _step_finish(message: Message, part: Part) -> Record | None:
    """Return the end of a step; versions before 1.0 do not say why it ended."""
    cost, tokens = part.data.get("cost"), part.data.get("tokens")
    if not isinstance(cost, int | float) or not isinstance(tokens, dict):
        return None
    reason = part.data.get("reason") or message.finish or "unknown"
    return {"type": "step-finish", "reason": reason, "cost": cost, "tokens": tokens}


def _fits(value: Any) -> bool:
    return isinstance(value, str | list) and is_json(value)


def _flags(part: Part) -> Record:
    return {key: True for key in ("synthetic", "ignored") if part.data.get(key) is True}


def _time(part: Part) -> Record:
    if part.time_started is None:
        return {}
    end = {} if part.time_ended is None else {"end": part.time_ended}
    return {"time": {"start": part.time_started, **end}}


def _file(part: Part) -> Record | None:
    file = file_of(part)
    url = f"data:{file.mime};base64,{file.data}" if file.data is not None else file.url
    if url is None:
        return None
    name = {} if file.name is None else {"filename": file.name}
    return {"type": "file", "mime": file.mime, "url": url, **name}


def _tool(to: WriterV1, message: Message, part: Part) -> Record:
    call_id = part.call_id or f"call_{part.id}"
    to.called(part.call_id, part.text)
    if OUTPUT_FILE in part.data:
        to.lose(WHOLE_OUTPUT, message)
    return {
        "type": "tool",
        "tool": part.tool or "unknown",
        "callID": call_id,
        "state": _state(to, message, part),
    }


def _state(to: WriterV1, message: Message, part: Part) -> Record:
    if part.input is not None and not isinstance(part.input, dict):
        to.lose(f"that the input of call {part.call_id} is not an object", message)
    status = part.status or "pending"
    state: Record = {"status": status, "input": arguments(part)}
    if status == "pending":
        return {**state, "raw": ""}
    start = part.time_started or part.time_created
    state["time"] = {"start": start}
    source = part_json(part).get("state")
    source = source if isinstance(source, dict) else {}
    details = source.get("metadata") if "state" in part.data else details_of(part)
    if isinstance(details, dict):
        state["metadata"] = details
    if status == "running":
        return state
    state["time"]["end"] = part.time_ended or start
    if status == "error":
        return {**state, "error": part.text or part.outcome or "failed"}
    if files := _attachments(source.get("content")):
        state["attachments"] = files
    state.setdefault("metadata", {})
    return {**state, "output": part.text or "", "title": part.title or ""}


def _attachments(pieces: Any) -> list[Record]:
    files = []
    for item in pieces if isinstance(pieces, list) else ():
        if isinstance(item, dict) and item.get("type") == "file":
            name = (
                {"filename": item["name"]} if isinstance(item.get("name"), str) else {}
            )
            files.append(
                {
                    "type": "file",
                    "mime": item.get("mime"),
                    "url": item.get("uri"),
                    **name,
                }
            )
    return files


def _stepped(message: Message, parts: list[Record], snapshot: Record) -> list[Record]:
    """Put an answer between the snapshots that 2 keeps beside it."""
    start, end, files = (snapshot.get(key) for key in ("start", "end", "files"))
    first = {
        "type": "step-start",
        **({"snapshot": start} if isinstance(start, str) else {}),
    }
    last: list[Record] = []
    tokens = message.tokens
    if isinstance(end, str) and tokens is not None:
        counts = [count or 0 for count in tokens.columns()]
        last = [
            {
                "type": "step-finish",
                "reason": message.finish or "unknown",
                "snapshot": end,
                "cost": message.cost or 0,
                "tokens": {
                    **dict(zip(("input", "output", "reasoning"), counts, strict=False)),
                    "cache": {"read": counts[3], "write": counts[4]},
                },
            }
        ]
    if files and isinstance(start, str):
        last.append({"type": "patch", "hash": start, "files": files})
    return [first, *parts, *last]
