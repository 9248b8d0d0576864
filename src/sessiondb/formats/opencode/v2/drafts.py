"""Records of OpenCode 2 to drafts: known fields become columns, the rest is ``data``.

As in `v1.drafts` a record is taken apart, and what is filled in is never written back.
Parts have no ids of their own in version 2: they get the id of their message and
their place in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    check_storable,
    clean_name,
    clean_text,
    fitting,
    is_object,
    take,
    text,
    time,
    within,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.opencode.answers import NAMELESS, outcome, take_finish
from sessiondb.formats.opencode.keys import GENERATION, NO_RAN, PIECES, RECENT
from sessiondb.formats.opencode.v1.drafts import drop_id, take_tokens
from sessiondb.formats.opencode.v2 import fields
from sessiondb.model import MessageDraft, PartDraft

#: An id has at most 256 bytes here; this leaves room for the rest of a part's id.
_LONGEST_NAME = 240

Found = dict[str, Any]


def session_fields(info: dict[str, Any], session_id: str) -> Found:
    """Return the fields of a `SourceSession` in its record *info*, with ``data``."""
    drop_id(info, "id", session_id)
    found = take(info, fields.SESSION)
    if "parent_source_id" in found:
        found["relation"] = "subagent"
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
    found: Found = {"id": message_id, "role": kind}
    if kind not in fields.SPEECH:
        found.update(role="event", kind=fields.KIND.get(kind, kind))
        record["type"] = kind

    found.update(take(record, fields.MESSAGE.get(kind, fields.OTHER)))
    found.setdefault("time_created", time_created)
    parts = _MAKERS.get(kind, _nothing)(record, found)
    # Only answers, and what still runs, end later than they begin.
    if kind != "assistant" and record.get("status") != "running":
        found.setdefault("time_completed", found["time_created"])

    check_storable(record)
    for index, part in enumerate(parts):
        check_storable(part["data"])
        part["id"] = part_id(message_id, index)

    drafts = tuple(PartDraft(**part) for part in parts)
    return MessageDraft(**found, parts=drafts, data=record)


def part_id(message_id: str, index: int) -> str:
    """Return an id for the part at *index*, as unique as the message's id."""
    name = message_id.removeprefix("msg_")
    if len(name.encode()) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"prt_{name}_{index:04d}"


# -- messages by the type of their record ----------------------------------------
#
# Each function adds columns to *found* and returns the fields of the parts.


def _user(record: dict[str, Any], found: Found) -> list[Found]:
    found["turn_id"] = found["id"]
    parts = _said(record, found)

    for kind, key in fields.LISTS.items():
        items = as_list(record.get(key))
        # A list with anything odd in it stays in the record, complete.
        if items and all(map(is_object, items)):
            del record[key]
            parts += [{"type": kind, "data": _attached(item)} for item in items]

    return parts


def _attached(item: dict[str, Any]) -> dict[str, Any]:
    """Name the content of a file as parts of all sources do, in bytes."""
    content = _decoded(item.get("data"))
    if content is None or "content" in item:
        return item

    del item["data"]
    item["content"] = content
    if clean_text(item.get("name")) and "filename" not in item:
        item["filename"] = item.pop("name")
    return item


def _decoded(encoded: Any) -> bytes | None:
    """Decode base64; None if encoding it again would give something else."""
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None
    return content if base64.b64encode(content).decode() == encoded else None


def _said(record: dict[str, Any], found: Found) -> list[Found]:  # noqa: ARG001
    return _text(record, "text")


def _skill(record: dict[str, Any], found: Found) -> list[Found]:
    """Return the text of a skill as it is sent, and the skill as its source."""
    name = next(filter(clean_name, (record.get("name"), record.get("skill"))), None)
    source = {"type": "source", "title": name, "input": {"kind": "skill"}, "data": {}}
    return [*_said(record, found), source]


def _nothing(record: dict[str, Any], found: Found) -> list[Found]:  # noqa: ARG001
    return []


def _text(record: dict[str, Any], key: str, **data: Any) -> list[Found]:
    if not text(record.get(key)):
        return []
    return [{"type": "text", "text": record.pop(key), "data": data}]


