"""Records of OpenCode 1.x to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Some
columns are filled in although the record does not have them (a user's turn and
completion, the agent of versions that only had a mode, the outcome of a failed
call): these are never written back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    check_storable,
    clean_name,
    clean_text,
    take_fields,
    value_at,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.opencode.answers import NAMELESS, outcome_of, take_finish
from sessiondb.formats.opencode.v1 import fields
from sessiondb.model import FileDiff, MessageDraft, PartDraft, Todo, Tokens
from sessiondb.model.draft import STATUSES

#: The keys of a line of a todo list.
_TODO = ("content", "status", "priority", "id")


def session_fields(info: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the fields of a `SourceSession` in its record *info*, with ``data``."""
    drop_id(info, "id", session_id)
    columns = take_fields(info, fields.SESSION)
    if "parent_source_id" in columns:
        columns["relation"] = "subagent"
    return {**columns, "data": info}


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
    drop_id(info, "id", message_id)
    drop_id(info, "sessionID", session_id)
    role = info.get("role")
    if type(role) is not str:
        raise OddRecordError("has no role")

    columns = take_fields(info, fields.MESSAGE.get(role, fields.EVENT))
    columns.setdefault("time_created", time_created)

    if role == "user":
        columns["turn_id"] = message_id
    elif role == "assistant":
        _take_answer(info, columns)

    if role in fields.MESSAGE:
        columns["role"] = info.pop("role")
    else:
        columns.update(role="event", kind="custom")

    check_storable(info)
    return MessageDraft(**columns, id=message_id, parts=tuple(parts), data=info)


def _take_answer(info: dict[str, Any], columns: dict[str, Any]) -> None:
    """Take the fields that only answers have and that no table names."""
    take_tokens(info, columns)
    if info.get("summary") is True:
        del info["summary"]
        columns["kind"] = "compaction"

    mode = info.get("mode")
    if "agent" not in columns and clean_text(mode):
        columns["agent"] = mode

    was_aborted = value_at(columns.get("error"), "name") == "MessageAbortedError"
    if was_aborted and info.get("finish") is None:
        columns["finish"] = "cancelled"
    else:
        columns["finish"] = take_finish(info)


def take_tokens(record: dict[str, Any], columns: dict[str, Any]) -> None:
    """Move the counts of a message out of its record, if it has any."""
    counts = take_fields(record, fields.TOKENS)
    if counts:
        columns["tokens"] = Tokens(**counts)


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
    drop_id(record, "id", part_id)
    drop_id(record, "messageID", message_id)
    drop_id(record, "sessionID", session_id)
    kind = record.pop("type", None)
    if not usable_id(kind):
        raise OddRecordError("has no type")

    columns = take_fields(record, fields.PART.get(kind, {}))
    if kind == "tool":
        columns.setdefault("tool", NAMELESS)
        _take_state(record, columns)

    # A text that only its user is shown was not typed either; its flag stays.
    is_synthetic = record.get("synthetic") is True or record.get("ignored") is True
    if is_synthetic and record.get("ignored") is not True:
        del record["synthetic"]

    check_storable(record)
    return PartDraft(
        kind,
        **columns,
        synthetic=is_synthetic,
        id=part_id,
        time_created=time_created,
        time_updated=time_updated,
        data=record,
    )


def _take_state(record: dict[str, Any], columns: dict[str, Any]) -> None:
    """Take the call and its result out of the state of a tool part."""
    state = as_object(record.get("state"))
    if not state:
        return

    if state.get("input") is not None:
        columns["input"] = state.pop("input")
    if state.get("status") in STATUSES:
        status = columns["status"] = state.pop("status")
        result = fields.RESULT.get(status, "")
        if type(state.get(result)) is str:
            columns["text"] = state.pop(result)
        if status == "error":
            error = columns.get("text", "")
            columns["outcome"] = outcome_of(error, state.get("metadata"))

    if not state:
        del record["state"]


def instruction_sources(part: PartDraft) -> list[PartDraft]:
    """Return the files with instructions that the result of a call added, as sources.

    Their texts are in the result (``tool/read.ts``).
    """
    paths = as_list(value_at(part.data, "state", "metadata", "loaded"))
    return [
        PartDraft("source", title=path, input={"kind": "loaded", "path": path})
        for path in paths
        if clean_name(path)
    ]


def file_diffs(items: list[Any]) -> tuple[tuple[FileDiff, ...], list[Any]]:
    """Return the diffs of a ``session_diff`` list, and what is left of it for ``data``.

    The rest names the files in order. An item that is not the first diff of a file is
    kept verbatim, in a list of one.
    """
    diffs: dict[str, FileDiff] = {}
    rest: list[Any] = []

    for item in items:
        path = as_object(item).get("file")
        if not clean_name(path) or path in diffs:
            rest.append([item])
            continue

        columns = take_fields(item, fields.DIFF)
        for side in fields.SIDES & columns.keys():
            columns[side] = columns[side].encode("utf-8", "surrogatepass")
        diffs[path] = FileDiff(path, **columns)
        rest.append(item)

    return tuple(diffs.values()), rest


def todo_lines(items: list[Any]) -> tuple[tuple[Todo, ...], list[Any] | None]:
    """Return the lines of a todo list, and the list if they do not hold all of it."""
    lines = []
    is_complete = True
    for item in items:
        record = as_object(item)
        columns = {key: record[key] for key in _TODO if clean_text(record.get(key))}
        if "content" in columns:
            lines.append(Todo(**columns))
        # A line without a status is pending here.
        if columns != item or "content" not in columns or "status" not in columns:
            is_complete = False
    return tuple(lines), None if is_complete else items


def drop_id(record: dict[str, Any], key: str, value: str) -> None:
    """Remove an id from a *record* if it is the *value* that its place states."""
    if record.get(key) == value:
        del record[key]
