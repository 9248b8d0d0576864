"""Records of OpenCode 1.x to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Some
columns are filled in although the record does not have them (a user's turn and
completion, the agent of versions that only had a mode, the outcome of a failed
call): these are never written back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    check_storable,
    clean_name,
    clean_text,
    take,
    within,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.opencode.answers import NAMELESS, outcome, take_finish
from sessiondb.formats.opencode.v1 import fields
from sessiondb.model import FileDiff, MessageDraft, PartDraft, Todo, Tokens
from sessiondb.model.draft import STATUSES

#: The keys of a line of a todo list.
_TODO = ("content", "status", "priority", "id")


def session_fields(info: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the fields of a `SourceSession` in its record *info*, with ``data``."""
    drop_id(info, "id", session_id)
    found = take(info, fields.SESSION)
    if "parent_source_id" in found:
        found["relation"] = "subagent"
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
    drop_id(info, "id", message_id)
    drop_id(info, "sessionID", session_id)
    role = info.get("role")
    if type(role) is not str:
        raise OddRecordError("has no role")

    found = take(info, fields.MESSAGE.get(role, fields.EVENT))
    found.setdefault("time_created", time_created)

    if role == "user":
        found["turn_id"] = message_id
    elif role == "assistant":
        _take_answer(info, found)

    if role in fields.MESSAGE:
        found["role"] = info.pop("role")
    else:
        found.update(role="event", kind="custom")

    check_storable(info)
    return MessageDraft(**found, id=message_id, parts=tuple(parts), data=info)


def _take_answer(info: dict[str, Any], found: dict[str, Any]) -> None:
    """Take the fields that only answers have and that no table names."""
    take_tokens(info, found)
    if info.get("summary") is True:
        del info["summary"]
        found["kind"] = "compaction"

    mode = info.get("mode")
    if "agent" not in found and clean_text(mode):
        found["agent"] = mode

    was_aborted = within(found.get("error"), "name") == "MessageAbortedError"

    if was_aborted and info.get("finish") is None:
        found["finish"] = "cancelled"
    else:
        found["finish"] = take_finish(info)


def take_tokens(record: dict[str, Any], found: dict[str, Any]) -> None:
    """Move the counts of a message out of its record, if it has any."""
    counts = take(record, fields.TOKENS)
    if counts:
        found["tokens"] = Tokens(**counts)


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

    found = take(record, fields.PART.get(kind, {}))
    if kind == "tool":
        found.setdefault("tool", NAMELESS)
        _take_state(record, found)

    check_storable(record)
    return PartDraft(
        kind,
        **found,
        id=part_id,
        time_created=time_created,
        time_updated=time_updated,
        data=record,
    )


def _take_state(record: dict[str, Any], found: dict[str, Any]) -> None:
    """Take the call and its result out of the state of a tool part."""
    state = as_object(record.get("state"))
    if not state:
        return

    if state.get("input") is not None:
        found["input"] = state.pop("input")
    if state.get("status") in STATUSES:
        status = found["status"] = state.pop("status")
        result = fields.RESULT.get(status, "")
        if type(state.get(result)) is str:
            found["text"] = state.pop(result)
        if status == "error":
            found["outcome"] = outcome(found.get("text", ""), state.get("metadata"))

    if not state:
        del record["state"]


def loaded(part: PartDraft) -> Iterator[PartDraft]:
    """Yield the files with instructions that the result of a call added, as sources.

    Their texts are in the result (``tool/read.ts``).
    """
    names = as_list(within(part.data, "state", "metadata", "loaded"))
    for name in filter(clean_name, names):
        yield PartDraft("source", title=name, input={"kind": "loaded", "path": name})


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

        found = take(item, fields.DIFF)
        for side in fields.SIDES & found.keys():
            found[side] = found[side].encode("utf-8", "surrogatepass")
        diffs[path] = FileDiff(path, **found)
        rest.append(item)

    return tuple(diffs.values()), rest


def todos(items: list[Any]) -> tuple[tuple[Todo, ...], list[Any] | None]:
    """Return the lines of a todo list, and the list if they do not say all of it."""
    records = map(_todo_fields, map(as_object, items))
    lines = tuple(Todo(**known) for known in records if "content" in known)
    is_complete = list(map(todo_record, lines)) == items
    return lines, None if is_complete else items


def _todo_fields(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in _TODO if clean_text(item.get(key))}


def todo_record(todo: Todo) -> dict[str, Any]:
    """Return a line of a todo list as OpenCode writes it."""
    return without_none({key: getattr(todo, key) for key in _TODO})


def drop_id(record: dict[str, Any], key: str, known: str) -> None:
    """Remove an id from a *record* that says only what is *known*."""
    if record.get(key) == known:
        del record[key]
