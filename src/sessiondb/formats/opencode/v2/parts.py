"""The parts of an answer of any kind, as OpenCode 2 has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.neutral import WHOLE_OUTPUT, arguments, details_of
from sessiondb.model import Message, Part

if TYPE_CHECKING:
    from sessiondb.formats.opencode.v2.writer import WriterV2

Record = dict[str, Any]
#: Parts of 1.x that became fields of the answer; nothing of them is lost.
_FOLDED = frozenset({"step-start", "step-finish", "snapshot", "patch"})
_CLEARED = "[Old tool result content cleared]"


def content_of(to: WriterV2, message: Message) -> list[Record]:
    """Return the content of an answer; what 2 has no piece for is lost."""
    content = []
    for part in message.parts:
        if part.type == "text":
            content.append(
                {"type": "text", "text": part.text or "", **_provider(part, "state")}
            )
        elif part.type == "reasoning":
            content.append(
                {
                    "type": "reasoning",
                    "text": part.text or "",
                    **_provider(part, "state"),
                    "time": _times(part, "completed"),
                }
            )
        elif part.type == "tool":
            content.append(_tool(to, message, part))
        elif part.type not in _FOLDED:
            to.lose(f"part {part.type}", message)
    return content


def snapshot_of(message: Message) -> Record:
    """Return the snapshots around an answer, and the files it changed."""
    own = message.data.get("snapshot")
    if isinstance(own, dict):
        return own
    found: dict[str, list[Any]] = {kind: [] for kind in _FOLDED}
    files: list[Any] = []
    for part in message.parts:
        if part.type in found:
            key = "hash" if part.type == "patch" else "snapshot"
            found[part.type] += [part.data[key]] if part.data.get(key) else []
            named = part.data.get("files")
            files += named if part.type == "patch" and isinstance(named, list) else ()
    starts = [*found["step-start"][:1], *found["snapshot"][:1], *found["patch"][:1]]
    snapshot: Record = {"start": starts[0]} if starts else {}
    if found["step-finish"]:
        snapshot["end"] = found["step-finish"][-1]
    if files:
        snapshot["files"] = list(dict.fromkeys(files))
    return snapshot


def _provider(part: Part, key: str) -> Record:
    """A provider's own values with a piece: ``metadata`` in 1.x."""
    kept = part.data.get("metadata")
    return {key: kept} if isinstance(kept, dict) else {}


def _times(part: Part, end: str) -> Record:
    start = part.time_started or part.time_created
    return {
        "created": start,
        **({} if part.time_ended is None else {end: part.time_ended}),
    }


def _tool(to: WriterV2, message: Message, part: Part) -> Record:
    to.called(part.call_id, part.text)
    if OUTPUT_FILE in part.data:
        to.lose(WHOLE_OUTPUT, message)
    state = part.data.get("state")
    return {
        "type": "tool",
        "id": part.call_id or f"call_{part.id}",
        "name": part.tool or "unknown",
        **_provider(part, "providerState"),
        "state": _state(to, message, part, state if isinstance(state, dict) else {}),
        "time": _times(part, "completed"),
    }


def _state(to: WriterV2, message: Message, part: Part, source: Record) -> Record:
    if part.input is not None and not isinstance(part.input, dict):
        to.lose(f"that the input of call {part.call_id} is not an object", message)
    details = source.get("metadata")
    if not isinstance(details, dict):
        details = None if part.data.get("state") else details_of(part) or None
    found: Record = {"input": arguments(part)} | (
        {} if details is None else {"metadata": details}
    )
    if part.status == "completed":
        return {"status": "completed", **found, "content": _content(part, source)}
    error = {"type": "tool.execution", "message": part.text or part.outcome or "failed"}
    if part.status != "error":
        to.lose(
            f"that call {part.call_id} is open: it is written as interrupted", message
        )
        error = {
            "type": "tool.interrupted",
            "message": part.text or "Tool execution interrupted",
        }
    elif part.outcome == "denied":
        error["type"] = "permission.rejected"
    if isinstance(found.get("metadata", {}).get("output"), str):
        found["content"] = [{"type": "text", "text": found["metadata"]["output"]}]
    return {"status": "error", **found, "error": error}


def _content(part: Part, source: Record) -> list[Record]:
    time = source.get("time")
    if isinstance(time, dict) and time.get("compacted") is not None:
        return [{"type": "text", "text": _CLEARED}]
    files = source.get("attachments")
    attached = [
        {
            "type": "file",
            "uri": item.get("url"),
            "mime": item.get("mime"),
            **({"name": item["filename"]} if item.get("filename") else {}),
        }
        for item in (files if isinstance(files, list) else ())
        if isinstance(item, dict)
    ]
    return [{"type": "text", "text": part.text or ""}, *attached]
