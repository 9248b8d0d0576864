"""Records of pi to drafts: known fields become columns, the rest is ``data``.

These functions take their record apart, so it must not be used afterwards. Every
record of a log is one message: those outside of the conversation are events, and all
of them are links of the tree, as they are for the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sessiondb.formats.content import embedded
from sessiondb.formats.kit.blocks import TEXTS, is_block, text_part
from sessiondb.formats.kit.fields import (
    Fields,
    as_list,
    as_object,
    as_string,
    as_text,
    check_storable,
    clean_name,
    is_object,
    take,
    text,
    within,
)
from sessiondb.formats.kit.json import OddRecordError, known_time, usable_id
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.pi import fields
from sessiondb.formats.pi.usage import take_tokens
from sessiondb.model import MessageDraft, PartDraft

#: How a reference to a file in the folder ``blobs`` begins.
BLOB = "blob:sha256:"
#: Types of parts that blocks become; a block that already has one is kept apart.
_HERE = frozenset({"reasoning", "tool", "tool-result", "file", "custom"})

Record = dict[str, Any]
Parts = list[PartDraft]
#: The columns of a message, besides its parts.
Columns = dict[str, Any]


def message_draft(record: Record, message_id: str, source: str) -> MessageDraft:
    """Return the message that a record is in a log of the program *source*.

    Raises `OddRecordError` for a record without a type, or one that cannot be stored.
    """
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    kind = record.pop("type")

    found = _message(record) if kind == "message" else _event(record, kind)

    # A record is written when it is over; a message also says when it began.
    written = time_of_text(record.get("timestamp"))
    begun = known_time(within(record, "message", "timestamp"))
    found["time_created"] = written if begun is None else begun
    if found["role"] == "assistant":
        found["time_completed"] = written

    if source == "oh-my-pi":
        record |= _marks(found, record)
    check_storable(record)
    return MessageDraft(id=message_id, data=record, **found)


def _marks(found: Columns, record: Record) -> Record:
    """Return the marks of a record of oh-my-pi (``session-context.ts``).

    It does not send failed answers again, and keeps to a model that was chosen,
    whatever model answers. pi and xcsh have no such rules there.
    """
    marks = {
        "unsent": found.get("finish") in fields.FAILED,
        "chosen": found.get("kind") == "model_change" and "model" in record,
    }
    return {key: True for key, applies in marks.items() if applies}


# -- messages ----------------------------------------------------------------


def _message(record: Record) -> Columns:
    said = record.get("message")
    if not is_object(said):
        return {"role": "event", "kind": "message"}

    role = as_string(said.get("role"))
    if role in fields.EXECUTIONS:
        found = _execution(said, *fields.EXECUTIONS[role])
    else:
        found = _ROLES.get(role, _shown)(said)
    if not said:
        del record["message"]
    return found


def _user(said: Record) -> Columns:
    del said["role"]
    return {"role": "user", "parts": _content(said)}


def _system(said: Record) -> Columns:
    del said["role"]
    parts = list(_content(said))

    # The prompt of pi is in named sections, and its content empty. A later message has
    # those that changed, and null for one that was removed, which stays in the data.
    given = as_object(said.get("sections"))
    removed = [name for name, value in given.items() if value is None]
    named = take(said, {"sections": {name: (name, text) for name in given}})
    parts += [
        PartDraft("text", named.get(name), data={"section": name})
        for name in (*named, *removed)
    ]
    return {"role": "system", "parts": tuple(parts)}


def _assistant(said: Record) -> Columns:
    del said["role"]

    found = {
        "role": "assistant",
        **take(said, fields.ANSWER),
        "parts": _content(said),
        "tokens": take_tokens(said),
    }

    reason = as_text(said.get("stopReason"))
    if reason in fields.FINISH:
        found["finish"] = fields.FINISH[said.pop("stopReason")]
    elif reason is not None:
        found["finish"] = "other"

    if text(said.get("errorMessage")):
        found["error"] = {"message": said.pop("errorMessage")}
    return found


def _result(said: Record) -> Columns:
    """A result: its first text is that of the call, the rest follows."""
    del said["role"]
    parts = list(_content(said))

    if not parts or parts[0].type != "text":
        parts.insert(0, PartDraft("text", data={"absent": True}))

    known = take(said, fields.RESULT)
    if said.get("isError") is True:
        known |= {"outcome": "failed", "status": "error"}
    parts[0] = replace(parts[0], type="tool-result", **known)
    return {"role": "tool", "parts": tuple(parts), **_paid(said)}


def _execution(said: Record, tool: str, argument: Fields) -> Columns:
    """A command that the user ran; a model is shown it unless it is excluded."""
    outcome = "interrupted" if said.get("cancelled") is True else None
    if outcome is None and said.get("exitCode") not in (None, 0):
        outcome = "failed"

    part = PartDraft(
        "tool",
        tool=tool,
        input=take(said, argument),
        status="error" if outcome else "completed",
        outcome=outcome,
        **take(said, fields.OUTPUT),
    )

    excluded = said.get("excludeFromContext") is True
    kind = "custom" if excluded else "custom_message"
    return {
        "role": "event",
        "kind": kind,
        "parts": (part,),
    }


def _mentioned(said: Record) -> Columns:
    """Files that a prompt names with @: their content goes to the model."""
    files = as_list(said.get("files"))
    # If one of them is not a file, the list stays as it is.
    taken = said.pop("files") if files and all(map(_is_file, files)) else []
    parts = tuple(map(_file, taken))
    return {"role": "event", "kind": "custom_message", "parts": parts}


def _is_file(value: Any) -> bool:
    return is_object(value) and "filename" not in value


def _file(file: Record) -> PartDraft:
    found = take(file, fields.FILE)
    content = found.pop("text", None)
    return PartDraft("file", content, data={**found, **file})


def _shown(said: Record) -> Columns:
    """Anything that a model is shown and that was not typed."""
    found = {"role": "event", "kind": "custom_message"}
    if said.get("role") in ("branchSummary", "compactionSummary"):
        return found | {"parts": _text_under(said, "summary")}
    return found | {"parts": _content(said)}


_ROLES: Mapping[str, Callable[[Record], Columns]] = {
    "user": _user,
    "system": _system,
    "assistant": _assistant,
    "toolResult": _result,
    "fileMention": _mentioned,
}


# -- events ------------------------------------------------------------------


def _event(record: Record, type_: str) -> Columns:
    kind = fields.KINDS.get(type_, type_)
    if type_ == "custom_message" and record.get("customType") in fields.HIDDEN:
        kind = "custom"
    if kind != type_ or kind in ("custom", "custom_message"):
        # Messages of some roles are events of these kinds, too.
        record["type"] = type_

    there, here = fields.RENAMED.get(type_, ("", ""))
    if there in record:
        record[here] = record.pop(there)

    take_more = _EVENTS.get(type_, _nothing)
    return {"role": "event", "kind": kind, **take_more(record)}


def _nothing(_: Record) -> Columns:
    return {}


def _paid(record: Record) -> Columns:
    """Take what anything but an answer cost: it counts, too (``usage-totals.ts``)."""
    return {**take(record, fields.PAID), "tokens": take_tokens(record)}


def _summary(record: Record) -> Columns:
    return {"parts": _text_under(record, "summary"), **_paid(record)}


def _extension(record: Record) -> Columns:
    return {"parts": _content(record)}


def _edit(record: Record) -> Columns:
    """Take the content that an earlier message has from here on; None omits it."""
    replacement = record.get("replacement")
    return {"parts": _content(replacement)} if is_object(replacement) else {}


def _model(record: Record) -> Columns:
    """Return provider and model; a text with both stays as it is."""
    both = as_text(record.get("model"))
    if both is None:
        return take(record, fields.MODEL_CHANGE)

    # Without a provider, the text is the name of a model.
    provider, model = ["", *both.split("/", 1)][-2:]
    known = {"provider_id": provider, "model_id": model}
    return {column: name for column, name in known.items() if clean_name(name)}


def _usage(record: Record) -> Columns:
    return {**take(record, fields.USAGE), **_paid(record)}


_EVENTS: Mapping[str, Callable[[Record], Columns]] = {
    **dict.fromkeys(fields.SUMMARIES, _summary),
    "custom_message": _extension,
    "context_edit": _edit,
    "model_change": _model,
    **dict.fromkeys(fields.USAGES, _usage),
}


def settings(header: Record) -> Iterator[MessageDraft]:
    """Yield events of the model and the level that a header of version 1 states.

    Later versions have a record of each. These events are not records of a log.
    """
    when = time_of_text(header.get("timestamp"))
    made = partial(MessageDraft, "event", data={"header": True}, time_created=when)

    model = take(dict(header), fields.MODEL_CHANGE)
    if "model_id" in model:
        yield made(id=fields.MODEL, kind="model_change", **model)
    level = as_text(header.get("thinkingLevel"))
    if level:
        stated = {"header": True, "level": level}
        yield made(id=fields.LEVEL, kind="thinking_level_change", data=stated)


# -- content -----------------------------------------------------------------


def _text_under(record: Record, key: str) -> tuple[PartDraft, ...]:
    """Take a text that is not empty."""
    if not as_string(record.get(key)):
        return ()
    return (PartDraft("text", record.pop(key)),)


def _content(record: Record) -> tuple[PartDraft, ...]:
    """Take the content of a message, a text or a list of blocks."""
    content = record.get("content")

    if text(content):
        del record["content"]
        return (PartDraft("text", content, data={"plain": True}),)
    blocks = as_list(content)
    if not blocks or not all(map(is_block, blocks)):
        return ()

    del record["content"]
    return tuple(map(_part, blocks))


def _part(block: Record) -> PartDraft:
    if not fields.OWN.isdisjoint(block):
        return _apart(block)
    return _BLOCKS.get(block["type"], _other)(block)


def _apart(block: Record, kind: str = "custom") -> PartDraft:
    """Return a part that has a block as it is."""
    return PartDraft(kind, data={"block": block})


def _call(block: Record) -> PartDraft:
    # A call here has a tool: one without a name is kept apart.
    if not clean_name(block.get("name")):
        return _apart(block)

    del block["type"]
    return PartDraft("tool", **take(block, fields.CALL), status="pending", data=block)


def _image(block: Record) -> PartDraft:
    is_named = clean_name(block.get("mimeType", "image"))
    if not ("data" in block and is_named and fields.OWN_OF_IMAGE.isdisjoint(block)):
        return _apart(block)

    del block["type"]
    data, mime = as_text(block.get("data")), block.pop("mimeType", None)
    if data is None or data.startswith(BLOB):
        return PartDraft("file", data={"mime": mime, **block})

    del block["data"]
    return PartDraft("file", data={**embedded(mime, data), **block})


def _other(block: Record) -> PartDraft:
    if block["type"] in _HERE:
        return _apart(block)
    return PartDraft(block.pop("type"), data=block)


_BLOCKS: Mapping[str, Callable[[Record], PartDraft]] = {
    **dict.fromkeys(TEXTS, text_part),
    "toolCall": _call,
    "image": _image,
    "redactedThinking": partial(_apart, kind="reasoning"),
}
