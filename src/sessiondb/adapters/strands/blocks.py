"""Blocks of content as parts, and parts as the same blocks again.

A part has in its columns what people read and search, and in its data what is left of
the block. A block of a type that has no part of its own, or with a value that a column
would change, is stored verbatim.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sessiondb.adapters.strands.keys import SOURCE
from sessiondb.model import Part, PartDraft
from sessiondb.model.nones import without_none

#: Keys of what a part has under ``strands`` in its data: the complete block; a media
#: block without its bytes; the keys of a block, and those inside of a call, a result or
#: a thought, that no column has.
VERBATIM, MEDIA, BESIDE, INSIDE = "verbatim", "media", "beside", "inside"

_MIMES = {
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_MEDIA_KINDS = ("image", "document", "video", "audio")


def part_of_block(block: Mapping[str, Any]) -> PartDraft:
    """Return a block of content as a part; any block is taken."""
    match block:
        case {"text": str(words), **further}:
            return PartDraft(
                "text", words, data={SOURCE: {BESIDE: further}} if further else {}
            )
        case {"toolUse": dict(call)} if len(block) == 1:
            return _part_of_call(block, call)
        case {"toolResult": dict(result)} if len(block) == 1:
            return _part_of_result(block, result)
        case {"reasoningContent": dict(thought)} if len(block) == 1:
            return _part_of_thought(block, thought)
        case {"citationsContent": {"content": list(items)}}:
            return PartDraft(
                "text", readable_content(items), data={SOURCE: {VERBATIM: block}}
            )
        case {"guardContent": {"text": {"text": str(words)}}}:
            return PartDraft("text", words, data={SOURCE: {VERBATIM: block}})
        case {"cachePoint": _}:
            return PartDraft("cachePoint", data={SOURCE: {VERBATIM: block}})
    kind = media_kind(block)
    if kind is not None:
        return _part_of_media(block, kind)
    return PartDraft("block", data={SOURCE: {VERBATIM: block}})


def block_of_part(part: Part) -> Any:
    """Return the block that a part was made of."""
    remainder = part.data.get("strands", {})
    if VERBATIM in remainder:
        return remainder[VERBATIM]
    match part.type:
        case "text":
            return {"text": part.text, **remainder.get(BESIDE, {})}
        case "tool":
            call = {"toolUseId": part.call_id, "name": part.tool, "input": part.input}
            return {"toolUse": {**call, **remainder.get(INSIDE, {})}}
        case "tool-result":
            return {"toolResult": _result_of_part(part, remainder)}
        case "reasoning":
            words = {"text": part.text, **remainder.get(INSIDE, {})}
            if "signature" in part.data:
                words["signature"] = part.data["signature"]
            return {"reasoningContent": {"reasoningText": words}}
        case _:
            return _media_of_part(part, remainder)


# -- calls and results -------------------------------------------------------------


def _part_of_call(block: Mapping[str, Any], call: Mapping[str, Any]) -> PartDraft:
    match call:
        case {"toolUseId": str(call_id), "name": str(name), "input": value, **further}:
            if call_id and name and _is_plain(call_id + name):
                return PartDraft(
                    "tool",
                    tool=name,
                    call_id=call_id,
                    status="pending",
                    input=value,
                    data={SOURCE: {INSIDE: further}} if further else {},
                )
    return PartDraft("block", data={SOURCE: {VERBATIM: block}})


def _part_of_result(block: Mapping[str, Any], result: Mapping[str, Any]) -> PartDraft:
    call_id, content = result.get("toolUseId"), result.get("content")
    has_place = isinstance(call_id, str) and call_id and _is_plain(call_id)
    if not has_place or not isinstance(content, list):
        return PartDraft("block", data={SOURCE: {VERBATIM: block}})

    status = result.get("status")
    inside = {
        key: value
        for key, value in result.items()
        if key not in ("toolUseId", "content", "status")
    }
    remainder: dict[str, Any] = {INSIDE: inside} if inside else {}
    if status not in ("success", "error"):
        remainder["status"] = [status] if "status" in result else []
    text = content[0].get("text") if _is_one_text(content) else None
    if text is None:
        text = readable_content(content)
        remainder["content"] = content
    return PartDraft(
        "tool-result",
        text,
        call_id=call_id,
        status="error" if status == "error" else None,
        data={SOURCE: remainder} if remainder else {},
    )


def _result_of_part(part: Part, remainder: Mapping[str, Any]) -> dict[str, Any]:
    content = remainder.get("content", [{"text": part.text}])
    result = {
        "toolUseId": part.call_id,
        "content": content,
        **remainder.get(INSIDE, {}),
    }
    if "status" not in remainder:
        result["status"] = "error" if part.status == "error" else "success"
    elif remainder["status"]:
        (result["status"],) = remainder["status"]
    return result


def _is_one_text(content: list[Any]) -> bool:
    return (
        len(content) == 1
        and isinstance(content[0], dict)
        and len(content[0]) == 1
        and isinstance(content[0].get("text"), str)
    )


def readable_content(items: list[Any]) -> str | None:
    """Return the text of a result or of citations; None for one without any."""
    texts: list[str] = []
    for item in items:
        match item:
            case {"text": str(words)}:
                texts.append(words)
            case {"json": value}:
                texts.append(json.dumps(value, ensure_ascii=False, default=repr))
            case dict() if (kind := media_kind(item)) is not None:
                texts.append(f"[{kind}]")
    return "\n".join(texts) if texts else None


def _is_plain(text: str) -> bool:
    """Return whether a column has a text as it is, without NUL and lone surrogates."""
    return text.isprintable()


# -- reasoning and media -----------------------------------------------------------


def _part_of_thought(block: Mapping[str, Any], thought: Mapping[str, Any]) -> PartDraft:
    match thought:
        case {"reasoningText": {"text": str(words), **further}} if len(thought) == 1:
            data: dict[str, Any] = {}
            if isinstance(further.get("signature"), str):
                # Where a request to Anthropic has it from.
                data["signature"] = further.pop("signature")
            if further:
                data[SOURCE] = {INSIDE: further}
            return PartDraft("reasoning", words, data=data)
    return PartDraft("reasoning", data={SOURCE: {VERBATIM: block}})


def media_kind(block: Mapping[str, Any]) -> str | None:
    """Return which kind of media a block is; None for any other block."""
    for kind in _MEDIA_KINDS:
        if isinstance(block.get(kind), dict):
            return kind
    return None


def _part_of_media(block: Mapping[str, Any], kind: str) -> PartDraft:
    """Return a file; its bytes are stored once, however often they are sent."""
    media = block[kind]
    name, suffix = media.get("name"), str(media.get("format"))
    mime = _MIMES.get(suffix, "") if kind == "document" else f"{kind}/{suffix}"
    source = media.get("source")
    facts: dict[str, Any] = {
        "mime": mime or "application/octet-stream",
        "filename": name if isinstance(name, str) else None,
    }
    stored: Mapping[str, Any] = block
    match source:
        case {"bytes": bytes(content), **further}:
            facts["content"] = content
            stored = {**block, kind: {**media, "source": further}}
        case {"location": {"uri": str(url)}} | {"url": str(url)}:
            facts["url"] = url
    return PartDraft("file", data={**without_none(facts), SOURCE: {MEDIA: stored}})


def _media_of_part(part: Part, remainder: Mapping[str, Any]) -> Any:
    block = remainder[MEDIA]
    kind = media_kind(block)
    if kind is None or "content" not in part.data:
        return block
    source = {**block[kind]["source"], "bytes": part.data["content"]}
    return {**block, kind: {**block[kind], "source": source}}
