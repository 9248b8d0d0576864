"""Messages of aider to the text that they were read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
ASKED = frozenset({"command", "reset", "confirmation", "blank", "custom_message"})


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
    return kept(data, "head") or (start and header(start))


def kept(data: Mapping[str, Any], key: str) -> str | bytes:
    """Return the text of a file in *data*: bytes if it is not UTF-8, "" without any."""
    value = data.get(key)
    return value if isinstance(value, str | bytes) else ""


def raw_of(message: _Message) -> str | bytes:
    """Return the block of a message, or of a draft; bytes if it is not UTF-8."""
    raw = kept(message.data, "raw")
    if raw:
        return raw

    said = _FORMS.get(message.kind or message.role, _shown)(message.parts)
    return with_ends(said) if message.data.get("ends") == WINDOWS else said


def with_ends(said: str) -> str:
    """Return a block as a program on Windows writes it."""
    return said.replace("\n", WINDOWS)


def _answered(parts: Iterable[_Part]) -> str:
    pieces = (("", str(part.data.get("tag", "")), _text(part)) for part in parts)
    return answer(pieces_joined(pieces))


def _asked(parts: Iterable[_Part]) -> str:
    return prompt("\n".join(map(_text, parts)))


def _shown(parts: Iterable[_Part]) -> str:
    return "".join(map(output, map(_text, parts)))


def _text(part: _Part) -> str:
    return part.text or ""


#: The forms of messages by their kind or role; any other one is output.
_FORMS: Mapping[str, Callable[[Iterable[_Part]], str]] = {
    "assistant": _answered,
    **dict.fromkeys(("user", *ASKED), _asked),
}
