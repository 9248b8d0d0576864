"""Records of a plain log to drafts: known keys become columns, the rest is ``data``.

A record is one message, except those of an answer, which are one together. These
functions take their record apart, so it must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessiondb.formats.content import embedded
from sessiondb.formats.event_log import fields
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    check_storable,
    is_object,
    text,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.spelled import first_of, take
from sessiondb.formats.kit.texts import compact, take_json
from sessiondb.formats.kit.usage import take_usage
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.model.draft import NO_INPUT

Record = dict[str, Any]
Parts = list[PartDraft]
#: Types of parts that blocks become; a block that already has one is kept apart.
_HERE = frozenset({"reasoning", "tool", "tool-result", "file", "custom"})
#: Types of blocks whose text is under one key, and the types of their parts.
TEXTS = {
    "text": ("text", "text"),
    "input_text": ("text", "text"),
    "output_text": ("text", "text"),
    "thinking": ("reasoning", "thinking"),
    "reasoning": ("reasoning", "text"),
}


def check_record(record: Record) -> str:
    """Return the type of *record*; raises `OddRecordError` if it has none."""
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    return str(record["type"])


def message_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the message that a record is by itself; raises `OddRecordError`."""
    kind = check_record(record)
    role = fields.ROLES.get(kind, "event")
    time = fields.take_time(record)
    if role == "event":
        found: dict[str, Any] = {"kind": fields.KINDS.get(kind, kind)}
        parts = _context(record) if kind == "context" else []
    else:
        found = {}
        parts = [_result(record)] if role == "tool" else said(record, fields.TEXT)

    if kind in (fields.USER, fields.SYSTEM, fields.RETURNED, found.get("kind")):
        del record["type"]
    check_storable(record)
    return MessageDraft(
        role,
        tuple(parts),
        message_id,
        time_created=time,
        time_completed=time,
        data=record,
        **found,
    )


# -- answers -----------------------------------------------------------------


@dataclass(slots=True)
class Answer:
    """An answer whose records come one by one, with others between them.

    ``order`` has an entry for each: which one it is, how many messages of the log are
    between the first one and it, and of the last one the columns that left it.
    """

    id: str
    own_id: Any = None
    order: list[list[Any]] = field(default_factory=list)
    _parts: Parts = field(default_factory=list)
    _columns: dict[str, Any] = field(default_factory=dict)
    _data: Record = field(default_factory=dict)

    def takes(self, record: Record) -> bool:
        """Return whether a record of an answer is of this one."""
        kind, named = record["type"], own_id(record)
        if kind == fields.CALLED or kind in fields.SAID:
            return True
        differs = None not in (named, self.own_id) and named != self.own_id
        return kind != fields.STARTED and "finished" not in self._data and not differs

    def add(self, record: Record, between: int) -> None:
        """Add a record; raises `OddRecordError` without having added anything."""
        kind, named = record["type"], own_id(record)
        time = fields.take_time(record)
        if kind in (fields.CALLED, fields.STARTED, fields.FINISHED):
            # The type of an answer that is a single record stays.
            del record["type"]

        parts, columns, entry = _step(kind, record, time)
        check_storable(record)
        if not self.order:
            self._columns["time_created"] = time
        if entry[0] != "part":
            self._data[entry[0]] = record
            self.own_id = named if self.own_id is None else self.own_id
        self.order.append([entry[0], between, *entry[1:]])
        self._parts += parts
        self._columns |= columns

    def draft(self) -> MessageDraft:
        """Return the message."""
        data = {**self._data, "order": self.order}
        return MessageDraft(
            "assistant", tuple(self._parts), self.id, data=data, **self._columns
        )


def _step(
    kind: str, record: Record, time: int | None
) -> tuple[Parts, dict[str, Any], list[Any]]:
    """Return the parts and columns of a record of an answer, and its entry."""
    if kind == fields.CALLED:
        return [_call(record, time)], {}, ["part"]
    if kind in fields.SAID:
        return [_piece(record, time)], {}, ["part"]
    if kind == fields.STARTED:
        # The end may name another model, so that the record keeps its own.
        return [], take(dict(record), fields.ANSWER), ["started"]

    before = frozenset(record)
    parts, columns = _finished(record)
    left = sorted(set(columns) & {_COLUMNS.get(key, "") for key in before - {*record}})
    return parts, {**columns, "time_completed": time}, ["finished", left]


#: Columns of the end of an answer by the key whose value leaves the record.
_COLUMNS = {spelled.keys[0]: column for column, spelled in fields.ANSWER.items()} | {
    fields.FINISH_KEYS[0]: "finish",
    "error": "error",
}


def own_id(record: Record) -> Any:
    """Return the id that a log gives a message; None if it has none that is usable."""
    # The ``id`` of a call is that of the call.
    is_call = record.get("type") in (fields.CALLED, fields.RETURNED)
    keys = fields.MESSAGE_ID[:1] if is_call else fields.MESSAGE_ID
    return next(filter(usable_id, map(record.get, keys)), None)


