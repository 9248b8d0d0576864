"""Messages that were records of pi, as the same records again; by `fields`, too.

What is left of a record in ``data`` is laid over what its columns and parts say, so a
value that no column could hold is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sessiondb.formats.content import embedded_text
from sessiondb.formats.kit.blocks import block_of, text_block
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    is_object,
    overlay,
    put,
    without,
    without_none,
)
from sessiondb.formats.pi import fields
from sessiondb.formats.pi.tree import MADE
from sessiondb.formats.pi.usage import put_tokens
from sessiondb.model import Message, Part

Record = dict[str, Any]
_FINISH = {here: there for there, here in fields.FINISH.items()}


def record_of(message: Message, above: str | None) -> Record:
    """Return the record of *message*, which continues the one with the id *above*."""
    rest = dict(message.data)

    kept = rest.pop("first_kept_id", None)
    record: Record = {"type": _type_of(message, rest)}
    if not message.id.startswith(MADE) and "id" not in rest:
        record |= {"id": message.id, "parentId": above}
    # A compaction of version 1 names a place, and this is what was there.
    if kept is not None and "firstKeptEntryIndex" not in rest:
        record["firstKeptEntryId"] = kept

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
    named = rest.pop("type", None)
    if isinstance(named, str):
        return named
    is_shown = message.kind in ("custom", "custom_message")
    return "message" if is_shown else message.kind or "custom"


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
    record: Record = {"role": "system", **_content(said)}
    return {**record, "sections": sections} if sections else record


def _assistant(message: Message) -> Record:
    record: Record = {"role": "assistant", **_content(message.parts)}
    put(record, fields.ANSWER, message)
    put_tokens(record, message.tokens)

    if message.finish in _FINISH:
        record["stopReason"] = _FINISH[message.finish]
    if is_object(message.error) and "message" in message.error:
        record["errorMessage"] = message.error["message"]
    return record


def _result(message: Message) -> Record:
    result = next(part for part in message.parts if part.type == "tool-result")
    record: Record = {"role": "toolResult", **_content(message.parts)}
    put(record, fields.RESULT, result)
    return record


def _execution(message: Message) -> Record:
    (part,) = (item for item in message.parts if item.type == "tool")
    return without_none({**as_object(part.input), "output": part.text})


def _mentioned(message: Message) -> Record:
    files = []
    for part in message.parts:
        file = dict(part.data)
        if "filename" in file:
            file = {"path": file.pop("filename"), **file}
        if part.text is not None:
            file["content"] = part.text
        files.append(file)
    return {"files": files} if files else {}


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


def _summary(message: Message) -> Record:
    return {"summary": message.parts[0].text} if message.parts else {}


def _extension(message: Message) -> Record:
    return _content(message.parts)


def _model(message: Message) -> Record:
    record: Record = {}
    # A text with provider and model is in the data, as it was.
    if "model" not in message.data:
        put(record, fields.MODEL_CHANGE, message)
    return record


def _usage(message: Message) -> Record:
    record: Record = {}
    put(record, fields.USAGE, message)
    put_tokens(record, message.tokens)
    return record


_EVENTS: Mapping[str, Callable[[Message], Record]] = {
    "message": _message,
    **dict.fromkeys(fields.SUMMARIES, _summary),
    "custom_message": _extension,
    "model_change": _model,
    "model_usage": _usage,
}


# -- content -----------------------------------------------------------------


def _content(parts: Iterable[Part]) -> Record:
    """Return the key with the content; what was no content is in the data."""
    content = content_of(parts)
    return {} if content == [] else {"content": content}


def content_of(parts: Iterable[Part]) -> str | list[Record]:
    """Return parts as the content that they were: a text, or a list of blocks."""
    given = [part for part in parts if "added" not in part.data]
    if len(given) == 1 and given[0].data.get("plain"):
        return given[0].text or ""
    return [_block(part) for part in given if not part.data.get("absent")]


def _block(part: Part) -> Record:
    if is_object(part.data.get("block")):
        return dict(part.data["block"])

    make = _BLOCKS.get(part.type)
    if make is not None:
        return make(part)
    return {"type": part.type, **part.data}


def _text(part: Part) -> Record:
    return text_block(part, fields.OWN)


def _call(part: Part) -> Record:
    return block_of(part, "toolCall", fields.CALL)


def _image(part: Part) -> Record:
    record: Record = {"type": "image"}
    if "data" not in part.data:
        record["data"] = embedded_text(part)

    mime = part.data.get("mime")
    record |= {} if mime is None else {"mimeType": mime}
    return overlay(record, without(fields.OWN_OF_IMAGE, part.data))


_BLOCKS: Mapping[str, Callable[[Part], Record]] = {
    "text": _text,
    "tool-result": _text,
    "reasoning": _text,
    "tool": _call,
    "file": _image,
}
