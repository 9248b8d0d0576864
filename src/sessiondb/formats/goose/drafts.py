"""Records of Goose to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Goose has
two roles: results of tools are messages of the user there, and so is much of the
text that the program adds for the agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, starmap
from operator import contains
from typing import Any

from sessiondb.formats.content import embedded
from sessiondb.formats.goose import fields
from sessiondb.formats.goose.usage import cost_in, stated_in
from sessiondb.formats.goose.visibility import visible_in
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    clean_text,
    fitting,
    is_object,
    take,
    text,
    within,
)
from sessiondb.formats.kit.json import OddRecordError, known_time, usable_id
from sessiondb.model import MessageDraft, PartDraft

#: Types of parts that blocks become or that mean something here.
_HERE = frozenset(
    {
        "reasoning", "tool", "tool-result", "file", "custom", "compaction", "agent",
        "patch", "snapshot", "subtask", "retry", "step-start", "step-finish",
    }
)  # fmt: skip
#: Visible to the agent alone; see `visible_in`.
_FOR_AGENT = (False, True)
_FAILED = {"status": "error", "outcome": "failed"}
#: Each load of a session puts one more of these before the text of an error.
_PREFIXES = re.compile(r"\A(?:-32603: )+")

Record = dict[str, Any]
Parts = list[PartDraft]


def message_draft(
    record: Record, message_id: str, *, is_summary: bool = False
) -> MessageDraft:
    """Return the message that a record is.

    Raises `OddRecordError` for a record without a role, or one that cannot be stored.
    """
    stated_role = record.get("role")
    if not usable_id(stated_role):
        raise OddRecordError("has no role")

    # A record is written back with the keys that it had.
    absent = set(fields.KEYS).difference(record)
    kinds = _kinds(record)
    role, kind = _role(record, str(stated_role), kinds)
    if is_summary:
        role, kind = "event", "compaction"
    if role == stated_role or (role == "tool" and stated_role == "user"):
        del record["role"]
    if record.get("id") == message_id:
        del record["id"]

    parts = _content(record)
    columns: Record = _model(record) if role == "assistant" else {}
    time = _time(record)
    if absent:
        record["absent"] = sorted(absent)

    check_storable(record)
    columns["time_created"] = time
    return MessageDraft(role, parts, message_id, kind, data=record, **columns)


def time_of(created: Any) -> int | None:
    """Return the Unix ms of ``created``, which is in seconds or in milliseconds."""
    if type(created) is not int:
        return None

    # Releases differ in the unit, and the size of a number decides, as in Goose itself.
    return known_time(created if created > fields.MILLISECONDS else created * 1000)


def _time(record: Record) -> int | None:
    created = record.get("created")
    time = time_of(created)
    if time is not None and time != created:
        del record["created"]

    return time


# -- roles -------------------------------------------------------------------


def _kinds(record: Record) -> list[Any]:
    """Return the types of the blocks of a message; untyped ones by what they hold."""
    return list(map(_kind, as_list(record.get("content"))))


def _kind(block: Any) -> str | None:
    if not is_object(block):
        return None
    if "type" in block:
        return as_text(block["type"])

    # Of several keys the first one of the table decides: a result may have a text, too.
    sign = next(filter(partial(contains, block), fields.UNTYPED), "")
    return fields.UNTYPED.get(sign)


def _role(record: Record, stated_role: str, kinds: list[Any]) -> tuple[str, str | None]:
    """Return the role of a message here, and the kind of an event."""
    if stated_role not in fields.ROLES:
        return "event", stated_role

    if kinds and fields.SHOWN_ONLY.issuperset(kinds):
        return "event", kinds[0]
    if "toolResponse" in kinds:
        return "tool", None

    # A model may call tools out of the user's sight: these are its own words.
    is_hidden = visible_in(record.get("metadata")) == _FOR_AGENT
    if is_hidden and "toolRequest" not in kinds and stated_role != "system":
        return "event", "custom_message"

    return stated_role, None


def _model(record: Record) -> Record:
    """Return the model that answered, its counts and its cost.

    The model that was requested may be another one.
    """
    inference = as_object(within(record, "metadata", "inference"))
    model = inference.get("resolvedModel") or inference.get("requestedModel")
    values = {"provider_id": inference.get("provider"), "model_id": model}
    columns: Record = {key: value for key, value in values.items() if clean_text(value)}
    used = within(record, "metadata", "usage")
    return columns | {"tokens": stated_in(used), "cost": cost_in(used)}


# -- content -----------------------------------------------------------------


def _content(record: Record) -> tuple[PartDraft, ...]:
    """Take the blocks of a message; content that is not a list stays in the record."""
    if not isinstance(record.get("content"), list):
        return ()

    return tuple(chain.from_iterable(map(_parts, record.pop("content"))))


def _parts(block: Any) -> Parts:
    """Return the parts of a block: of a result what it holds besides its text, too.

    A block without a type, or with a key that means something else in a part, is kept
    as it is.
    """
    kind = _kind(block)
    own_keys = fields.OWN.get(kind, frozenset())
    if kind is None or not usable_id(kind) or not own_keys.isdisjoint(block):
        return _kept(block)
    if "type" not in block:
        return _untyped(block)

    del block["type"]
    return _MAKERS.get(kind, _other)(block, kind)


def _kept(block: Any) -> Parts:
    return [PartDraft("custom", data={"block": block})]


def _text(block: Record, kind: str) -> Parts:
    text_type, table = fields.TEXTS[kind]
    return [PartDraft(text_type, **take(block, table), data=block)]


def _other(block: Record, kind: str) -> Parts:
    """Keep a block of another type, under a name without a meaning here."""
    if kind in _HERE:
        return [PartDraft("custom", data={"type": kind, **block})]

    return [PartDraft(kind, data=block)]


def _redacted(block: Record, _: str) -> Parts:
    return [PartDraft("reasoning", data={"redacted": block})]


def _old_reasoning(block: Record, kind: str) -> Parts:
    columns = take(block, fields.TEXTS["text"][1])
    return [PartDraft("reasoning", **columns, data={"type": kind, **block})]


def _untyped(block: Record) -> Parts:
    """Return the part of a block of the first releases (November 2024)."""
    if "tool_result" in block:
        return [_untyped_result(block)]

    if "tool_name" in block and not clean_name(block["tool_name"]):
        return _kept(block)

    block["untyped"] = True
    if "tool_name" not in block:
        return [PartDraft("text", **take(block, fields.TEXTS["text"][1]), data=block)]

    columns = take(block, fields.UNTYPED_CALL)
    if "arguments" in block:
        columns["input"] = block.pop("arguments")

    return [PartDraft("tool", **columns, status="pending", data=block)]


def _untyped_result(block: Record) -> PartDraft:
    """Return a result as it was: the content, or one side of what Rust returned."""
    columns = take(block, fields.RESULT)
    value = block["tool_result"]
    sides = as_object(value)
    # One of the two is a list, the other is not there.
    items = as_list(value) + as_list(sides.get("Ok"))
    texts = (as_text(within(item, "text")) for item in items)

    shown = as_text(value) or next(filter(None, texts), None)
    if "Err" in sides:
        columns |= _FAILED
        shown = str(sides["Err"])

    return PartDraft("tool-result", shown, **columns, data={**block, "untyped": True})


def _call(block: Record, kind: str) -> Parts:
    """Return a call; one that could not be parsed has no name, and is kept as it is."""
    call = as_object(block.get("toolCall"))
    value = as_object(call.get("value"))
    called = take(value, fields.CALLED)
    if "tool" not in called:
        return [PartDraft("custom", _error_text(call), data={"type": kind, **block})]

    columns = called | take(block, fields.CALL)
    if "arguments" in value:
        columns["input"] = value.pop("arguments")

    # A name that a model gave to the call later.
    title = within(block, "_meta", "goose.toolSummary.title")
    columns["title"] = fitting(title, clean_text)

    if kind != "toolRequest":
        block["type"] = kind

    return [PartDraft("tool", **columns, status="pending", data=block)]


def _error_text(result: Record) -> str | None:
    """Return the error of a call or a result, without what loading it has added."""
    error = as_text(result.get("error"))
    return None if error is None else _PREFIXES.sub("", error)


def _image(block: Record, kind: str) -> Parts:
    data = as_text(block.get("data"))
    if data is None:
        return [PartDraft("custom", data={"type": kind, **block})]

    del block["data"]
    content = embedded(block.pop("mimeType", None), data)

    return [PartDraft("file", data={**content, **block})]


# -- results -----------------------------------------------------------------


def _result(block: Record, _: str) -> Parts:
    """Return a result, followed by its images and other texts.

    The part has the first text that is meant for the agent. Of what became parts, the
    record keeps the rest in its place: ``at`` says which one.
    """
    columns = take(block, fields.RESULT)
    result = as_object(block.get("toolResult"))
    value = result.get("value")
    items = as_list(value) + as_list(within(value, "content"))

    shown = filter(_is_for_agent, enumerate(items))
    more = list(chain.from_iterable(starmap(_item, shown)))

    if result.get("status") == "error" or within(value, "isError") is True:
        columns |= _FAILED

    part = PartDraft("tool-result", _error_text(result), **columns, data=block)
    first = next((extra for extra in more if extra.type == "text"), None)
    if first is None or part.text is not None:
        return [part, *more]

    more.remove(first)

    return [replace(part, text=first.text, data={**block, **first.data}), *more]


def _is_for_agent(item: tuple[int, Any]) -> bool:
    """Return whether the agent is shown an item; some are for the user alone."""
    audience = within(item[1], "annotations", "audience")
    return not isinstance(audience, list) or "assistant" in audience


def _item(index: int, item: Any) -> Parts:
    kind = within(item, "type")
    if kind == "text" and text(item.get("text")):
        return [PartDraft("text", item.pop("text"), data={"at": index})]

    if kind == "image" and text(item.get("data")):
        content = embedded(item.get("mimeType"), item.pop("data"))
        return [PartDraft("file", data={**content, "at": index})]

    return []


#: Makes the parts of a block of a type; the others are kept as they are.
_MAKERS: Mapping[str, Callable[[Record, str], Parts]] = {
    **dict.fromkeys(fields.TEXTS, _text),
    "toolRequest": _call,
    "frontendToolRequest": _call,
    "toolResponse": _result,
    "image": _image,
    "redactedThinking": _redacted,
    "reasoning": _old_reasoning,
}
