"""Drafts: what writes take, and the short functions that build them.

    user("Fix the off-by-one")
    assistant(text("Done."), tool("edit", {"path": "a.py"}, output="ok"))

A string becomes a text part. These functions check the types of their arguments;
everything else is checked when an effect is queued.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from sessiondb.arguments import checked
from sessiondb.errors import InvalidInputError
from sessiondb.model.bounds import Time
from sessiondb.model.nones import without_none
from sessiondb.model.records import SOURCE_KEYS, Tokens

T = TypeVar("T")
ROLES = ("user", "assistant", "tool", "system", "event")
STATUSES = ("pending", "running", "completed", "error")
OUTCOMES = ("failed", "interrupted", "skipped", "denied")
FINISHES = ("stop", "length", "tool-calls", "error", "cancelled", "other")
#: ``input`` of a part that has none; None is a JSON value of its own.
NO_INPUT: Any = type("NoInput", (), {"__repr__": lambda _: "NO_INPUT"})()


@dataclass(frozen=True, slots=True)
class PartDraft:
    """A part to be written; without ``id`` it gets one. Times in Unix ms."""

    type: str
    text: str | None = None
    tool: str | None = None
    call_id: str | None = None
    status: str | None = None
    outcome: str | None = None
    title: str | None = None
    input: Any = NO_INPUT
    data: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    time_created: int | None = None
    time_updated: int | None = None
    time_started: int | None = None
    time_ended: int | None = None


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message to be written; None is filled in or unknown. Times in Unix ms."""

    role: str
    parts: tuple[PartDraft, ...] = ()
    id: str | None = None
    kind: str | None = None
    turn_id: str | None = None
    agent: str | None = None
    provider_id: str | None = None
    model_id: str | None = None
    response_id: str | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Any = None
    time_created: int | None = None
    time_completed: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class MessageFields(TypedDict, total=False):
    """The keywords of `append` that state the columns of its message."""

    turn_id: str | None
    agent: str | None
    provider: str | None
    model: str | None
    response_id: str | None
    #: USD.
    cost: float | None
    tokens: Tokens | Mapping[str, int] | None
    finish: str | None
    #: Any JSON value.
    error: Any
    time: Time | None


def _parts(parts: tuple[PartDraft | str, ...]) -> tuple[PartDraft, ...]:
    return tuple(text(p) if isinstance(p, str) else p for p in parts)


@checked
def user(*parts: PartDraft | str, id: str | None = None, **data: Any) -> MessageDraft:
    """A message of the user; it opens a turn. Keywords go to ``data``."""
    return MessageDraft("user", _parts(parts), id, data=data)


@checked
def assistant(
    *parts: PartDraft | str, id: str | None = None, **data: Any
) -> MessageDraft:
    """An answer of the model. Keywords go to ``data``."""
    return MessageDraft("assistant", _parts(parts), id, data=data)


@checked
def system(*parts: PartDraft | str, id: str | None = None, **data: Any) -> MessageDraft:
    """A system message. Keywords go to ``data``."""
    return MessageDraft("system", _parts(parts), id, data=data)


@checked
def event(
    kind: str, *parts: PartDraft | str, id: str | None = None, **data: Any
) -> MessageDraft:
    """A record outside the conversation; *kind* names it. Keywords go to ``data``."""
    return MessageDraft("event", _parts(parts), id, kind, data=data)


@checked
def text(content: str, *, id: str | None = None, **data: Any) -> PartDraft:
    """A text part. Keywords go to ``data``."""
    return PartDraft("text", content, id=id, data=data)


@checked
def reasoning(content: str, *, id: str | None = None, **data: Any) -> PartDraft:
    """A reasoning part. Keywords go to ``data``."""
    return PartDraft("reasoning", content, id=id, data=data)


def result_text(output: T | None, error: T | None) -> T | None:
    """Return the text of a call's result; raises `InvalidInputError` for two texts."""
    if output is not None and error is not None:
        raise InvalidInputError("a call ends with output or with error, not both")
    return output if error is None else error


def ending(outcome: str | None, *, failed: bool) -> tuple[str, str | None]:
    """Return the status of a call that has ended, and its outcome.

    An *outcome* is that of an error, and an error without one has ``failed``.
    """
    if outcome is not None:
        return "error", outcome
    return ("error", "failed") if failed else ("completed", None)


@checked
def tool(
    name: str,
    input: Any = NO_INPUT,
    *,
    call_id: str | None = None,
    output: str | None = None,
    error: str | None = None,
    outcome: str | None = None,
    status: str | None = None,
    title: str | None = None,
    id: str | None = None,
    **data: Any,
) -> PartDraft:
    """A tool call and, once known, its result.

    *output* makes it ``completed``, *error* or *outcome* ``error`` (outcome
    ``failed`` unless given), neither leaves it ``pending``; *status* overrides.
    *input* is any JSON value; keywords go to ``data``. A call has one result:
    raises `InvalidInputError` for *output* and *error* at once.
    """
    result = result_text(output, error)
    ended, outcome = ending(outcome, failed=error is not None)
    if status is None:
        is_open = result is None and outcome is None
        status = "pending" if is_open else ended

    return PartDraft(
        type="tool",
        text=result,
        tool=name,
        call_id=call_id,
        status=status,
        outcome=outcome,
        title=title,
        input=input,
        data=data,
        id=id,
    )


@checked
def tool_result(
    call_id: str, output: str | None, *, id: str | None = None, **data: Any
) -> PartDraft:
    """A result written as a record of its own, for a message of role ``tool``."""
    return PartDraft("tool-result", output, call_id=call_id, id=id, data=data)


@checked
def file(
    url: str | None = None,
    *,
    mime: str | None = None,
    filename: str | None = None,
    content: bytes | None = None,
    id: str | None = None,
    **data: Any,
) -> PartDraft:
    """A file: by *url*, or by its *content*. Keywords go to ``data``."""
    known = {"url": url, "mime": mime, "filename": filename, "content": content}
    return PartDraft("file", id=id, data={**without_none(known), **data})


@checked
def context_source(
    kind: str | None = None,
    path: str | None = None,
    *,
    scope: str | None = None,
    hash: str | None = None,
    truncated: bool | None = None,
    error: str | None = None,
    text: str | None = None,
    title: str | None = None,
    id: str | None = None,
    **data: Any,
) -> PartDraft:
    """A file or *text* that a model was given, for an event ``context``.

    *title* is its name, the *path* unless given. Keywords go to ``data``.
    """
    named = (kind, path, scope, hash, truncated, error)
    said = without_none(dict(zip(SOURCE_KEYS, named, strict=True)))
    return PartDraft("source", text, title=title or path, input=said, data=data, id=id)


@checked
def part(
    type: str, *, text: str | None = None, id: str | None = None, **data: Any
) -> PartDraft:
    """A part of any type; an unknown type is kept verbatim. Keywords go to ``data``."""
    return PartDraft(type, text, id=id, data=data)
