"""The parts of an answer of any kind, as OpenCode 2 has them."""

from __future__ import annotations

from typing import Any

from sessiondb.formats.kit.conversion import arguments
from sessiondb.formats.kit.fields import as_list, as_object, within, without_none
from sessiondb.formats.opencode.answers import NAMELESS
from sessiondb.formats.opencode.generation import details_of
from sessiondb.formats.opencode.writing import OpenCodeWriter, Record
from sessiondb.model import Message, Part

#: Parts of 1.x that became fields of the answer; nothing of them is lost.
_FOLDED = frozenset({"step-start", "step-finish", "snapshot", "patch"})
_CLEARED = "[Old tool result content cleared]"


def content_of(to: OpenCodeWriter, message: Message) -> list[Record]:
    """Return the content of an answer; what 2 has no piece for is lost."""
    content = []
    for part in message.parts:
        if part.type == "tool":
            content.append(_tool(to, message, part))
        elif part.type in ("text", "reasoning"):
            content.append(_text(part))
        elif part.type not in _FOLDED:
            to.lose(f"part {part.type}", message)
    return content


def _text(part: Part) -> Record:
    is_reasoning = part.type == "reasoning"
    piece = {
        "type": part.type,
        "text": part.text or "",
        "state": _provider(part),
        "time": _times(part) if is_reasoning else None,
    }
    return without_none(piece)


def _provider(part: Part) -> Record | None:
    """A provider's own values with a piece: ``metadata`` in 1.x."""
    kept = part.data.get("metadata")
    return kept if isinstance(kept, dict) else None


def _times(part: Part) -> Record:
    start = part.time_started or part.time_created
    return without_none({"created": start, "completed": part.time_ended})


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
        "start": starts[0] if starts else None,
        "end": ends[-1] if ends else None,
        "files": list(files) or None,
    }
    return without_none(snapshot)


def _values(message: Message, kind: str, key: str) -> list[Any]:
    """Return the values of *key* in the parts of a *kind*, but the empty ones."""
    values = (part.data.get(key) for part in message.parts if part.type == kind)
    return list(filter(None, values))


# -- calls --------------------------------------------------------------------


def _tool(to: OpenCodeWriter, message: Message, part: Part) -> Record:
    to.note_call(message, part)
    if part.status not in ("completed", "error"):
        why = f"that call {part.call_id} is open: it is written as interrupted"
        to.lose(why, message)

    piece = {
        "type": "tool",
        "id": part.call_id or f"call_{part.id}",
        "name": part.tool or NAMELESS,
        "providerState": _provider(part),
        "state": _state(part),
        "time": _times(part),
    }
    return without_none(piece)


def _state(part: Part) -> Record:
    # A call of 1.x has its metadata in its state; other agents keep theirs in the data.
    source = as_object(part.data.get("state"))
    details = source.get("metadata")
    if not isinstance(details, dict):
        details = None if part.data.get("state") else details_of(part) or None

    state: Record = {"status": "completed", "input": arguments(part)}
    if details is not None:
        state["metadata"] = details
    if part.status == "completed":
        return {**state, "content": _content(part, source)}

    shown = within(details, "output")
    if isinstance(shown, str):
        state["content"] = [{"type": "text", "text": shown}]
    return {**state, "status": "error", "error": _error(part)}


def _error(part: Part) -> Record:
    if part.status != "error":
        why = part.text or "Tool execution interrupted"
        return {"type": "tool.interrupted", "message": why}
    is_denied = part.outcome == "denied"
    kind = "permission.rejected" if is_denied else "tool.execution"
    return {"type": kind, "message": part.text or part.outcome or "failed"}


def _content(part: Part, source: Record) -> list[Record]:
    if within(source, "time", "compacted") is not None:
        return [{"type": "text", "text": _CLEARED}]

    given = as_list(source.get("attachments"))
    files = [_attached(item) for item in given if isinstance(item, dict)]
    return [{"type": "text", "text": part.text or ""}, *files]


def _attached(item: Record) -> Record:
    file = {"type": "file", "uri": item.get("url"), "mime": item.get("mime")}
    name = item.get("filename")
    return {**file, "name": name} if name else file
