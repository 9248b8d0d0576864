"""OpenCode's records to drafts: known things become columns, the rest is ``data``.

The functions take their record apart: it must not be used afterwards. What they
fill in that a record lacks (a user's turn and completion, the agent of versions
that only had a mode, the outcome of a failed call) is never written back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    check_storable,
    clean_name,
    clean_text,
    integer,
    take,
    text,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.opencode.calls import NAMELESS, outcome
from sessiondb.formats.opencode.v1 import fields
from sessiondb.model import FileDiff, MessageDraft, PartDraft, Todo, Tokens
from sessiondb.model.draft import FINISHES, STATUSES

DIFF: Fields = {
    "patch": ("patch", clean_text),
    "additions": ("additions", integer),
    "deletions": ("deletions", integer),
    "before": ("before", text),
    "after": ("after", text),
}
_TODO = ("content", "status", "priority", "id")


def session_fields(info: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the fields of a `SourceSession` that its record *info* holds, with ``data``."""
    _drop_id(info, "id", session_id)
    found = take(info, fields.SESSION)
    if usable_id(info.get("parentID")):
        found.update(parent_source_id=info.pop("parentID"), relation="subagent")
    return {**found, "data": info}


def message_draft(
    info: dict[str, Any],
    message_id: str,
    session_id: str,
    parts: Sequence[PartDraft] = (),
    *,
    time_created: int | None = None,
) -> MessageDraft:
    """Return the draft of one message; *time_created* is its row's.

    Raises `OddRecordError` for a record without a role, or one that cannot be stored.
    """
    _drop_id(info, "id", message_id)
    _drop_id(info, "sessionID", session_id)
    role = info.get("role")
    if role == "user":
        found = {
            "role": info.pop("role"),
            "turn_id": message_id,
            **take(info, fields.USER),
        }
    elif role == "assistant":
        found = _assistant(info)
    elif type(role) is str:
        found = {"role": "event", "kind": "custom", **take(info, fields.EVENT)}
    else:
        raise OddRecordError("has no role")
    found.setdefault("time_created", time_created)
    if role == "user":
        found["time_completed"] = found["time_created"]
    check_storable(info)
    return MessageDraft(**found, id=message_id, parts=tuple(parts), data=info)


def _assistant(info: dict[str, Any]) -> dict[str, Any]:
    found = {"role": info.pop("role"), **take(info, fields.ASSISTANT)}
    counts = take(info, fields.TOKENS)
    if counts:
        found["tokens"] = Tokens(**counts)
    if usable_id(info.get("parentID")):
        found["turn_id"] = info.pop("parentID")
    if info.get("summary") is True:
        del info["summary"]
        found["kind"] = "compaction"
    if "agent" not in found and clean_text(info.get("mode")):
        found["agent"] = info["mode"]
    finish = info.get("finish")
    # "cancelled" is ours: it says that there was no finish, so the word itself stays in the record.
    if type(finish) is str and finish != "cancelled" and finish in FINISHES:
        found["finish"] = info.pop("finish")
    elif type(finish) is str:
        found["finish"] = "other"
    elif finish is None and _is_abort(found.get("error")):
        found["finish"] = "cancelled"
    return found


def _is_abort(error: Any) -> bool:
    return type(error) is dict and error.get("name") == "MessageAbortedError"


def part_draft(
    record: dict[str, Any],
    part_id: str,
    message_id: str,
    session_id: str,
    *,
    time_created: int | None = None,
    time_updated: int | None = None,
) -> PartDraft:
    """Return the draft of one part; the times are its row's.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    _drop_id(record, "id", part_id)
    _drop_id(record, "messageID", message_id)
    _drop_id(record, "sessionID", session_id)
    kind = record.pop("type", None)
    if not usable_id(kind):
        raise OddRecordError("has no type")
    found = take(record, fields.PART.get(kind, {}))
    if kind == "tool":
        found.setdefault("tool", NAMELESS)
        state = record.get("state")
        if type(state) is dict and state:
            found.update(_state(state))
            if not state:
                del record["state"]
    check_storable(record)
    return PartDraft(
        kind,
        **found,
        id=part_id,
        time_created=time_created,
        time_updated=time_updated,
        data=record,
    )


def _state(state: dict[str, Any]) -> dict[str, Any]:
    """Take the call and its result out of the state of a tool part."""
    found: dict[str, Any] = {}
    if state.get("input") is not None:
        found["input"] = state.pop("input")
    status = state.get("status")
    if type(status) is not str or status not in STATUSES:
        return found
    found["status"] = state.pop("status")
    result = fields.RESULT.get(status)
    if result is not None and type(state.get(result)) is str:
        found["text"] = state.pop(result)
    if status == "error":
        found["outcome"] = outcome(found.get("text", ""), state.get("metadata"))
    return found


def file_diffs(items: list[Any]) -> tuple[tuple[FileDiff, ...], list[Any]]:
    """Return the diffs of a ``session_diff`` list, and what is left of it for ``data``.

    What is left names the files in order; an item that is no diff of a file of
    its own stands there whole, in a list of one.
    """
    diffs: dict[str, FileDiff] = {}
    rest: list[Any] = []
    for item in items:
        path = item.get("file") if type(item) is dict else None
        if type(path) is not str or not clean_name(path) or path in diffs:
            rest.append([item])
            continue
        found = take(item, DIFF)
        for side in ("before", "after"):
            if side in found:
                found[side] = found[side].encode("utf-8", "surrogatepass")
        diffs[path] = FileDiff(path, **found)
        rest.append(item)
    return tuple(diffs.values()), rest


def todos(items: list[Any]) -> tuple[tuple[Todo, ...], list[Any] | None]:
    """Return the lines of a todo list, and the list itself where they do not say all of it."""
    lines: list[Todo] = []
    for item in items:
        if type(item) is dict and clean_text(item.get("content")):
            known = {k: v for k, v in item.items() if k in _TODO and clean_text(v)}
            lines.append(Todo(**known))
    same = [
        {k: v for k in _TODO if (v := getattr(line, k)) is not None} for line in lines
    ]
    return tuple(lines), None if same == items else items


def _drop_id(record: dict[str, Any], key: str, known: str) -> None:
    if record.get(key) == known:
        del record[key]
