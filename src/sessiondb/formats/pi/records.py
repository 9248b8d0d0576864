"""Messages that were records of pi, as the same records again; by `fields`, too.

The rest of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sessiondb.formats.content import embedded_text
from sessiondb.formats.kit.blocks import block_of, text_block
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    as_text,
    filled,
    is_object,
    overlay,
    put,
    within,
    without,
    without_none,
)
from sessiondb.formats.pi import fields
from sessiondb.formats.pi.tree import MADE
from sessiondb.formats.pi.usage import put_tokens
from sessiondb.model import Message, Part

Record = dict[str, Any]
_FINISH: Mapping[str | None, str] = {
    here: there for there, here in fields.FINISH.items()
}
#: Events of these kinds were messages, unless they have a type in their data.
_UNNAMED: Mapping[str | None, str] = {
    "custom": "message",
    "custom_message": "message",
}


def record_of(message: Message, above: str | None) -> Record:
    """Return the record of *message*, which continues the one with the id *above*."""
    rest = without(fields.MARKS, message.data)

    record: Record = {"type": _type_of(message, rest)}
    if record["type"] == "compaction":
        # The reader found it: the record names it in its own way, or not at all.
        rest.pop("first_kept_id", None)
    if not message.id.startswith(MADE) and "id" not in rest:
        record |= {"id": message.id, "parentId": above}

    there, here = fields.RENAMED.get(record["type"], ("", ""))
    if here in rest:
        rest[there] = rest.pop(here)

    make = _EVENTS.get(record["type"], _nothing)
    record |= make(message)
    return overlay(record, rest)


def _nothing(_: Message) -> Record:
    return {}


def _type_of(message: Message, rest: Record) -> str:
    if message.role != "event":
        return "message"
    named = as_string(rest.pop("type", None))
    return named or _UNNAMED.get(message.kind, message.kind or "custom")


# -- messages ----------------------------------------------------------------


def _message(message: Message) -> Record:
    if message.kind == "message":
        # It is not one of pi's, and was kept in the data.
        return {}

    said = as_object(message.data.get("message"))
    role = as_text(said.get("role")) if message.role == "event" else message.role
    make = _MESSAGES.get(role, _shown)
    return {"message": make(message)}


def _user(message: Message) -> Record:
    return {"role": "user", **_content(message.parts)}


def _system(message: Message) -> Record:
    sections = {
        part.data["section"]: part.text
        for part in message.parts
        if "section" in part.data
    }
    said = [part for part in message.parts if "section" not in part.data]
    return {"role": "system", **_content(said), **filled({"sections": sections})}


def _assistant(message: Message) -> Record:
    record: Record = {"role": "assistant", **_content(message.parts)}
    put(record, fields.ANSWER, message)
    put_tokens(record, message.tokens)

    ending = {
        "stopReason": _FINISH.get(message.finish),
        "errorMessage": within(message.error, "message"),
    }
    return record | without_none(ending)


def _result(message: Message) -> Record:
    result = next(part for part in message.parts if part.type == "tool-result")
    record: Record = {"role": "toolResult", **_content(message.parts)}
    put(record, fields.RESULT, result)
    return _with_cost(record, message)


def _execution(message: Message) -> Record:
    (part,) = (item for item in message.parts if item.type == "tool")
    return without_none({**as_object(part.input), "output": part.text})


def _mentioned(message: Message) -> Record:
    files = (part for part in message.parts if "added" not in part.data)
    return filled({"files": [*map(_file, files)]})


def _file(part: Part) -> Record:
    known = {"path": part.data.get("filename"), "content": part.text}
    return without_none(known) | without(("filename",), part.data)


def _shown(message: Message) -> Record:
    said = as_object(message.data.get("message"))
    if said.get("role") in ("branchSummary", "compactionSummary"):
        return _summary(message)
    return _content(message.parts)


_MESSAGES: Mapping[Any, Callable[[Message], Record]] = {
    "user": _user,
    "system": _system,
    "assistant": _assistant,
    "tool": _result,
    "fileMention": _mentioned,
    **dict.fromkeys(fields.EXECUTIONS, _execution),
}


# -- events ------------------------------------------------------------------


def _with_cost(record: Record, message: Message) -> Record:
    put(record, fields.PAID, message)
    put_tokens(record, message.tokens)
    return record


def _summary(message: Message) -> Record:
    return _with_cost(filled({"summary": message.text}), message)


def _extension(message: Message) -> Record:
    return _content(message.parts)


def _edit(message: Message) -> Record:
    return filled({"replacement": _content(message.parts)})


def _model(message: Message) -> Record:
    record: Record = {}
    # A text with provider and model is in the data, as it was.
    if "model" not in message.data:
        put(record, fields.MODEL_CHANGE, message)
    return record


def _usage(message: Message) -> Record:
    record: Record = {}
    put(record, fields.USAGE, message)
    return _with_cost(record, message)


_EVENTS: Mapping[str, Callable[[Message], Record]] = {
    "message": _message,
    **dict.fromkeys(fields.SUMMARIES, _summary),
    "custom_message": _extension,
    "context_edit": _edit,
    "model_change": _model,
    **dict.fromkeys(fields.USAGES, _usage),
}


# -- content -----------------------------------------------------------------


def _content(parts: Iterable[Part]) -> Record:
    """Return the key with the content; one of another shape is in the data."""
    content = _content_of(parts)
    return {} if content == [] else {"content": content}


def _content_of(parts: Iterable[Part]) -> str | list[Record]:
    """Return parts as the content that they were: a text, or a list of blocks."""
    given = [part for part in parts if "added" not in part.data]
    if len(given) == 1 and given[0].data.get("plain"):
        return given[0].text or ""
    return [block(part) for part in given if not part.data.get("absent")]


def block(part: Part) -> Record:
    """Return a part as a block of a content."""
    if is_object(part.data.get("block")):
        return dict(part.data["block"])

    return _BLOCKS.get(part.type, _other)(part)


def _other(part: Part) -> Record:
    return {"type": part.type, **part.data}


def _text(part: Part) -> Record:
    return text_block(part, fields.OWN)


def _call(part: Part) -> Record:
    return block_of(part, "toolCall", fields.CALL)


def _image(part: Part) -> Record:
    record: Record = {"type": "image"}
    if "data" not in part.data:
        record["data"] = embedded_text(part)

    record |= without_none({"mimeType": part.data.get("mime")})
    return overlay(record, without(fields.OWN_OF_IMAGE, part.data))


_BLOCKS: Mapping[str, Callable[[Part], Record]] = {
    "text": _text,
    "tool-result": _text,
    "reasoning": _text,
    "tool": _call,
    "file": _image,
}