def _finished(record: Record) -> tuple[Parts, dict[str, Any]]:
    parts = said(record, fields.REASONING, "reasoning") + said(record, fields.TEXT)
    columns = take(record, fields.ANSWER)
    if "cost" not in columns:
        usage = dict(as_object(record.get("usage")))
        columns |= take(usage, {"cost": fields.ANSWER["cost"]})

    columns["tokens"] = take_usage(record)
    columns["finish"] = _finish(record)
    if is_object(record.get("error")) and record["error"]:
        columns["error"] = record.pop("error")
    elif text(record.get("error")) and record["error"]:
        columns["error"] = {"message": record["error"]}
    return parts, columns


def _finish(record: Record) -> str | None:
    found: str | None = first_of(record, fields.FINISH_KEYS, fields.FINISH)
    if found is None and any(text(record.get(key)) for key in fields.FINISH_KEYS):
        return "other"
    if found is not None and record.get(fields.FINISH_KEYS[0]) == found:
        del record[fields.FINISH_KEYS[0]]
    return found


def _piece(record: Record, time: int | None) -> PartDraft:
    """Return a text of an answer that is a record of its own."""
    key = next((key for key in fields.TEXT if text(record.get(key))), None)
    kind = "custom" if key is None else fields.SAID[record["type"]]
    found = None if key is None else record.pop(key)
    data = {"key": key, "record": record}
    return PartDraft(kind, found, data=data, time_started=time)


# -- calls -------------------------------------------------------------------


def _call(record: Record, time: int | None) -> PartDraft:
    named = take(dict(record), fields.CALL)
    if "tool" not in named:
        data = {"key": None, "record": record}
        return PartDraft("custom", data=data, time_started=time)

    known = take(record, fields.CALL)
    return PartDraft(
        "tool",
        **known,
        input=_input(record),
        status="pending",
        time_started=time,
        data={"record": record},
    )


def _input(record: Record) -> Any:
    """Return the arguments of a call; the text of an object stays in the record."""
    key = next((key for key in fields.INPUT if key in record), None)
    if key is None:
        return NO_INPUT
    if text(record[key]):
        return take_json({key: record[key]}, key)
    return record.pop(key) if key == fields.INPUT[0] else record[key]


def _result(record: Record) -> PartDraft:
    """Return the result of a call, which its text or its error is."""
    known = take(record, fields.RESULT)
    outcome = first_of(record, fields.OUTCOME_KEYS, fields.OUTCOME)
    error = record.get("error")
    is_bad = error not in (None, "", False) or record.get("is_error") is True
    if outcome is None and (is_bad or record.get("success") is False):
        outcome = "failed"

    found, data = _output(record)
    if not found and is_bad:
        found, data = _error(record)
    return PartDraft(
        "tool-result",
        found,
        **known,
        outcome=outcome,
        status="error" if outcome else "completed",
        data=data,
    )


def _output(record: Record) -> tuple[str, Record]:
    """Return the output of a call; anything but a text stays in the record, too."""
    key = next((key for key in fields.OUTPUT if record.get(key) is not None), None)
    if key is None:
        # A call that was denied has ended, too.
        return "", {}
    value = record[key]
    if text(value):
        return (record.pop(key), {"field": key}) if value else ("", {})

    blocks = [as_object(block).get("text") for block in as_list(value)]
    if blocks and all(map(text, blocks)):
        return "\n".join(map(str, blocks)), {}
    return compact(value), {}


def _error(record: Record) -> tuple[str, Record]:
    error = record.get("error")
    if text(error):
        return record.pop("error"), {"field": "error"}
    message = as_object(error).get("message")
    return (message if text(message) else compact(error)), {}


# -- texts -------------------------------------------------------------------


def said(record: Record, keys: tuple[str, ...], kind: str = "text") -> Parts:
    """Take the first text, or list of blocks, that *record* has at one of *keys*."""
    for key in keys:
        value = record.get(key)
        if text(value) and value:
            return [PartDraft(kind, record.pop(key), data={"field": key})]
        if isinstance(value, list) and value and all(map(_is_block, value)):
            del record[key]
            return [_block(block, key) for block in value]
    return []


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _block(block: Record, key: str) -> PartDraft:
    check_storable(block)
    kind = block["type"]
    if kind in TEXTS and text(block.get(TEXTS[kind][1])):
        part, at = TEXTS[kind]
        return PartDraft(part, block.pop(at), data={"field": key, "block": block})
    if kind == "image" and text(block.get("data")):
        mime = block.get("mime_type") or block.get("mimeType")
        content = embedded(mime, block.pop("data"))
        return PartDraft("file", data={**content, "field": key, "block": block})
    part = "custom" if kind in _HERE else kind
    return PartDraft(part, data={"field": key, "block": block})


def _context(record: Record) -> Parts:
    """Take the text of a context: its own, or that of each of its sources."""
    parts = said(record, fields.TEXT[:2])
    if parts:
        return parts

    for number, source in enumerate(as_list(record.get("sources"))):
        for part in said(as_object(source), fields.TEXT[1::-1]):
            named: Mapping[str, Any] = {"source": number, **part.data}
            parts.append(PartDraft("text", part.text, data=named))
    return parts
