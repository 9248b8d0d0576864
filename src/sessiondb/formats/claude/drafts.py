"""Lines of Claude Code to drafts: known fields become columns, the rest is ``data``.

These functions take their records apart, so they must not be used afterwards. A line is
one message, but those of an answer are one together: the rest of its further lines is
in ``data`` under ``other_lines``, each with the index of its first part and with the
number of lines since the first one, so that all are written back in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.tree import Place, calls_answered
from sessiondb.formats.content import embedded
from sessiondb.formats.kit.blocks import is_block, synthetic, text_part
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    clean_name,
    cost,
    filled,
    fitting,
    integer,
    is_object,
    take,
    text,
    time,
    within,
    without,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import MessageDraft, PartDraft, Tokens

Record = dict[str, Any]
Parts = list[PartDraft]
#: The columns of a message.
Columns = dict[str, Any]

#: Keys of ``data`` that parts here have and blocks do not.
OWN = frozenset(
    "plain synthetic command redacted listed added in_result mime content url "
    "filename".split()
)
#: Keys of ``data`` by which `records` recognises parts of any type.
_MARKS = frozenset({"plain", "added", "in_result"})
#: Types of parts that blocks become; a block that already has one is kept apart.
_HERE = frozenset({"reasoning", "tool", "tool-result", "file", "custom"})


class Numbered(NamedTuple):
    """A line of a message, and the number of records since its first line."""

    after: int
    record: Record


def message_draft(lines: Sequence[Numbered], place: Place) -> MessageDraft:
    """Return the message that lines are: several of an answer, else one."""
    record = lines[0].record
    kind = record["type"]
    # A key of the line would be mistaken for ours: it is kept as an event.
    is_said = is_object(record.get("message")) and "other_lines" not in record
    makers = _MAKERS if is_said else _WITHOUT_MESSAGE
    found = makers.get(kind, _event)(record, lines[1:])
    found["time_created"] = time_of_text(record.get("timestamp"))

    # `records` knows these from the message itself.
    if kind == fields.TYPES.get(found["role"], found.get("kind")):
        del record["type"]
    if record.get("uuid") == place.name:
        del record["uuid"]
    if place.is_of_branch:
        found["kind"] = "branch_summary"
    elif found.get("kind") == "compaction":
        record |= filled({"first_kept_id": place.kept})

    return MessageDraft(id=place.name, data=record, **found)


# -- messages ------------------------------------------------------------------


def _user(record: Record, _: Sequence[Numbered]) -> Columns:
    answered = calls_answered(record)
    parts = _content(record["message"])
    if record.get("isCompactSummary") is True:
        spent = {
            "cost": fitting(record.get(fields.COST), cost),
            "tokens": fields.tokens_of(as_object(record.get("usage"))),
        }
        return {"role": "event", "kind": "compaction", "parts": parts, **spent}

    if fields.is_added(record):
        parts = tuple(map(_unless_typed, parts))
    if not answered:
        return {"role": "user", "parts": parts}

    noted = record.get("toolUseResult")
    settled = (
        replace(part, **_ending(part, noted)) if part.type == "tool-result" else part
        for part in parts
    )
    return {"role": "tool", "parts": tuple(settled)}


def _ending(result: PartDraft, noted: Any) -> Columns:
    """Return how a call ended by its result, and by what is *noted* beside that."""
    has_failed = result.data.get("is_error") is True
    is_refused = str(result.text).startswith(fields.DENIED) or noted == fields.REJECTED
    if has_failed and is_refused:
        outcome = "denied"
    elif within(noted, "interrupted") is True:
        outcome = "interrupted"
    elif has_failed:
        outcome = "failed"
    else:
        return {}
    return {"outcome": outcome, "status": "error"}


def _assistant(record: Record, further: Sequence[Numbered]) -> Columns:
    lines = [record, *(line.record for line in further)]
    found = {"role": "assistant", **_outcome(lines)} | take(record, fields.ANSWER)
    times = map(time_of_text, _each(lines, "timestamp"))
    found["time_completed"] = max(filter(time, times), default=None)

    parts = _timed(record)
    others = []

    for after, line in further:
        others.append({"after": after, "first": len(parts), "record": line})
        parts += _timed(line)

    if others:
        record["other_lines"] = others

    return found | {"parts": tuple(parts)}


def _each(records: list[Record], *path: str) -> list[Any]:
    """Return the value at *path* of each record."""
    return [within(record, *path) for record in records]


def _timed(line: Record) -> Parts:
    """Take the parts of a line of an answer, with its time."""
    made = time_of_text(line.get("timestamp"))
    parts = _content(as_object(line.get("message")))
    return [replace(part, time_created=made) for part in parts]


def _outcome(lines: list[Record]) -> Columns:
    """Return usage, cost, end and error of an answer: each line repeats them so far."""
    reasons = map(as_text, reversed(_each(lines, "message", "stop_reason")))
    reason = next(filter(None, reasons), None)
    found: Columns = {
        "cost": max(filter(cost, _each(lines, fields.COST)), default=None),
        "finish": fields.FINISH.get(reason, "other") if reason else None,
    }
    # An answer of the program itself states zeros, which no provider counted.
    if within(lines[0], "message", "model") != fields.SYNTHETIC:
        found["tokens"] = _tokens(lines)

    if any(value is True for value in _each(lines, "isAbortedMidStream")):
        found["finish"] = "cancelled"
    if lines[0].get("isApiErrorMessage") is True:
        found |= {"finish": "error", "error": {"message": _text_of(lines[0])}}

    return found


def _tokens(lines: list[Record]) -> Tokens | None:
    """Return the last counts of those that say the most."""
    usages = map(as_object, reversed(_each(lines, "message", "usage")))
    known = filter(fields.tokens_of, usages)
    return fields.tokens_of(max(known, key=_said_so_far, default={}))


def _text_of(line: Record) -> str:
    texts = map(as_text, _each(fields.blocks_of(line), "text"))
    return "\n".join(filter(None, texts))


def _said_so_far(usage: Mapping[str, Any]) -> int:
    stated: int = fitting(usage.get("output_tokens"), integer, 0)
    return stated


# -- events ----------------------------------------------------------------------


def _event(record: Record, _: Sequence[Numbered]) -> Columns:
    kind = record["type"]
    return {"role": "event", "kind": fields.KINDS.get(kind, kind)}


def _system(record: Record, _: Sequence[Numbered]) -> Columns:
    parts = [PartDraft("text", said) for said in take(record, fields.SHOWN).values()]
    kind = fitting(record.get("subtype"), fields.is_subtype, "system")
    return {"role": "event", "kind": kind, "parts": tuple(parts)}


def _attachment(record: Record, _: Sequence[Numbered]) -> Columns:
    """Return an addition to a prompt; the user typed some while the model worked."""
    held = as_object(record.get("attachment"))
    said = _content(held, "prompt") if held.get("type") == "queued_command" else ()
    if said:
        is_prompt = held.get("commandMode", "prompt") == "prompt"
        is_typed = is_prompt and not fields.is_added(held)
        parts = said if is_typed else tuple(map(_unless_typed, said))
        return {"role": "user", "parts": parts}

    shown = _rendered(record)
    kind = "custom_message" if shown else "attachment"

    # Later ones may have only what changed, which is added to the first one.
    if held.get("type") == "instructions" and held.get("changed") is not True:
        kind = "context"
    return {"role": "event", "kind": kind, "parts": (*shown, *_sources(held))}


def _rendered(record: Record) -> Parts:
    """Take the texts that a model is sent for an attachment, if all are texts."""
    shown = as_list(record.get("rendered"))
    if not all(map(_is_rendered, shown)):
        return []
    return [synthetic(PartDraft("text", item.pop("content"))) for item in shown]


def _is_rendered(item: Any) -> bool:
    return text(within(item, "content"))


def _sources(held: Record) -> Iterator[PartDraft]:
    """Take the files that a model was given with an attachment."""
    for place, source in enumerate(fields.sources_of(held)):
        if is_object(source):
            known = take(source, fields.SOURCE)
            content = known.pop("text", None)
            title = fitting(source.get("name"), clean_name, known.get("path"))
            given = {"kind": held["type"], **known}
            data = {"place": place}
            yield PartDraft("source", content, title=title, input=given, data=data)


_Makers = Mapping[str, Callable[[Record, Sequence[Numbered]], Columns]]
_WITHOUT_MESSAGE: _Makers = {"system": _system, "attachment": _attachment}
_MAKERS: _Makers = {**_WITHOUT_MESSAGE, "user": _user, "assistant": _assistant}


# -- content -----------------------------------------------------------------


def _content(said: Record, key: str = "content") -> tuple[PartDraft, ...]:
    """Take the content of a message, a text or a list of blocks."""
    content = said.get(key)
    if text(content):
        del said[key]
        return (_marked(PartDraft("text", content, data={"plain": True})),)

    blocks = as_list(content)
    if not blocks or not all(map(is_block, blocks)):
        return ()

    del said[key]
    return tuple(chain.from_iterable(map(_parts, blocks)))


def _parts(block: Record) -> Parts:
    make, reserved = _BLOCKS.get(block["type"], (_other, _MARKS))
    # A key of the block would be mistaken for ours when it is written again.
    return make(block) if reserved.isdisjoint(block) else _verbatim(block)


def _other(block: Record) -> Parts:
    return [PartDraft(block.pop("type"), data=block)]


def _verbatim(block: Record) -> Parts:
    return [PartDraft("custom", data={"block": block})]


def _text(block: Record) -> Parts:
    return [_marked(text_part(block))]


def _thinking(block: Record) -> Parts:
    return [text_part(block)]


def _marked(part: PartDraft) -> PartDraft:
    """Return a text part as the user typed it, else marked as added by the program."""
    command = fields.COMMAND.fullmatch(str(part.text))
    if command is not None:
        typed = " ".join(filter(None, command.groups()))
        return replace(part, text=typed, data={**part.data, "command": part.text})

    return synthetic(part) if fields.is_injected(str(part.text)) else part


def _unless_typed(part: PartDraft) -> PartDraft:
    return synthetic(part) if part.type == "text" else part


def _redacted(block: Record) -> Parts:
    return [PartDraft("reasoning", data={"redacted": block})]


def _call(block: Record) -> Parts:
    kind = block["type"]
    # The database refuses a call without the name of its tool.
    if not clean_name(block.get("name")):
        return _verbatim(block)

    if kind == "tool_use":
        del block["type"]
    status = "pending" if kind == "tool_use" else "completed"
    return [PartDraft("tool", **take(block, fields.CALL), status=status, data=block)]


def _file(block: Record) -> Parts:
    """Return an image or a document; content that is repeated is stored once."""
    source = as_object(block.get("source"))
    known = take(dict(block), fields.FILE) | take(dict(source), fields.FILE_SOURCE)

    if _is_inline(source):
        known |= embedded(source.get("media_type"), source.pop("data"))
    return [PartDraft("file", data={**known, **block})]


def _result(block: Record) -> Parts:
    """Return a result: its text, and the images in it as parts that follow."""
    del block["type"]
    known = take(block, fields.RESULT)
    content = block.get("content")
    if text(content):
        del block["content"]
        return [PartDraft("tool-result", content, **known, data=block)]

    items = list(filter(is_object, as_list(content)))
    texts = (item.get("text") for item in items if item.get("type") == "text")
    said = list(filter(text, texts))
    shown = "\n".join(said) if said else None
    if said and content == [{"type": "text", "text": shown}]:
        del block["content"]
        block["listed"] = True
    result = PartDraft("tool-result", shown, **known, data=block)
    return [result, *map(_image, filter(_is_embedded, items))]


def _is_embedded(item: Record) -> bool:
    return item.get("type") == "image" and _is_inline(as_object(item.get("source")))


def _is_inline(source: Record) -> bool:
    return source.get("type") == "base64" and text(source.get("data"))


def _image(item: Record) -> PartDraft:
    """Return an image in a result, which loses its content to it."""
    (file,) = _file(item)
    held = without(file.data.keys() - OWN, file.data)
    return PartDraft("file", data={**held, "in_result": True})


#: The parts of blocks by their type, and the keys that no such block may have.
_BLOCKS: Mapping[str, tuple[Callable[[Record], Parts], frozenset[str]]] = {
    "text": (_text, OWN),
    "thinking": (_thinking, OWN),
    "redacted_thinking": (_redacted, OWN),
    "image": (_file, OWN),
    "document": (_file, OWN),
    "tool_result": (_result, OWN - {"content"}),
    **dict.fromkeys(fields.CALLS, (_call, OWN)),
    **dict.fromkeys(_HERE, (_verbatim, OWN)),
}
