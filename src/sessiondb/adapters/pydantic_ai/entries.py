"""The exact form of an entry's message, kept in ``data`` beside what people read.

It is the JSON of Pydantic AI's own adapter, without the nulls that are defaults. A
long text and the bytes of a file are stored by themselves already, as blobs that a part
of the message names: in their place is a mark with the hash of the blob. A raw control
character never occurs in JSON, so nothing else is taken for a mark. A message that a
person replaced has no such form: it is made of its text.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from sessiondb import codec
from sessiondb.model import MessageDraft

#: A text, or the bytes of a file, of which a blob has the content.
_TEXT_MARK, _FILE_MARK = "\x02", "\x03"
_MARKS = re.compile("([\x02\x03])([0-9a-f]{64})")
#: In place of a text whose blob is gone, because a person removed what it said.
REMOVED = "[removed]"
#: The fields of each dataclass that are None if they are not stated.
_NULL_DEFAULTS: dict[type[Any], frozenset[str]] = {}

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def exact_form(message: ModelMessage, draft: MessageDraft) -> str:
    """Return the exact form of a message; *draft* is what people read of it."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    slim = without_nulls(message, dumped)
    slim["parts"] = [
        without_nulls(part, dumped_part)
        for part, dumped_part in zip(message.parts, dumped["parts"], strict=True)
    ]
    if isinstance(message, ModelResponse):
        # Every count is 0 by default.
        slim["usage"] = {name: n for name, n in dumped["usage"].items() if n}
    form = _to_json(slim)
    return _with_marks(form, draft) if len(form) >= codec.BLOB_BYTES else form


def without_nulls(value: object, dumped: dict[str, Any]) -> dict[str, Any]:
    """Return a dumped dataclass without the nulls that are defaults of its fields."""
    cls: type[Any] = type(value)
    nulls = _NULL_DEFAULTS.get(cls)
    if nulls is None:
        fields = dataclasses.fields(cls)
        nulls = frozenset([field.name for field in fields if field.default is None])
        _NULL_DEFAULTS[cls] = nulls
    return {
        name: item
        for name, item in dumped.items()
        if item is not None or name not in nulls
    }


def _with_marks(form: str, draft: MessageDraft) -> str:
    for part in draft.parts:
        content = part.data.get("content")
        if isinstance(content, bytes) and len(content) >= codec.BLOB_BYTES:
            stored = base64.urlsafe_b64encode(content).decode()
            form = form.replace(stored, _FILE_MARK + codec.digest(content))
        if part.text is None or codec.readable(part.text)[1]:
            continue
        encoded = part.text.encode()
        if len(encoded) >= codec.BLOB_BYTES:
            form = form.replace(_to_json(part.text), _TEXT_MARK + codec.digest(encoded))
    return form


def blobs_in(forms: Iterable[str]) -> set[str]:
    """Return the hashes of the blobs that exact forms name; most name none."""
    return {
        mark[2]
        for form in forms
        if _TEXT_MARK in form or _FILE_MARK in form
        for mark in _MARKS.finditer(form)
    }


def messages_of(forms: Iterable[str], blobs: Mapping[str, bytes]) -> list[ModelMessage]:
    """Return the messages of exact forms; *blobs* has the contents by their hashes."""

    def content_of(mark: re.Match[str]) -> str:
        content = blobs.get(mark[2])
        if mark[1] == _FILE_MARK:
            return base64.urlsafe_b64encode(content or b"").decode()
        return _to_json(REMOVED if content is None else content.decode())

    listed = f"[{','.join(forms)}]"
    if _TEXT_MARK in listed or _FILE_MARK in listed:
        listed = _MARKS.sub(content_of, listed)
    try:
        return ModelMessagesTypeAdapter.validate_json(listed)
    except (ValidationError, UnicodeEncodeError):
        if codec.is_unicode(listed):
            raise
        # The parser of pydantic refuses a lone surrogate, that of Python takes it.
        return ModelMessagesTypeAdapter.validate_python(json.loads(listed))


def plain_form(role: str, text: str) -> str:
    """Return the exact form of a message that a person wrote in place of another."""
    message: ModelMessage = ModelRequest(parts=[UserPromptPart(text)])
    if role == "assistant":
        message = ModelResponse(parts=[TextPart(text)])
    dumped = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    return _to_json(dumped[0])
