"""Records of OpenCode 2 to drafts: known things become columns, the rest is ``data``.

As in `v1.drafts` a record is taken apart, and what is filled in is never written
back. Parts have no ids of their own here: they get the id of their message and
their place in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import Any

from sessiondb.formats.kit.fields import check_storable, clean_text, take, text, time
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.opencode.calls import NAMELESS, outcome
from sessiondb.formats.opencode.keys import GENERATION, NO_RAN, PIECES, RECENT
from sessiondb.formats.opencode.v2 import fields
from sessiondb.model import MessageDraft, PartDraft, Tokens
from sessiondb.model.draft import FINISHES

Found = dict[str, Any]


def session_fields(info: dict[str, Any], session_id: str) -> Found:
    """Return the fields of a `SourceSession` that its record *info* holds, with ``data``."""
    if info.get("id") == session_id:
        del info["id"]
    found = take(info, fields.SESSION)
    if usable_id(info.get("parentID")):
        found.update(parent_source_id=info.pop("parentID"), relation="subagent")
    return {**found, "data": {**info, GENERATION: 2}}


def message_draft(
    kind: str,
    record: dict[str, Any],
    message_id: str,
    *,
    time_created: int | None = None,
) -> MessageDraft:
    """Return the draft of one message of type *kind*; *time_created* is its row's.

    Raises `OddRecordError` for a record that cannot be stored.
    """
    found: Found = {"role": "event", "kind": kind}
    found.update(take(record, fields.MESSAGE.get(kind, fields.OTHER)))
    found.setdefault("time_created", time_created)
    if kind in fields.COUNTED and (counts := take(record, fields.USAGE)):
        found["tokens"] = Tokens(**counts)
    make = _MAKERS.get(kind)
    parts = make(record, found) if make else []
    if found["role"] == "event":
        record["type"] = kind
    if kind == "user":
        found["turn_id"] = message_id
    if kind != "assistant" and record.get("status") != "running":
        found.setdefault("time_completed", found["time_created"])
    check_storable(record)
    for index, part in enumerate(parts):
        check_storable(part["data"])
        part["id"] = part_id(message_id, index)
    return MessageDraft(
        **found,
        id=message_id,
        parts=tuple(PartDraft(**part) for part in parts),
        data=record,
    )


def part_id(message_id: str, index: int) -> str:
    """Return an id for the part at *index*, unique where the message's is, and in its order."""
    name = message_id.removeprefix("msg_")
    if len(name.encode()) > 240:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"prt_{name}_{index:04d}"


def _user(record: dict[str, Any], found: Found) -> list[Found]:
    found.update(role="user", kind=None)
    parts = _text(record)
    for key, kind in (("files", "file"), ("agents", "agent")):
        items = record.get(key)
        if type(items) is list and items and all(type(item) is dict for item in items):
            parts += [
                {"type": kind, "data": _attached(item)} for item in record.pop(key)
            ]
    return parts


def _attached(item: dict[str, Any]) -> dict[str, Any]:
    """Name a file as parts of all sources do, its content in bytes."""
    content = _plain(item.get("data"))
    if content is not None and "content" not in item:
        del item["data"]
        item["content"] = content
        if clean_text(item.get("name")) and "filename" not in item:
            item["filename"] = item.pop("name")
    return item


def _plain(encoded: Any) -> bytes | None:
    """Decode base64; None where encoding it again would give something else."""
    if type(encoded) is not str:
        return None
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode() == encoded else None


def _system(record: dict[str, Any], found: Found) -> list[Found]:
    found.update(role="system", kind=None)
    return _text(record)


def _said_for_the_user(record: dict[str, Any], found: Found) -> list[Found]:
    found["kind"] = "custom_message"
    return _text(record)


def _text(record: dict[str, Any], key: str = "text", **data: Any) -> list[Found]:
    if not text(record.get(key)):
        return []
    return [{"type": "text", "text": record.pop(key), "data": data}]


def _assistant(record: dict[str, Any], found: Found) -> list[Found]:
    found.update(role="assistant", kind=None)
    finish, error = record.get("finish"), found.get("error")
    if type(error) is dict and error.get("type") == "aborted":
        found["finish"] = "cancelled"
    elif type(finish) is str and finish != "cancelled" and finish in FINISHES:
        found["finish"] = record.pop("finish")
    elif type(finish) is str:
        found["finish"] = "other"
    content = record.get("content")
    if type(content) is not list or not all(_is_piece(item) for item in content):
        return []
    return [_piece(item) for item in record.pop("content")]


