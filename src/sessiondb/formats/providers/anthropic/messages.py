"""Messages for the Messages API: those that came from it as they were.

Turns alternate: what follows in the same role is one message, as the API would join it.
Results come first in the turn after their calls. Thinking of others is left out, as the
API refuses any without its own signature.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sessiondb.dataclass import replace
from sessiondb.formats.kit.fields import as_object, text
from sessiondb.formats.providers.anthropic.blocks import content_of
from sessiondb.formats.providers.conversation import (
    ANTHROPIC,
    Answered,
    Said,
    SentFile,
    call_id_of,
    conversation_of,
    is_served,
    object_input,
    texts_of,
    with_results_next,
)
from sessiondb.formats.providers.rest import BLOCK, FILE_KEYS, rest_of
from sessiondb.model import Message, Part

Record = dict[str, Any]
#: Characters that the API refuses in the name of a tool and in the id of a call.
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 128
#: The images that it takes.
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def request_of(
    path: Sequence[Message], system: Iterable[str], summary: str | None
) -> dict[str, Any]:
    """Return the ``system`` and ``messages`` of a request.

    *system* are texts that no message of *path* has, *summary* that of what was cut.
    """
    system_blocks = [_text_block(item) for item in system]
    turns: list[Record] = []
    if summary:
        _add_turn(turns, "user", summary)
    for entry in with_results_next(conversation_of(path)):
        if isinstance(entry, Answered):
            _add_turn(turns, "user", [_result_block(entry)])
        elif entry.role == "system" and ANTHROPIC not in entry.message.data:
            system_blocks += _system_blocks(entry)
        else:
            _add_turn(turns, entry.role, _content_of_said(entry))

    request: dict[str, Any] = {"messages": turns}
    if system_blocks:
        request["system"] = system_blocks
    return request


def _add_turn(turns: list[Record], role: str, content: str | list[Record]) -> None:
    """Add a content to the last turn, if that has the same role, or as the next one."""
    if not content:
        return
    if not turns or turns[-1]["role"] != role:
        turns.append({"role": role, "content": content})
        return
    turns[-1]["content"] = [*_blocks(turns[-1]["content"]), *_blocks(content)]


def _blocks(content: str | list[Record]) -> list[Record]:
    return [_text_block(content)] if isinstance(content, str) else content


def _text_block(content: str) -> Record:
    return {"type": "text", "text": content}


def _system_blocks(statement: Said) -> list[Record]:
    blocks: list[Record] = []
    for part in statement.parts:
        if rest_of(part, ANTHROPIC) is not None:
            blocks += _blocks(content_of([_as_block(part)]))
        else:
            blocks += [_text_block(item) for item in texts_of([part])]
    return blocks


def _content_of_said(statement: Said) -> str | list[Record]:
    are_blocks = [rest_of(part, ANTHROPIC) is not None for part in statement.parts]
    if all(are_blocks):
        return content_of([_as_block(part) for part in statement.parts])

    blocks: list[Record] = []
    for part, is_own in zip(statement.parts, are_blocks, strict=True):
        if is_own:
            blocks += _blocks(content_of([_as_block(part)]))
        else:
            blocks += _blocks_of_part(statement.role, part)
    return blocks


def _as_block(part: Part) -> Part:
    """Return a part with the rest of its block as ``data``, for `content_of`."""
    file = {key: part.data[key] for key in FILE_KEYS if key in part.data}
    block = as_object(as_object(rest_of(part, ANTHROPIC)).get(BLOCK))
    return replace(part, data={**file, **block})


# -- of any other origin ---------------------------------------------------------


def _blocks_of_part(role: str, part: Part) -> list[Record]:
    """Return a part as a block; nothing for one that cannot be sent."""
    match part.type:
        case "reasoning" if role == "assistant":
            return _thinking_blocks(part)
        case "tool" if role == "assistant":
            if is_served(part):
                return []
            return [
                {
                    "type": "tool_use",
                    "id": _accepted_name(call_id_of(part)),
                    "name": _accepted_name(part.tool or ""),
                    "input": object_input(part),
                }
            ]
        case "file":
            # Only a prompt can have a file.
            file = SentFile(part)
            is_prompt = role != "assistant"
            return [_file_block(file) if is_prompt else _text_block(file.description)]
        case _:
            return [_text_block(item) for item in texts_of([part])]


def _thinking_blocks(part: Part) -> list[Record]:
    """Return thinking that is signed, as Claude Code stores it."""
    redacted, signature = part.data.get("redacted"), part.data.get("signature")
    if type(redacted) is dict:
        return [dict(redacted)]
    if not text(signature):
        return []
    thinking = part.text or ""
    return [{"type": "thinking", "thinking": thinking, "signature": signature}]


def _accepted_name(name: str) -> str:
    return _REFUSED.sub("_", name)[:_NAME_LENGTH]


def _file_block(file: SentFile) -> Record:
    kind = "image" if file.is_image else "document"
    if file.content is not None and file.mime in (*_IMAGES, "application/pdf"):
        source = {"type": "base64", "media_type": file.mime, "data": file.content}
    elif file.content is not None and file.mime.startswith("text/"):
        shown = base64.b64decode(file.content).decode(errors="replace")
        source = {"type": "text", "media_type": "text/plain", "data": shown}
    elif file.content is None and file.url is not None:
        source = {"type": "url", "url": file.url}
    else:
        return _text_block(file.description)

    block: Record = {"type": kind, "source": source}
    if kind == "document" and file.name:
        block["title"] = file.name
    return block


def _result_block(answered: Answered) -> Record:
    record = answered.record
    if record is not None and rest_of(record, ANTHROPIC) is not None:
        content = content_of([_as_block(part) for part in (record, *answered.more)])
        return _blocks(content)[0]

    block: Record = {
        "type": "tool_result",
        "tool_use_id": _accepted_name(answered.call_id),
    }
    texts = [_text_block(answered.text)] if answered.text else []
    more = [block for part in answered.more for block in _blocks_of_part("user", part)]
    if more:
        block["content"] = [*texts, *more]
    elif answered.text:
        block["content"] = answered.text
    if answered.is_error:
        block["is_error"] = True
    return block
