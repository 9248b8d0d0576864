"""The parts of an answer of any kind, as OpenCode 2 has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.conversion import Call, call_of
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    filled,
    fitting,
    is_object,
    text,
    within,
    without_none,
)
from sessiondb.formats.opencode.generation import details_of
from sessiondb.formats.opencode.writing import Maker, OpenCodeWriter, Record
from sessiondb.model import Message, Part

#: Parts of 1.x that became fields of the answer, or of a call: nothing of them is lost.
_FOLDED = frozenset({"step-start", "step-finish", "snapshot", "patch", "source"})
_CLEARED = "[Old tool result content cleared]"


def content_of(to: OpenCodeWriter, message: Message) -> list[Record]:
    """Return the content of an answer; what 2 has no piece for is lost."""
    parts = (part for part in message.parts if part.type not in _FOLDED)
    return to.pieces(message, parts, _MAKERS)


def _text(_: OpenCodeWriter, __: Message, part: Part) -> Record:
    return without_none({"text": part.text or "", "state": _provider(part)})


def _reasoning(to: OpenCodeWriter, message: Message, part: Part) -> Record:
    return {**_text(to, message, part), "time": _times(part)}


def _provider(part: Part) -> Record | None:
    """A provider's own values with a piece: ``metadata`` in 1.x."""
    kept: Record | None = fitting(part.data.get("metadata"), is_object)
    return kept


def _times(part: Part) -> Record:
    call = call_of(part)
    return without_none({"created": call.start, "completed": call.end})


def snapshot_of(message: Message) -> Record:
    """Return the snapshots around an answer, and the files it changed.

    Version 1.x has them in parts: the first of the answer is its start.
    """
    own = message.data.get("snapshot")
    if isinstance(own, dict):
        return own

    starts = [
        *_values(message, "step-start", "snapshot"),
        *_values(message, "snapshot", "snapshot"),
        *_values(message, "patch", "hash"),
    ]
    ends = _values(message, "step-finish", "snapshot")
    lists = map(as_list, _values(message, "patch", "files"))
    files = dict.fromkeys(file for named in lists for file in named)
    snapshot = {
        "start": next(iter(starts), None),
        "end": next(reversed(ends), None),
        "files": list(files),
    }
    return filled(snapshot)


def _values(message: Message, kind: str, key: str) -> list[Any]:
    """Return the values of *key* in the parts of a *kind*, except empty ones."""
    values = (part.data.get(key) for part in message.parts if part.type == kind)
    return list(filter(None, values))


# -- calls --------------------------------------------------------------------


def _tool(to: OpenCodeWriter, message: Message, part: Part) -> Record:
    to.note_call(message, part)
    call = call_of(part)
    piece = {
        "id": call.id,
        "name": call.tool,
        "providerState": _provider(part),
        "state": _state(part, call),
        "time": _times(part),
    }
    return without_none(piece)


def _state(part: Part, call: Call) -> Record:
    source = as_object(part.data.get("state"))
    state: Record = {"status": "completed", "input": call.arguments}
    details = details_of(part)
    state.update(without_none({"metadata": details}))
    if part.status == "completed":
        return {**state, "content": _content(call, source)}

    shown = within(details, "output")
    if text(shown):
        state["content"] = [{"type": "text", "text": shown}]
    return {**state, "status": "error", "error": _error(part, call)}


def _error(part: Part, call: Call) -> Record:
    if part.status != "error":
        why = call.result or "Tool execution interrupted"
        return {"type": "tool.interrupted", "message": why}
    if part.outcome == "denied":
        return {"type": "permission.rejected", "message": call.failure}
    if part.outcome == "interrupted":
        return {"type": "tool.interrupted", "message": call.failure}
    return {"type": "tool.execution", "message": call.failure}


def _content(call: Call, source: Record) -> list[Record]:
    if within(source, "time", "compacted") is not None:
        return [{"type": "text", "text": _CLEARED}]

    given = as_list(source.get("attachments"))
    files = [_attached(item) for item in given if isinstance(item, dict)]
    return [{"type": "text", "text": call.result}, *files]


def _attached(item: Record) -> Record:
    file = {"type": "file", "uri": item.get("url"), "mime": item.get("mime")}
    return {**file, **filled({"name": item.get("filename")})}


_MAKERS: Mapping[str, Maker] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
}