def _assistant(record: dict[str, Any], found: Found) -> list[Found]:
    take_tokens(record, found)
    if within(found.get("error"), "type") == "aborted":
        found["finish"] = "cancelled"
    else:
        found["finish"] = take_finish(record)

    # A list with anything odd in it stays in the record, complete.
    content = record.get("content")
    if type(content) is not list or not all(map(_is_piece, content)):
        return []
    return list(map(_piece, record.pop("content")))


def _is_piece(item: Any) -> bool:
    return type(item) is dict and usable_id(item.get("type"))


def _piece(item: dict[str, Any]) -> Found:
    """Return a piece of the content of an answer as a part."""
    kind = item.pop("type")
    found = take(item, fields.PART.get(kind, {}))

    if kind == "tool":
        found.setdefault("tool", NAMELESS)
        _take_start(item, found)
        _take_state(item, found)

    return {**found, "type": kind, "data": item}


def _take_start(item: dict[str, Any], found: Found) -> None:
    """Let a call that ended and has no time of its start have run at once."""
    if "time_started" not in found and {"time_created", "time_ended"} <= found.keys():
        found["time_started"] = found["time_created"]
        item[NO_RAN] = True


def _take_state(item: dict[str, Any], found: Found) -> None:
    """Take the call and its result out of the state of a tool part."""
    state = as_object(item.get("state"))
    if not state:
        return

    if state.get("input") is not None:
        found["input"] = state.pop("input")
    status = fitting(state.get("status"), text)
    if status in fields.STATUS:
        found["status"] = fields.STATUS[state.pop("status")]
    if status in _TAKE_END:
        _TAKE_END[status](state, found)

    if not state:
        del item["state"]


def _take_error(state: dict[str, Any], found: Found) -> None:
    error = as_object(state.get("error"))
    if text(error.get("message")):
        found["text"] = error.pop("message")
    known = fields.OUTCOME.get(str(error.get("type")))
    said = found.get("text", "")
    found["outcome"] = known or outcome(said, state.get("metadata"))


def _take_result(state: dict[str, Any], found: Found) -> None:
    """Join the texts of a result; if there are other pieces, their order is kept."""
    content = as_list(state.get("content"))
    texts = [item["text"] for item in filter(_is_text, content)]
    if not texts:
        return

    found["text"] = "\n".join(texts)
    pieces = [len(item["text"]) if _is_text(item) else item for item in content]
    del state["content"]
    # One text is all of its result; only of several the lengths are needed.
    if len(pieces) > 1:
        state[PIECES] = pieces


_TAKE_END = {"completed": _take_result, "error": _take_error}


def _is_text(item: Any) -> bool:
    said = within(item, "text")
    return text(said) and item == {"type": "text", "text": said}


def _shell(record: dict[str, Any], found: Found) -> list[Found]:
    """A command of the user is a call that no model made."""
    part = take(record, fields.SHELL)
    part.update(type="tool", tool="shell", data={})
    if text(record.get("command")):
        part["input"] = {"command": record.pop("command")}

    end = fields.SHELL_ENDS.get(str(record.get("status")), {"status": "completed"})
    part.update(end)
    part["time_started"] = found["time_created"]
    ended = within(record, "time", "completed")
    if time(ended):
        found["time_completed"] = part["time_ended"] = ended
    return [part]


def _compaction(record: dict[str, Any], found: Found) -> list[Found]:
    take_tokens(record, found)
    status = record.get("status")
    if status != "completed":
        found["kind"] = fields.NO_SUMMARY.get(str(status), "custom")
        return []

    summary = _text(record, "summary")
    if not record.get("recent"):
        return summary
    return summary + _text(record, "recent", **{RECENT: True})


def _idle(record: dict[str, Any], found: Found) -> list[Found]:
    found["kind"] = fields.ENDS.get(str(record.get("outcome")), "idle")
    return []


Maker = Callable[[dict[str, Any], Found], list[Found]]
_MAKERS: dict[str, Maker] = {
    "user": _user,
    "assistant": _assistant,
    "system": _said,
    "synthetic": _said,
    "skill": _skill,
    "shell": _shell,
    "compaction": _compaction,
    "idle": _idle,
}
