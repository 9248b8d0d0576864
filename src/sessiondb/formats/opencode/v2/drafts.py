"""Records of OpenCode 2 to drafts: known fields become columns, the rest is ``data``.

As in `v1.drafts` a record is taken apart, and what is filled in is never written back.
Parts have no ids of their own in version 2: they get the id of their message and
their place in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    check_storable,
    clean_name,
    clean_text,
    is_object,
    take_fields,
    text,
    time,
    value_at,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.opencode.answers import NAMELESS, outcome_of, take_finish
from sessiondb.formats.opencode.keys import GENERATION, NO_RAN, PIECES, RECENT
from sessiondb.formats.opencode.v1.drafts import drop_id, take_tokens
from sessiondb.formats.opencode.v2 import fields
from sessiondb.model import MessageDraft, PartDraft

#: An id has at most 256 bytes here; this leaves room for the rest of a part's id.
_LONGEST_NAME = 240

Record = dict[str, Any]
#: Values by the columns of a session, a message or a part.
Columns = dict[str, Any]


def session_fields(info: Record, session_id: str) -> Columns:
    """Return the fields of a `SourceSession` in its record *info*, with ``data``."""
    drop_id(info, "id", session_id)
    columns = take_fields(info, fields.SESSION)
    if "parent_source_id" in columns:
        columns["relation"] = "subagent"
    return {**columns, "data": {**info, GENERATION: 2}}


def message_draft(
    kind: str,
    record: Record,
    message_id: str,
    *,
    time_created: int | None = None,
) -> MessageDraft:
    """Return the draft of one message of type *kind*; *time_created* is its row's.

    Raises `OddRecordError` for a record that cannot be stored.
    """
    columns: Columns = {"id": message_id, "role": kind}
    if kind not in fields.SPEECH:
        columns.update(role="event", kind=fields.KIND.get(kind, kind))
        record["type"] = kind

    columns.update(take_fields(record, fields.MESSAGE.get(kind, fields.OTHER)))
    columns.setdefault("time_created", time_created)
    parts = _take_parts(kind, record, columns)
    # Only answers, and what still runs, end later than they begin.
    if kind != "assistant" and record.get("status") != "running":
        columns.setdefault("time_completed", columns["time_created"])

    check_storable(record)
    drafts = []
    for index, part in enumerate(parts):
        check_storable(part["data"])
        drafts.append(PartDraft(id=part_id(message_id, index), **part))
    return MessageDraft(**columns, parts=tuple(drafts), data=record)


def part_id(message_id: str, index: int) -> str:
    """Return an id for the part at *index*, as unique as the message's id."""
    name = message_id.removeprefix("msg_")
    if len(name.encode()) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"prt_{name}_{index:04d}"


# -- messages by the type of their record ----------------------------------------


def _take_parts(kind: str, record: Record, columns: Columns) -> list[Columns]:
    """Take the parts out of a record, and add the *columns* that no table names."""
    match kind:
        case "user":
            columns["turn_id"] = columns["id"]
            return _take_text(record, "text") + _take_lists(record)
        case "assistant":
            return _take_answer(record, columns)
        case "system" | "synthetic":
            return _take_text(record, "text")
        case "skill":
            return [*_take_text(record, "text"), _skill_source(record)]
        case "shell":
            return [_take_command(record, columns)]
        case "compaction":
            return _take_summary(record, columns)
        case "idle":
            columns["kind"] = fields.ENDS.get(str(record.get("outcome")), "idle")
            return []
        case _:
            return []


def _take_text(record: Record, key: str, **data: Any) -> list[Columns]:
    if not text(record.get(key)):
        return []
    return [{"type": "text", "text": record.pop(key), "data": data}]


def _take_lists(record: Record) -> list[Columns]:
    """Take the files and agents of a prompt."""
    parts = []
    for kind, key in fields.LISTS.items():
        items = as_list(record.get(key))
        # A list with anything odd in it stays in the record, complete.
        if items and all(is_object(item) for item in items):
            del record[key]
            parts += [{"type": kind, "data": _with_bytes(item)} for item in items]
    return parts


def _with_bytes(item: Record) -> Record:
    """Name the content of a file as parts of all sources do, in bytes."""
    content = _decode_base64(item.get("data"))
    if content is None or "content" in item:
        return item

    del item["data"]
    item["content"] = content
    if clean_text(item.get("name")) and "filename" not in item:
        item["filename"] = item.pop("name")
    return item