def _is_piece(item: Any) -> bool:
    return type(item) is dict and usable_id(item.get("type"))


def _piece(item: dict[str, Any]) -> Found:
    kind = item.pop("type")
    found: Found = {
        "type": kind,
        **take(item, fields.PART.get(kind, {})),
        "data": item,
    }
    if kind == "tool":
        found.setdefault("tool", NAMELESS)
        if (
            "time_ended" in found
            and "time_started" not in found
            and "time_created" in found
        ):
            found["time_started"] = found["time_created"]
            item[NO_RAN] = True
        state = item.get("state")
        if type(state) is dict and state:
            _call(state, found)
            if not state:
                del item["state"]
    return found


def _call(state: dict[str, Any], found: Found) -> None:
    """Take the call and its result out of the state of a tool part."""
    if state.get("input") is not None:
        found["input"] = state.pop("input")
    status = state.get("status")
    if type(status) is not str or status not in fields.STATUS:
        return
    found["status"] = fields.STATUS[state.pop("status")]
    if status == "completed":
        _result(state, found)
    elif status == "error":
        error = state.get("error")
        kind = error.get("type") if type(error) is dict else None
        if type(error) is dict and text(error.get("message")):
            found["text"] = error.pop("message")
        known = fields.OUTCOME.get(kind) if type(kind) is str else None
        found["outcome"] = known or outcome(
            found.get("text", ""), state.get("metadata")
        )


def _result(state: dict[str, Any], found: Found) -> None:
    """Join the texts of a result; one text needs no more, else their lengths are kept."""
    content = state.get("content")
    if type(content) is not list or not content:
        return
    texts = [item["text"] for item in content if _is_text(item)]
    if texts:
        found["text"] = "\n".join(texts)
        pieces = [len(item["text"]) if _is_text(item) else item for item in content]
        del state["content"]
        if len(pieces) > 1:
            state[PIECES] = pieces


def _is_text(item: Any) -> bool:
    return (
        type(item) is dict
        and item.keys() == {"type", "text"}
        and item["type"] == "text"
        and text(item["text"])
    )


def _shell(record: dict[str, Any], found: Found) -> list[Found]:
    """A command of the user is a call that no model made."""
    part: Found = {"type": "tool", "tool": "shell", "data": {}}
    if clean_text(record.get("shellID")):
        part["call_id"] = record.pop("shellID")
    if text(record.get("command")):
        part["input"] = {"command": record.pop("command")}
    output = record.get("output")
    if type(output) is dict and text(output.get("output")):
        part["text"] = output.pop("output")
    status = record.get("status")
    if status in ("timeout", "killed"):
        part.update(status="error", outcome="interrupted")
    else:
        part["status"] = "running" if status == "running" else "completed"
    times = record.get("time")
    ended = times.get("completed") if type(times) is dict else None
    part["time_started"] = found["time_created"]
    if time(ended):
        found["time_completed"] = part["time_ended"] = ended
    return [part]


def _compaction(record: dict[str, Any], found: Found) -> list[Found]:
    if record.get("status") != "completed":
        found["kind"] = (
            "compaction_failed" if record.get("status") == "failed" else "custom"
        )
        return []
    recent = _text(record, "recent", **{RECENT: True}) if record.get("recent") else []
    return _text(record, "summary") + recent


def _agent(record: dict[str, Any], found: Found) -> list[Found]:  # noqa: ARG001 - as the others
    found["kind"] = "mode_change"
    return []


def _model(record: dict[str, Any], found: Found) -> list[Found]:  # noqa: ARG001 - as the others
    found["kind"] = "model_change"
    return []


def _idle(record: dict[str, Any], found: Found) -> list[Found]:
    ends = {"failed": "failed", "interrupted": "cancelled"}
    found["kind"] = ends.get(str(record.get("outcome")), "idle")
    return []


_MAKERS: dict[str, Callable[[dict[str, Any], Found], list[Found]]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "synthetic": _said_for_the_user,
    "skill": _said_for_the_user,
    "shell": _shell,
    "compaction": _compaction,
    "agent-switched": _agent,
    "model-switched": _model,
    "idle": _idle,
}
#: The types of records that are events here.
TYPES = frozenset(_MAKERS) - {"user", "assistant", "system"} | {"location-switched"}
