"""The parts of an answer of any kind, as OpenCode 2 has them."""

from __future__ import annotations

from typing import Any

from sessiondb.formats.kit.conversion import Call, call_of
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    is_object,
    objects_in,
    text,
    value_at,
    without_empty,
    without_none,
)
from sessiondb.formats.opencode.generation import details_of
from sessiondb.formats.opencode.writing import OpenCodeWriter, Record
from sessiondb.model import Message, Part

#: Parts of 1.x that became fields of the answer, or of a call: nothing of them is lost.
_FOLDED = frozenset({"step-start", "step-finish", "snapshot", "patch", "source"})
_CLEARED = "[Old tool result content cleared]"


def content_of(writer: OpenCodeWriter, message: Message) -> list[Record]:
    """Return the content of an answer; what 2 has no piece for is lost."""
    pieces = []
    for part in message.parts:
        match part.type:
            case "text":
                pieces.append(_text_piece(part))
            case "reasoning":
                pieces.append({**_text_piece(part), "time": _times_of(part)})
            case "tool":
                writer.note_call(message, part)
                pieces.append(_tool_piece(part))
            case _:
                if part.type not in _FOLDED:
                    writer.lose_part(part, message)

    return pieces


def _text_piece(part: Part) -> Record:
    piece: Record = {"type": part.type, "text": part.text or ""}
    state = _provider_state(part)
    if state is not None:
        piece["state"] = state
    return piece


def _provider_state(part: Part) -> Record | None:
    """Return a provider's own values with a piece: ``metadata`` in 1.x."""
    metadata = part.data.get("metadata")
    return metadata if is_object(metadata) else None


def _times_of(part: Part) -> Record:
    call = call_of(part)
    return without_none({"created": call.start, "completed": call.end})


def snapshot_of(message: Message) -> Record:
    """Return the snapshots around an answer, and the files it changed.

    Version 1.x has them in parts: the first of the answer is its start.
    """
    snapshot = message.data.get("snapshot")
    if isinstance(snapshot, dict):
        return snapshot

    starts = [
        *_values_in(message, "step-start", "snapshot"),
        *_values_in(message, "snapshot", "snapshot"),
        *_values_in(message, "patch", "hash"),
    ]
    ends = _values_in(message, "step-finish", "snapshot")
    files: list[Any] = []
    for paths in _values_in(message, "patch", "files"):
        files += as_list(paths)
    return without_empty(
        {
            "start": starts[0] if starts else None,
            "end": ends[-1] if ends else None,
            "files": list(dict.fromkeys(files)),
        }
    )


def _values_in(message: Message, kind: str, key: str) -> list[Any]:
    """Return the values of *key* in the parts of a *kind*, except empty ones."""
    return [
        part.data[key]
        for part in message.parts
        if part.type == kind and part.data.get(key)
    ]


# -- calls --------------------------------------------------------------------


def _tool_piece(part: Part) -> Record:
    call = call_of(part)
    piece = {
        "type": "tool",
        "id": call.id,
        "name": call.tool,
        "providerState": _provider_state(part),
        "state": _tool_state(part, call),
        "time": _times_of(part),
    }
    return without_none(piece)


def _tool_state(part: Part, call: Call) -> Record:
    source = as_object(part.data.get("state"))
    state: Record = {"status": "completed", "input": call.arguments}
    details = details_of(part)
    if details is not None:
        state["metadata"] = details
    if part.status == "completed":
        return {**state, "content": _result_content(call, source)}

    output = value_at(details, "output")
    if text(output):
        state["content"] = [{"type": "text", "text": output}]
    return {**state, "status": "error", "error": _error_of(part, call)}


def _error_of(part: Part, call: Call) -> Record:
    if part.status != "error":
        message = call.result or "Tool execution interrupted"
        return {"type": "tool.interrupted", "message": message}
    if part.outcome == "denied":
        return {"type": "permission.rejected", "message": call.failure}
    if part.outcome == "interrupted":
        return {"type": "tool.interrupted", "message": call.failure}
    return {"type": "tool.execution", "message": call.failure}


def _result_content(call: Call, source: Record) -> list[Record]:
    if value_at(source, "time", "compacted") is not None:
        return [{"type": "text", "text": _CLEARED}]

    content: list[Record] = [{"type": "text", "text": call.result}]
    for item in objects_in(source.get("attachments")):
        file = {"type": "file", "uri": item.get("url"), "mime": item.get("mime")}
        content.append({**file, **without_empty({"name": item.get("filename")})})
    return content
