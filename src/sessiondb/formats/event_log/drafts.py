"""Records of a plain log to drafts: known keys become columns, the rest is ``data``.

A record is one message, except those of an answer, which are one together. These
functions take their record apart, so it must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.content import embedded_file
from sessiondb.formats.event_log import fields
from sessiondb.formats.event_log.lifting import (
    ANSWER_MARKS,
    DETAILS,
    FILE_MARKS,
    PART_MARKS,
    lift_data,
    lift_message_data,
)
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    clean_text,
    is_object,
    text,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.spelled import (
    Table,
    first_fitting,
    first_of,
    has_failed,
    in_ms,
    keys_in,
    not_null,
    spelled,
    take_spelled,
)
from sessiondb.formats.kit.texts import compact_json, take_json
from sessiondb.formats.kit.usage import take_usage
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.model.aliases import OUTCOMES
from sessiondb.model.draft import NO_INPUT, STATUSES

Record = dict[str, Any]
Parts = list[PartDraft]
#: Types of the records of an answer that are one part of it.
_PIECES = frozenset({fields.CALLED, fields.PART, *fields.SAID})
#: Types of parts that blocks become; a block that already has one is kept apart.
_KEPT_APART: Mapping[str, str] = dict.fromkeys(
    ("reasoning", "tool", "tool-result", "file", "custom"), "custom"
)


def _is_outcome(value: Any) -> bool:
    return text(value) and value in OUTCOMES


_CALL_BLOCK: Table = {
    "status": spelled(not_null, "status"),
    "outcome": spelled(_is_outcome, "outcome"),
    "time_ended": spelled(in_ms, "time_ended"),
}
_MIME = ("mime_type", "mimeType")
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
    event = fields.kind_of(record) if role == "event" else None
    time = fields.take_time(record)
    columns = {} if role == "tool" else _take_columns(record, role)
    parts = _take_parts(record, kind)

    # A type that is written for the role or kind anyway is not kept.
    if kind in (fields.type_of(role, event), fields.RETURNED_PARTS):
        del record["type"]
    lift_message_data(record)
    check_storable(record)
    return MessageDraft(
        role,
        tuple(parts),
        message_id,
        time_created=time,
        data=record,
        **{"kind": event, **columns},
    )


def _take_parts(record: Record, kind: str) -> Parts:
    """Return the parts of the message that a record of type *kind* is."""
    if kind == fields.RETURNED:
        return [_result_part(record)]
    if kind == "context":
        return _context_parts(record)
    if kind in fields.ROLES:
        return said(record, fields.TEXT)
    # Other keys of an event may have a text with another meaning.
    return said(record, fields.TEXT[:2])


def _take_columns(record: Record, role: str) -> Record:
    """Take the columns of a message that is neither an answer nor a result."""
    if role != "event":
        return take_spelled(record, {**fields.STATED, **fields.KIND})

    columns = take_spelled(record, fields.STATED)
    # A log may end with the sums of its answers: only what says so counts itself.
    if record.get(fields.COUNTED) is True:
        columns |= {"tokens": take_usage(record), **take_spelled(record, fields.COST)}
        if columns["tokens"] is not None and record.get("usage") == {}:
            del record["usage"]
    return columns


def repeated_draft(record: Record, message_id: str) -> MessageDraft:
    """Return the event of a record that was written twice; raises `OddRecordError`."""
    time = fields.take_time(record)
    check_storable(record)
    return MessageDraft(
        "event", (), message_id, kind=fields.REPEATED, time_created=time, data=record
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
    _lifted: Record = field(default_factory=dict)

    def takes(self, record: Record) -> bool:
        """Return whether a record of an answer is of this one."""
        kind = record["type"]
        # Calls and texts may follow the end; their ids are not those of the answer.
        if kind in _PIECES:
            return True
        if kind == fields.STARTED or "finished" in self._data:
            return False

        names = {own_id(record), self.own_id} - {None}
        return len(names) < 2

    def add(self, record: Record, between: int) -> None:
        """Add a record; raises `OddRecordError` without having added anything."""
        kind, name = record["type"], own_id(record)
        time = fields.take_time(record)
        # Records of any other type, an answer in one record above all, keep theirs.
        if kind in (fields.CALLED, fields.STARTED, fields.FINISHED):
            del record["type"]

        step = _step_of_record(record, kind, time)
        check_storable(record)
        # From here on nothing is refused.
        self._columns.setdefault("time_created", time)
        if step.name != "part":
            self._data[step.name] = record
            self.own_id = self.own_id or name

        self.order.append([step.name, between, *step.left])
        self._parts += step.parts
        self._columns |= step.columns
        self._lifted |= step.lifted

    def draft(self) -> MessageDraft:
        """Return the message."""
        data = {**self._lifted, **self._data, "order": self.order}
        return MessageDraft(
            "assistant", tuple(self._parts), self.id, data=data, **self._columns
        )


class _Step(NamedTuple):
    """A record of an answer: its parts and columns, and its entry in ``order``."""

    name: str
    parts: Parts
    columns: Mapping[str, Any] = MappingProxyType({})
    left: tuple[list[str], ...] = ()
    lifted: Mapping[str, Any] = MappingProxyType({})


def _step_of_record(record: Record, kind: str, time: int | None) -> _Step:
    """Return what a record adds to its answer; one of another type is the end of it."""
    if kind == fields.CALLED:
        return _call_step(record, time)
    if kind == fields.STARTED:
        return _start_step(record)
    if kind == fields.PART:
        return _block_step(record, time)
    if kind in fields.SAID:
        return _text_step(record, kind, time)
    return _end_step(record, time)


def _start_step(record: Record) -> _Step:
    lifted = lift_data(record, ANSWER_MARKS)
    # The end may name another model, so that the record keeps its own.
    others = dict(record)
    columns = {
        "tokens": take_usage(others),
        **take_spelled(others, {**fields.ENDED, **fields.KIND}),
    }
    return _Step("started", [], without_none(columns), lifted=lifted)


def _end_step(record: Record, time: int | None) -> _Step:
    keys_before = frozenset(record)
    parts = said(record, fields.REASONING, "reasoning") + said(record, fields.TEXT)

    # The cost may be within the usage: it is read there, and stays.
    usage = dict(as_object(record.get("usage")))
    finish_key, finish = first_fitting(record, fields.FINISH_KEYS, text)
    error = record.get("error")
    columns = {
        "time_completed": time,
        "tokens": take_usage(record),
        "finish": fields.FINISH.get(finish, "other") if finish_key else None,
        "error": {"message": error} if text(error) and error else None,
        **take_spelled(usage, fields.COST),
        **take_spelled(record, fields.ENDED),
    }
    columns = without_none(columns)
    gone = keys_before - record.keys()
    left = sorted(
        name for name, spelling in fields.ENDED.items() if spelling.keys[0] in gone
    )
    return _Step("finished", parts, columns, (left,))


def own_id(record: Record) -> Any:
    """Return the id that a log gives a message; None without a usable one."""
    # The ``id`` of a call is that of the call.
    is_call = record.get("type") in (fields.CALLED, fields.RETURNED)
    keys = fields.MESSAGE_ID[:1] if is_call else fields.MESSAGE_ID
    _, name = first_fitting(record, keys, usable_id)
    return name


def _text_step(record: Record, kind: str, time: int | None) -> _Step:
    """Return a text of an answer that is a record of its own."""
    key, content = first_fitting(record, fields.TEXT, text)
    if not key:
        return _odd_step(record, time)

    del record[key]
    data = {**lift_data(record, PART_MARKS), "key": key, "record": record}
    part = PartDraft(fields.SAID[kind], content, data=data, time_started=time)
    return _Step("part", [part])


def _block_step(record: Record, time: int | None) -> _Step:
    """Return a part of an answer that is neither a text nor a call."""
    part = _part_of_block(record.pop(fields.PART), fields.PART)
    data = {**part.data, "record": record}
    return _Step("part", [replace(part, data=data, time_started=time)])


def _odd_step(record: Record, time: int | None) -> _Step:
    """Return a piece of an answer without the text or name that makes it one."""
    data = {"key": None, "record": record}
    return _Step("part", [PartDraft("custom", data=data, time_started=time)])


# -- calls -------------------------------------------------------------------


def _call_step(record: Record, time: int | None) -> _Step:
    if "tool" not in take_spelled(dict(record), fields.CALL):
        return _odd_step(record, time)

    columns = take_spelled(record, fields.CALL)
    lifted = lift_data(record, PART_MARKS)
    part = PartDraft(
        "tool",
        **columns,
        input=_take_input(record),
        status="running" if record.get("status") == "running" else "pending",
        time_started=time,
        data={**lifted, "record": record},
    )
    return _Step("part", [part])


def _take_input(record: Record) -> Any:
    """Return the arguments of a call; the text of an object stays in the record."""
    keys = keys_in(record, fields.INPUT)
    if not keys:
        return NO_INPUT

    value = record[keys[0]]
    if text(value):
        return take_json({"text": value}, "text")
    # Only where no other key could be confused with it: see `kit.spelled.take`.
    if keys == fields.INPUT[:1]:
        del record[keys[0]]
    return value


def _result_part(record: Record) -> PartDraft:
    """Return the result of a call, which its text or its error is."""
    columns = take_spelled(record, fields.RESULT)
    is_bad = has_failed(record)
    failed = "failed" if is_bad or record.get("success") is False else None
    outcome = first_of(record, fields.OUTCOME_KEYS, fields.OUTCOME) or failed

    content, data = _take_output(record)
    # Programs that write both an output and an error mean the output to be read.
    if not content and is_bad:
        content, data = _take_error(record)

    status = "error" if outcome else "completed"
    return PartDraft(
        "tool-result", content, **columns, outcome=outcome, status=status, data=data
    )


def _take_output(record: Record) -> tuple[str, Record]:
    """Return the output of a call; anything but a text stays in the record, too."""
    key, value = first_fitting(record, fields.OUTPUT, not_null)
    # Without one, too: a call that was denied has ended.
    if value in (None, ""):
        return "", {}
    if text(value):
        return record.pop(key), {"field": key}

    content = _block_text(value)
    return (compact_json(value) if content is None else content), {}


def _block_text(value: Any) -> str | None:
    """Return the text of a list of blocks; None if it is anything else."""
    texts: list[str] = []
    for block in as_list(value):
        words = as_object(block).get("text")
        if not text(words):
            return None
        texts.append(words)

    return "\n".join(texts) if texts else None


def _take_error(record: Record) -> tuple[str, Record]:
    error = record.get("error")
    if text(error):
        return record.pop("error"), {"field": "error"}

    message = as_object(error).get("message")
    return (message if text(message) else compact_json(error)), {}


# -- texts -------------------------------------------------------------------


def said(record: Record, keys: tuple[str, ...], kind: str = "text") -> Parts:
    """Take the first text, or list of blocks, that *record* has at one of *keys*."""
    for key in keys:
        value = record.get(key)
        # An empty text or list stays in the record: a part would not say which it was.
        if not value:
            continue
        if text(value):
            return [PartDraft(kind, record.pop(key), data={"field": key})]
        if isinstance(value, list) and all(fields.is_block(block) for block in value):
            return [_part_of_block(block, key) for block in record.pop(key)]

    return []


def _part_of_block(block: Record, key: str) -> PartDraft:
    check_storable(block)
    kind = block["type"]
    data = {"field": key, "as_block": block}
    if kind in ("image", "file") and _is_file(block):
        return PartDraft("file", data={**_file_data(block), **data})

    data = {**lift_data(block, PART_MARKS), **data}
    columns = _block_columns(block)
    part, text_key = TEXTS.get(kind, (_KEPT_APART.get(kind, kind), "text"))
    if kind == "tool" and block.get("status") in STATUSES:
        return _ended_call(block, data)
    if text(block.get(text_key)):
        return PartDraft(part, block.pop(text_key), data=data, **columns)
    # A provider may have a text of which a program has no more than that it was there.
    if kind not in TEXTS or text_key in block:
        part = _KEPT_APART.get(kind, kind)
    return PartDraft(part, data=data, **columns)


def _ended_call(block: Record, data: Record) -> PartDraft:
    """Return a call that is a block with its result, as of a command of the user."""
    columns = take_spelled(dict(block), {**fields.CALL, **_CALL_BLOCK})
    if "arguments" in block:
        columns["input"] = block["arguments"]
    if text(block.get("text")):
        columns["text"] = block.pop("text")
    return PartDraft("tool", data=data, **columns)


def _block_columns(block: Record) -> Record:
    """Return the columns of a block that stay in it, too."""
    columns: Record = {"synthetic": block.get("synthetic") is True}
    if block["type"] == "source" and clean_text(block.get("title")):
        columns["title"] = block["title"]
    if block["type"] == "source" and "input" in block:
        columns["input"] = block["input"]
    return columns


def _is_file(block: Record) -> bool:
    return bool(
        text(block.get("data"))
        or text(block.get("url"))
        or clean_name(block.get("name"))
    )


def _file_data(block: Record) -> Record:
    """Take the data of a file; what it is called, and where it is, stay as well."""
    lifted = lift_data(block, FILE_MARKS, DETAILS)
    _, mime = first_fitting(block, _MIME, bool)
    facts = {"mime": as_text(mime), "url": as_text(block.get("url"))}
    if text(block.get("data")):
        facts |= embedded_file(mime, block.pop("data"))
    if clean_name(block.get("name")):
        facts["filename"] = block["name"]
    return {**lifted, **without_none(facts)}


def _context_parts(record: Record) -> Parts:
    """Take the text of a context, and its sources; other values stay."""
    parts = said(record, fields.TEXT[:2])
    for place, source in enumerate(as_list(record.get("sources"))):
        if is_object(source):
            parts.append(_source_part(source, place))
            record["sources"][place] = None
    return parts


def _source_part(source: Record, place: int) -> PartDraft:
    """Return the part of a source, whose content may also be a list of blocks."""
    check_storable(source)
    keys = list(source)
    spelled = take_spelled(dict(source), fields.CONTEXT)
    own_keys = {key: source.pop(key) for key in keys if key in fields.CONTEXT}
    # The value of a key itself takes precedence over another spelling.
    columns = {**own_keys, **spelled, **own_keys}

    # Its sources may be blocks with a text, too: there ``content`` is the full one.
    key, content = first_fitting(source, fields.TEXT[1::-1], text)
    if key:
        del source[key]
    else:
        content = _block_text(source.get(fields.TEXT[1]))

    data = {"source": place, "key": key, "record": source}
    # A source is written with its keys in their order.
    if [*columns, *source, *([key] if key else [])] != keys:
        data["keys"] = keys

    names = {"path": columns.get("path"), "name": source.get("name")}
    _, title = first_fitting(names, ("path", "name"), clean_name)
    return PartDraft("source", content, title=title, input=columns, data=data)
