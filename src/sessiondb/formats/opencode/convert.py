"""OpenCode's records to drafts: known things become columns, the rest is ``data``.

The functions take their record apart: it must not be used afterwards. What they
fill in that a record lacks (a user's turn and completion, the agent of versions
that only had a mode, the outcome of a failed call) is never written back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sessiondb.formats.opencode import fields
from sessiondb.formats.opencode.fields import take, take_all
from sessiondb.formats.opencode.records import OddRecordError, storable, usable_id
from sessiondb.model import FileDiff, MessageDraft, PartDraft, Todo, Tokens
from sessiondb.model.draft import FINISHES, NO_INPUT, STATUSES

#: ``data`` of a session: the diff list without what became `FileDiff`, and odd todo lists.
DIFF_REST, TODO_REST = "session_diff", "todo"
#: ``data`` of a part: the file that a cut output names, as {"name", "content"}.
OUTPUT_FILE = "output_file"
#: What a call without a name is called; a tool part must have one.
NAMELESS = "unknown"

_DENIED = re.compile(
    r"(\w*Error: )?The user (rejected permission to use|has specified a rule which prevents"
    r"|dismissed this question)"
)
_ABORTED = "Tool execution aborted"


def session_fields(info: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the fields of a `SourceSession` that its record *info* holds, with ``data``."""
    _drop_id(info, "id", session_id)
    parent = take(info, ("parentID",), usable_id)
    found = take_all(info, fields.SESSION)
    if parent is not None:
        found.update(parent_source_id=parent, relation="subagent")
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
        found = _user(info, message_id)
    elif role == "assistant":
        found = _assistant(info)
    elif type(role) is str:
        found = {"role": "event", "kind": "custom", **take_all(info, fields.EVENT)}
    else:
        raise OddRecordError("has no role")
    if found.get("time_created") is None:
        found["time_created"] = time_created
    if found["role"] == "user":
        found["time_completed"] = found["time_created"]
    _refuse_unstorable(info)
    return MessageDraft(**found, id=message_id, parts=tuple(parts), data=info)


def _user(info: dict[str, Any], message_id: str) -> dict[str, Any]:
    return {"role": info.pop("role"), "turn_id": message_id, **take_all(info, fields.USER)}


def _assistant(info: dict[str, Any]) -> dict[str, Any]:
    finish = info.get("finish")
    found = {
        "role": info.pop("role"),
        "turn_id": take(info, ("parentID",), usable_id),
        "finish": take(info, ("finish",), _finish_is_known),
        "kind": "compaction" if take(info, ("summary",), lambda v: v is True) else None,
        **take_all(info, fields.ASSISTANT),
    }
    counts = take_all(info, fields.TOKENS)
    if counts:
        found["tokens"] = Tokens(**counts)
    if "agent" not in found and fields.word(info.get("mode")):
        found["agent"] = info["mode"]
    if type(finish) is str and found["finish"] is None:
        found["finish"] = "other"
    elif finish is None and (found.get("error") or {}).get("name") == "MessageAbortedError":
        found["finish"] = "cancelled"
    return found


def _finish_is_known(value: Any) -> bool:
    # "cancelled" is ours: it says that there was no finish, so the word itself stays in the record.
    return type(value) is str and value in FINISHES and value != "cancelled"


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
    kind = take(record, ("type",), usable_id)
    if kind is None:
        raise OddRecordError("has no type")
    found = _tool(record) if kind == "tool" else {}
    found.update(take_all(record, fields.PART.get(kind, ())))
    if kind == "tool":
        found["tool"] = found.get("tool") or NAMELESS
    _refuse_unstorable(record)
    return PartDraft(
        kind, **found, id=part_id, time_created=time_created, time_updated=time_updated, data=record
    )


def _tool(record: dict[str, Any]) -> dict[str, Any]:
    state = record.get("state")
    given = state["input"] if type(state) is dict and "input" in state else NO_INPUT
    if given is not NO_INPUT and take(record, ("state", "input"), lambda _: True) is None:
        given = NO_INPUT  # null stays in the record
    status = take(record, ("state", "status"), lambda v: type(v) is str and v in STATUSES)
    result = fields.RESULT.get(status)
    text = None if result is None else take(record, result, fields.text)
    outcome = _outcome(record, text) if status == "error" else None
    return {"input": given, "status": status, "text": text, "outcome": outcome}


def _outcome(record: dict[str, Any], text: str | None) -> str:
    if text is not None and _DENIED.match(text):
        return "denied"
    state = record.get("state")
    details = state.get("metadata") if type(state) is dict else None
    interrupted = type(details) is dict and details.get("interrupted") is True
    return "interrupted" if interrupted or text == _ABORTED else "failed"


def file_diffs(items: list[Any]) -> tuple[tuple[FileDiff, ...], list[Any]]:
    """Return the diffs of a ``session_diff`` list, and what is left of it for ``data``.

    What is left names the files in order; an item that is no diff of a file of
    its own stands there whole, in a list of one.
    """
    diffs: dict[str, FileDiff] = {}
    rest: list[Any] = []
    for item in items:
        path = item.get("file") if type(item) is dict else None
        if type(path) is not str or not fields.word(path) or path in diffs:
            rest.append([item])
            continue
        before, after = (take(item, (key,), fields.text) for key in ("before", "after"))
        diffs[path] = FileDiff(
            path,
            patch=take(item, ("patch",), fields.word),
            additions=take(item, ("additions",), fields.integer),
            deletions=take(item, ("deletions",), fields.integer),
            before=None if before is None else before.encode("utf-8", "surrogatepass"),
            after=None if after is None else after.encode("utf-8", "surrogatepass"),
        )
        rest.append(item)
    return tuple(diffs.values()), rest


def todos(items: list[Any]) -> tuple[tuple[Todo, ...], list[Any] | None]:
    """Return the lines of a todo list, and the list itself where they do not say all of it."""
    lines: list[Todo] = []
    for item in items:
        if type(item) is dict and fields.word(item.get("content")):
            known = {k: v for k, v in item.items() if k in _TODO and fields.word(v)}
            lines.append(Todo(**known))
    same = [{k: v for k in _TODO if (v := getattr(line, k)) is not None} for line in lines]
    return tuple(lines), None if same == items else items


_TODO = ("content", "status", "priority", "id")


def _drop_id(record: dict[str, Any], key: str, known: str) -> None:
    if record.get(key) == known:
        del record[key]


def _refuse_unstorable(rest: dict[str, Any]) -> None:
    if not storable(rest):
        raise OddRecordError("has an integer beyond 64 bits")
