"""Messages of aider to the text that they were read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sessiondb.formats.aider.conventions import (
    answer,
    header,
    output,
    pieces_joined,
    prompt,
)

#: Events that are recorded like prompts.
ASKED = frozenset({"command", "confirmation", "blank", "custom_message"})


class _Part(Protocol):
    @property
    def text(self) -> str | None: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class _Message(Protocol):
    @property
    def role(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def parts(self) -> Iterable[_Part]: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


def head_of(data: Mapping[str, Any]) -> str:
    """Return what comes before the first message of a run, by the session's data."""
    head, start = data.get("head"), data.get("started")
    if isinstance(head, str):
        return head
    return header(start) if isinstance(start, str) else ""


def raw_of(message: _Message) -> str:
    """Return the block of a message, or of a draft."""
    raw = message.data.get("raw")
    if isinstance(raw, str):
        return raw

    texts = [part.text or "" for part in message.parts]
    if message.role == "assistant":
        tags = [str(part.data.get("tag") or "") for part in message.parts]
        pieces = (("", tag, text) for tag, text in zip(tags, texts, strict=True))
        return answer(pieces_joined(pieces))
    if message.role == "user" or message.kind in ASKED:
        return prompt("\n".join(texts))
    return "".join(map(output, texts))
