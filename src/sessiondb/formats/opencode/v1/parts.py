"""Parts of any message as OpenCode 1.x has them; their ids are given later."""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.content import file_of
from sessiondb.formats.kit.conversion import Call, call_of, is_json
from sessiondb.formats.kit.fields import (
    without_none,
)
from sessiondb.formats.opencode.answers import outcome_of
from sessiondb.formats.opencode.generation import details_of
from sessiondb.formats.opencode.writing import OpenCodeWriter, Record
from sessiondb.model import Message, Part

#: Parts that 1.x has under the same name, with the fields that they must have.
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "patch": ("hash", "files"),
    "snapshot": ("snapshot",),
    "agent": ("name",),
    "step-start": (),
}


def parts_of(writer: OpenCodeWriter, message: Message) -> list[Record]:
    """Return the parts of a message; what 1.x has no part for is lost."""
    records = []
    for part in message.parts:
        fields = _fields_of(part, message, writer)
        if fields is None:
            writer.lose_part(part, message)
        else:
            records.append({"type": part.type, **fields})

    return records


def _fields_of(part: Part, message: Message, writer: OpenCodeWriter) -> Record | None:
    """Return the fields of a part besides its type; None is a loss."""
    match part.type:
        case "text":
            return _text_fields(part)
        case "reasoning":
            time = _time_of(part) or {"time": {"start": message.time_created}}
            return {"text": part.text or "", **time}
        case "tool":
            writer.note_call(message, part)
            call = call_of(part)
            return {
                "tool": call.tool,
                "callID": call.id,
                "state": _tool_state(part, call),
            }
        case "file":
            return _file_fields(part)
        case "step-finish":
            return _step_finish(part, message)
        case _:
            return _required_fields(part)


def _required_fields(part: Part) -> Record | None:
    """Return the fields of a part that 1.x has under the same name."""
    if part.type not in _REQUIRED:
        return None
    fields = {}
    for key in _REQUIRED[part.type]:
        value = part.data.get(key)
        if not isinstance(value, str | list) or not is_json(value):
            return None
        fields[key] = value
    return fields


def _text_fields(part: Part) -> Record:
    fields: Record = {"text": part.text or ""}
    if part.data.get("ignored") is True:
        fields["ignored"] = True
    elif part.synthetic:
        fields["synthetic"] = True
    return {**fields, **_time_of(part)}


def _time_of(part: Part) -> Record:
    if part.time_started is None:
        return {}
    times = {"start": part.time_started, "end": part.time_ended}
    return {"time": without_none(times)}


def _step_finish(part: Part, message: Message) -> Record | None:
    """Return the end of a step; versions before 1.0 record no reason."""
    cost, tokens = part.data.get("cost"), part.data.get("tokens")
    if not isinstance(cost, int | float) or not isinstance(tokens, dict):
        return None
    reason = part.data.get("reason") or message.finish or "unknown"
    return {"reason": reason, "cost": cost, "tokens": tokens}


def _file_fields(part: Part) -> Record | None:
    file = file_of(part)
    url = file.url
    if file.data is not None:
        url = f"data:{file.mime};base64,{file.data}"
    if url is None:
        return None
    return without_none({"mime": file.mime, "url": url, "filename": file.name})


# -- calls --------------------------------------------------------------------


def _tool_state(part: Part, call: Call) -> Record:
    status = part.status or "pending"
    state: Record = {"status": status, "input": call.arguments}
    if status == "pending":
        return {**state, "raw": ""}

    details = details_of(part)
    if details is not None:
        state["metadata"] = details
    state["time"] = {"start": call.start}
    if status == "running":
        return state

    state["time"]["end"] = call.end or call.start
    if status == "error":
        details = details or {}
        is_recorded = outcome_of(call.failure, details) == "interrupted"
        if part.outcome == "interrupted" and not is_recorded:
            state["metadata"] = {**details, "interrupted": True}
        return {**state, "error": call.failure}

    result = {"output": call.result, "title": part.title or ""}
    return {"metadata": {}, **state, **result}