def _decode_base64(encoded: Any) -> bytes | None:
    """Decode base64; None if encoding it again would give something else."""
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None
    return content if base64.b64encode(content).decode() == encoded else None


def _skill_source(record: Record) -> Columns:
    """Return the skill whose text a message has."""
    names = [record.get("name"), record.get("skill")]
    titles = [name for name in names if clean_name(name)]
    title = titles[0] if titles else None
    return {"type": "source", "title": title, "input": {"kind": "skill"}, "data": {}}


def _take_command(record: Record, columns: Columns) -> Columns:
    """Take a command of the user: a call that no model made."""
    part = take_fields(record, fields.SHELL)
    part.update(type="tool", tool="shell", data={})
    if text(record.get("command")):
        part["input"] = {"command": record.pop("command")}

    end = fields.SHELL_ENDS.get(str(record.get("status")), {"status": "completed"})
    part.update(end)
    part["time_started"] = columns["time_created"]
    ended = value_at(record, "time", "completed")
    if time(ended):
        columns["time_completed"] = part["time_ended"] = ended
    return part


def _take_summary(record: Record, columns: Columns) -> list[Columns]:
    take_tokens(record, columns)
    status = record.get("status")
    if status != "completed":
        columns["kind"] = fields.NO_SUMMARY.get(str(status), "custom")
        return []

    parts = _take_text(record, "summary")
    if record.get("recent"):
        parts += _take_text(record, "recent", **{RECENT: True})
    return parts


# -- answers and their calls ---------------------------------------------------------


def _take_answer(record: Record, columns: Columns) -> list[Columns]:
    take_tokens(record, columns)
    if value_at(columns.get("error"), "type") == "aborted":
        columns["finish"] = "cancelled"
    else:
        columns["finish"] = take_finish(record)

    # A list with anything odd in it stays in the record, complete.
    content = record.get("content")
    if type(content) is not list:
        return []
    if not all(usable_id(value_at(item, "type")) for item in content):
        return []
    del record["content"]
    return [_piece_columns(item) for item in content]


def _piece_columns(item: Record) -> Columns:
    """Return a piece of the content of an answer as a part."""
    kind = item.pop("type")
    columns = take_fields(item, fields.PART.get(kind, {}))
    if kind == "tool":
        columns.setdefault("tool", NAMELESS)
        has_start = "time_started" in columns
        if not has_start and "time_created" in columns and "time_ended" in columns:
            # A call that ended and has no time of its start ran at once.
            columns["time_started"] = columns["time_created"]
            item[NO_RAN] = True
        _take_state(item, columns)

    return {**columns, "type": kind, "data": item}


def _take_state(item: Record, columns: Columns) -> None:
    """Take the call and its result out of the state of a tool part."""
    state = as_object(item.get("state"))
    if not state:
        return

    if state.get("input") is not None:
        columns["input"] = state.pop("input")
    status = state.get("status")
    if text(status) and status in fields.STATUS:
        del state["status"]
        columns["status"] = fields.STATUS[status]
    if status == "completed":
        _take_result(state, columns)
    elif status == "error":
        _take_error(state, columns)

    if not state:
        del item["state"]


def _take_error(state: Record, columns: Columns) -> None:
    error = as_object(state.get("error"))
    message = error.get("message")
    if text(message):
        columns["text"] = error.pop("message")
    ending = fields.OUTCOME.get(str(error.get("type")))
    columns["outcome"] = ending or outcome_of(
        columns.get("text", ""), state.get("metadata")
    )


def _take_result(state: Record, columns: Columns) -> None:
    """Join the texts of a result; if there are other pieces, their order is kept."""
    texts: list[str] = []
    pieces: list[Any] = []
    for item in as_list(state.get("content")):
        piece_text = value_at(item, "text")
        if text(piece_text) and item == {"type": "text", "text": piece_text}:
            texts.append(piece_text)
            pieces.append(len(piece_text))
        else:
            pieces.append(item)
    if not texts:
        return

    columns["text"] = "\n".join(texts)
    del state["content"]
    # One text is all of its result; only of several the lengths are needed.
    if len(pieces) > 1:
        state[PIECES] = pieces
