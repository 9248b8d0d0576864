"""Parts of any message as OpenCode 1.x has them; their ids are given later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.content import file_of
from sessiondb.formats.kit.conversion import Call, call_of, is_json
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    filled,
    within,
    without_none,
)
from sessiondb.formats.opencode.answers import outcome
from sessiondb.formats.opencode.generation import details_of
from sessiondb.formats.opencode.v2.records import part_json
from sessiondb.formats.opencode.writing import Maker, OpenCodeWriter, Record
from sessiondb.model import Message, Part

#: Parts that 1.x has under the same name, with what they must have.
_SAME: Mapping[str, tuple[str, ...]] = {
    "patch": ("hash", "files"),
    "snapshot": ("snapshot",),
    "agent": ("name",),
    "step-start": (),
}


def parts_of(to: OpenCodeWriter, message: Message) -> list[Record]:
    """Return the parts of a message; what 1.x has no part for is lost."""
    return to.pieces(message, message.parts, _MAKERS)


# -- parts by their type ------------------------------------------------------------
#
# Each function returns the fields of a part besides its type; None is a loss.


def _text(_: OpenCodeWriter, __: Message, part: Part) -> Record:
    kept = ("synthetic", "ignored")
    flags = {key: True for key in kept if part.data.get(key) is True}
    return {"text": part.text or "", **flags, **_time(part)}


def _reasoning(_: OpenCodeWriter, message: Message, part: Part) -> Record:
    time = _time(part) or {"time": {"start": message.time_created}}
    return {"text": part.text or "", **time}


def _time(part: Part) -> Record:
    if part.time_started is None:
        return {}
    times = {"start": part.time_started, "end": part.time_ended}
    return {"time": without_none(times)}


def _step_finish(_: OpenCodeWriter, message: Message, part: Part) -> Record | None:
    """Return the end of a step; versions before 1.0 do not say why it ended."""
    cost, tokens = part.data.get("cost"), part.data.get("tokens")
    if not isinstance(cost, int | float) or not isinstance(tokens, dict):
        return None
    reason = part.data.get("reason") or message.finish or "unknown"
    return {"reason": reason, "cost": cost, "tokens": tokens}


def _same(_: OpenCodeWriter, __: Message, part: Part) -> Record | None:
    record = {key: part.data.get(key) for key in _SAME[part.type]}
    return record if all(map(_fits, record.values())) else None


def _fits(value: Any) -> bool:
    return isinstance(value, str | list) and is_json(value)


def _file(_: OpenCodeWriter, __: Message, part: Part) -> Record | None:
    file = file_of(part)
    url = file.url
    if file.data is not None:
        url = f"data:{file.mime};base64,{file.data}"
    if url is None:
        return None
    return without_none({"mime": file.mime, "url": url, "filename": file.name})


# -- calls --------------------------------------------------------------------


def _tool(to: OpenCodeWriter, message: Message, part: Part) -> Record:
    to.note_call(message, part)
    call = call_of(part)
    return {"tool": call.tool, "callID": call.id, "state": _state(part, call)}


def _state(part: Part, call: Call) -> Record:
    status = part.status or "pending"
    state: Record = {"status": status, "input": call.arguments}
    if status == "pending":
        return {**state, "raw": ""}

    state.update(without_none({"metadata": details_of(part)}))
    state["time"] = {"start": call.start}
    if status == "running":
        return state

    state["time"]["end"] = call.end or call.start
    if status == "error":
        details = as_object(state.get("metadata"))
        is_said = outcome(call.failure, details) == "interrupted"
        if part.outcome == "interrupted" and not is_said:
            state["metadata"] = {**details, "interrupted": True}
        return {**state, "error": call.failure}
    result = {"output": call.result, "title": part.title or ""}
    files = {"attachments": _attachments(part)}
    return {"metadata": {}, **state, **result, **filled(files)}


def _attachments(part: Part) -> list[Record]:
    """Return the files in the result of a call of 2."""
    state = part_json(part).get("state")
    pieces = map(as_object, as_list(within(state, "content")))
    return [_attachment(item) for item in pieces if item.get("type") == "file"]


def _attachment(item: Record) -> Record:
    file = {"type": "file", "mime": item.get("mime"), "url": item.get("uri")}
    return {**file, **without_none({"filename": as_text(item.get("name"))})}


_MAKERS: Mapping[str, Maker] = {
    **dict.fromkeys(_SAME, _same),
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "file": _file,
    "step-finish": _step_finish,
}
