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
from sessiondb.formats.kit.fields import as_string

#: The ends of lines that aider writes on Windows.
WINDOWS = "\r\n"
#: Events that are recorded like prompts.
PROMPT_EVENTS = frozenset(
    {"command", "reset", "confirmation", "blank", "custom_message"}
)


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


def head_of(data: Mapping[str, Any]) -> str | bytes:
    """Return the text before the first message of a run, by the session's data."""
    start = as_string(data.get("started"))
    return stored_text(data, "head") or (start and header(start))


def stored_text(data: Mapping[str, Any], key: str) -> str | bytes:
    """Return the text of a file in *data*: bytes if it is not UTF-8, "" without any."""
    value = data.get(key)
    return value if isinstance(value, str | bytes) else ""


def raw_of(message: _Message) -> str | bytes:
    """Return the block of a message, or of a draft; bytes if it is not UTF-8."""
    raw = stored_text(message.data, "raw")
    if raw:
        return raw

    text = _block_text(message)
    return with_ends(text) if message.data.get("ends") == WINDOWS else text


def with_ends(text: str) -> str:
    """Return a block as a program on Windows writes it."""
    return text.replace("\n", WINDOWS)


def _block_text(message: _Message) -> str:
    """Return the block of a message by its kind or role; any other one is output."""
    form = message.kind or message.role
    if form == "assistant":
        return answer(
            pieces_joined(
                ("", str(part.data.get("tag", "")), part.text or "")
                for part in message.parts
            )
        )

    texts = [part.text or "" for part in message.parts]
    if form == "user" or form in PROMPT_EVENTS:
        return prompt("\n".join(texts))
    return "".join(output(text) for text in texts)
