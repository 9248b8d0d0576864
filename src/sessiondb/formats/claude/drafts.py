"""Lines of Claude Code to drafts: known fields become columns, the rest is ``data``.

These functions take their records apart, so they must not be used afterwards. A line is
one message, but those of an answer are one together: what its further lines have beside
their blocks is in ``data`` under ``other_lines``, each with the index of its first part
and with the number of lines since the first one, so that all are written back in their
places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.tree import is_result
from sessiondb.formats.content import embedded
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    cost,
    is_object,
    take,
    text,
    within,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import MessageDraft, PartDraft, Tokens

Record = dict[str, Any]
Parts = list[PartDraft]
#: The columns of a message.
Columns = dict[str, Any]

#: Keys of ``data`` that parts here have and blocks do not.
OWN = frozenset(
    "plain synthetic redacted listed added in_result mime content url filename".split()
)
#: Types of parts that blocks become; a block that already has one is kept apart.
_HERE = frozenset({"reasoning", "tool", "tool-result", "file", "custom"})


class Further(NamedTuple):
    """A further line of an answer, and the number of lines since its first one."""

    after: int
    record: Record


def message_draft(
    record: Record, message_id: str, further: Sequence[Further] = ()
) -> MessageDraft:
    """Return the message that a line is, with the *further* lines of an answer.

    Raises `OddRecordError` for one that cannot be stored.
    """
    kind = record["type"]
    said = is_object(record.get("message")) and "other_lines" not in record
    make = _MAKERS.get(kind, _event) if said or kind not in _SAID else _event
    found = make(record, further)

    written = time_of_text(record.get("timestamp"))
    found.setdefault("time_created", written)
    is_own = found["role"] == "event" and found["kind"] == kind
    if is_own or (found["role"], kind) in _SAID_AS:
        del record["type"]
    if record.get("uuid") == message_id:
        del record["uuid"]

    check_storable(record)
    return MessageDraft(id=message_id, data=record, **found)


# -- messages ------------------------------------------------------------------


def _user(record: Record, _: Sequence[Further]) -> Columns:
    said = record["message"]
    if record.get("isCompactSummary") is True:
        return {"role": "event", "kind": "compaction", "parts": _content(said)}

    role = "tool" if is_result(record) else "user"
    parts = _content(said)
    if record.get("isMeta") is True:
        parts = tuple(map(_synthetic, parts))
    if role == "tool":
        parts = tuple(_settled(parts, record))

    return {"role": role, "parts": parts}


def _settled(parts: Iterable[PartDraft], record: Record) -> Iterator[PartDraft]:
    """Yield the parts of a line with results, which say how their calls ended."""
    stopped = within(record, "toolUseResult", "interrupted") is True

    for part in parts:
        if part.type != "tool-result":
            yield part
            continue
        failed = part.data.get("is_error") is True
        outcome = "interrupted" if stopped else "failed" if failed else None
        if failed and (part.text or "").startswith(fields.DENIED):
            outcome = "denied"
        yield replace(part, outcome=outcome, status="error" if outcome else None)


def _assistant(record: Record, further: Sequence[Further]) -> Columns:
    lines = [record, *(line.record for line in further)]
    found = {"role": "assistant", **_outcome(lines)} | take(record, fields.ANSWER)
    times = [time_of_text(line.get("timestamp")) for line in lines]

    parts: Parts = []
    others = []

    for place, line in enumerate(lines):
        if place:
            after = further[place - 1].after
            others.append({"after": after, "first": len(parts), "record": line})
        said = as_object(line.get("message"))
        parts += (replace(p, time_created=times[place]) for p in _content(said))

    if others:
        record["other_lines"] = others

    known = [time for time in times if time is not None]
    return found | {"parts": tuple(parts), "time_completed": max(known, default=None)}


def _outcome(lines: list[Record]) -> Columns:
    """Return usage, cost, end and error of an answer: each line repeats them so far."""
    costs = [line["costUSD"] for line in lines if cost(line.get("costUSD"))]
    found: Columns = {"cost": max(costs, default=None)}
    if within(lines[0], "message", "model") != fields.SYNTHETIC:
        found["tokens"] = _tokens(lines)

    reasons = [as_text(within(line, "message", "stop_reason")) for line in lines]
    reason = next(filter(None, reversed(reasons)), None)
    if reason is not None:
        found["finish"] = fields.FINISH.get(reason, "other")
    if any(line.get("isAbortedMidStream") is True for line in lines):
        found["finish"] = "cancelled"
    if lines[0].get("isApiErrorMessage") is True:
        found |= {"finish": "error", "error": {"message": _text_of(lines[0])}}

    return found


def _tokens(lines: list[Record]) -> Tokens | None:
    """Return the last counts of those that say the most."""
    usages = (as_object(within(line, "message", "usage")) for line in reversed(lines))
    known = list(filter(fields.tokens_of, usages))
    return fields.tokens_of(max(known, key=_said_so_far, default={}))


def _text_of(line: Record) -> str:
    blocks = map(as_object, as_list(within(line, "message", "content")))
    return "\n".join(filter(None, (as_text(block.get("text")) for block in blocks)))


def _said_so_far(usage: Mapping[str, Any]) -> int:
    given = usage.get("output_tokens")
    return given if type(given) is int else 0


# -- events ----------------------------------------------------------------------


def _event(record: Record, _: Sequence[Further]) -> Columns:
    kind = record["type"]
    known = fields.KINDS.get(kind)
    if known is None:
        known = "custom" if kind in fields.MEANINGS else kind
    return {"role": "event", "kind": known}


def _system(record: Record, _: Sequence[Further]) -> Columns:
    named = record.get("subtype")
    is_known = usable_id(named) and named not in fields.MEANINGS
    found = {"role": "event", "kind": named if is_known else "system"}
    if text(record.get("content")):
        found["parts"] = (PartDraft("text", record.pop("content")),)
    return found


def _attachment(record: Record, _: Sequence[Further]) -> Columns:
    """What was added to a prompt; some of it was typed while the model was working."""
    held = as_object(record.get("attachment"))
    if held.get("type") == "queued_command" and text(held.get("prompt")):
        typed = held.get("commandMode", "prompt") == "prompt"
        part = PartDraft("text", held.pop("prompt"))
        return {"role": "user", "parts": (part if typed else _synthetic(part),)}

    shown = as_list(record.get("rendered"))
    texts = [within(item, "content") for item in shown]
    if not shown or not all(map(text, texts)):
        return {"role": "event", "kind": "attachment"}
    for item in shown:
        del item["content"]
    parts = tuple(PartDraft("text", t, data={"synthetic": True}) for t in texts)
    return {"role": "event", "kind": "custom_message", "parts": parts}


_MAKERS: Mapping[str, Callable[[Record, Sequence[Further]], Columns]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
}
_SAID = frozenset({"user", "assistant"})
#: Roles with the type of a line that says no more than they do.
_SAID_AS = {("user", "user"), ("tool", "user"), ("assistant", "assistant")}


# -- content -----------------------------------------------------------------


def _content(said: Record) -> tuple[PartDraft, ...]:
    """Take the content of a message, a text or a list of blocks."""
    content = said.get("content")
    if text(content):
        del said["content"]
        return (_marked(PartDraft("text", content, data={"plain": True})),)
    if not isinstance(content, list) or not content or not all(map(_is_block, content)):
        return ()

    del said["content"]
    return tuple(part for block in content for part in _parts(block))


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _parts(block: Record) -> Parts:
    kind = block["type"]
    make = _BLOCKS.get(kind)
    is_nameless = kind in fields.CALLS and not clean_name(block.get("name"))
    own = OWN & block.keys() - ({"content"} if kind == "tool_result" else set())
    if kind in _HERE or is_nameless or (make and own):
        return [PartDraft("custom", data={"block": block})]
    if make is not None:
        return make(block)
    return [PartDraft(block.pop("type"), data=block)]


def _text(block: Record) -> Parts:
    kind, table = fields.TEXTS[block.pop("type")]
    part = PartDraft(kind, **take(block, table), data=block)
    return [_marked(part) if kind == "text" else part]


def _marked(part: PartDraft) -> PartDraft:
    """Return a text part, marked if the program added it to a prompt."""
    is_added = (part.text or "").lstrip().startswith(fields.INJECTED)
    return _synthetic(part) if is_added else part


def _synthetic(part: PartDraft) -> PartDraft:
    if part.type != "text":
        return part
    return replace(part, data={**part.data, "synthetic": True})


def _redacted(block: Record) -> Parts:
    return [PartDraft("reasoning", data={"redacted": block})]


def _call(block: Record) -> Parts:
    kind = block["type"]
    if kind == "tool_use":
        del block["type"]
    status = "pending" if kind == "tool_use" else "completed"
    return [PartDraft("tool", **take(block, fields.CALL), status=status, data=block)]


def _file(block: Record) -> Parts:
    """An image or a document; its content is stored once, wherever it is repeated."""
    source = as_object(block.get("source"))
    known: Record = {}
    if source.get("type") == "base64" and text(source.get("data")):
        known = embedded(source.get("media_type"), source.pop("data"))
    elif source.get("type") == "url" and text(source.get("url")):
        known = {"url": source["url"]}
    if clean_name(block.get("title")):
        known["filename"] = block["title"]
    return [PartDraft("file", data={**known, **block})]


def _result(block: Record) -> Parts:
    """A result: its text, and the images in it as parts that follow."""
    del block["type"]
    known = take(block, fields.RESULT)
    content = block.get("content")
    if text(content):
        del block["content"]
        return [PartDraft("tool-result", content, **known, data=block)]

    items = list(filter(is_object, as_list(content)))
    said = [item.get("text") for item in items if item.get("type") == "text"]
    shown = "\n".join(filter(text, said)) if any(map(text, said)) else None
    if shown is not None and content == [{"type": "text", "text": shown}]:
        del block["content"]
        block["listed"] = True
    result = PartDraft("tool-result", shown, **known, data=block)
    return [result, *_images(items)]


def _images(items: list[Record]) -> Iterator[PartDraft]:
    """Yield the images among the items of a result, whose content they lose."""
    for item in items:
        if item.get("type") == "image":
            (file,) = _file(item)
            held = {key: file.data[key] for key in OWN if key in file.data}
            if held and within(item, "source", "type") == "base64":
                yield PartDraft("file", data={**held, "in_result": True})


_BLOCKS: Mapping[str, Callable[[Record], Parts]] = {
    "text": _text,
    "thinking": _text,
    "redacted_thinking": _redacted,
    "image": _file,
    "document": _file,
    "tool_result": _result,
    **dict.fromkeys(fields.CALLS, _call),
}
