"""The short functions that make drafts.

    user("Fix the off-by-one")
    assistant(text("Done."), tool("edit", {"path": "a.py"}, output="ok"))

A string becomes a text part. These functions check the types of their arguments, and
that no keyword is the name of a field; everything else is checked when an effect is
queued.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.arguments import checked
from sessiondb.model.draft import (
    NO_INPUT,
    MessageDraft,
    PartDraft,
    PartLike,
    ending,
    result_text,
)
from sessiondb.model.nones import without_none
from sessiondb.model.records import SOURCE_KEYS
from sessiondb.model.reserved import OF_EVENTS, own_data


def _part_drafts(parts: tuple[PartLike, ...]) -> tuple[PartDraft, ...]:
    return tuple(
        [PartDraft("text", p) if isinstance(p, str) else _part_draft(p) for p in parts]
    )


def _part_draft(part: PartDraft | Mapping[str, Any]) -> PartDraft:
    if isinstance(part, Mapping):
        from sessiondb.model.json_drafts import part_draft

        return part_draft(part)
    return part


@checked
def user(*parts: PartLike, id: str | None = None, **data: Any) -> MessageDraft:
    """A message of the user; it opens a turn. Keywords go to ``data``."""
    return MessageDraft("user", _part_drafts(parts), id, data=own_data(data, "user"))


@checked
def assistant(*parts: PartLike, id: str | None = None, **data: Any) -> MessageDraft:
    """An answer of the model. Keywords go to ``data``."""
    return MessageDraft(
        "assistant", _part_drafts(parts), id, data=own_data(data, "assistant")
    )


@checked
def system(*parts: PartLike, id: str | None = None, **data: Any) -> MessageDraft:
    """A system message. Keywords go to ``data``."""
    return MessageDraft(
        "system", _part_drafts(parts), id, data=own_data(data, "system")
    )


@checked
def event(
    kind: str, *parts: PartLike, id: str | None = None, **data: Any
) -> MessageDraft:
    """A record outside the conversation; *kind* names it. Keywords go to ``data``."""
    return MessageDraft(
        "event",
        _part_drafts(parts),
        id,
        kind,
        data=own_data(data, "event", OF_EVENTS.get(kind, ())),
    )


@checked
def text(
    content: str, *, id: str | None = None, synthetic: bool = False, **data: Any
) -> PartDraft:
    """A text part. Keywords go to ``data``.

    *synthetic*: the program added it to what its user typed.
    """
    return PartDraft(
        "text", content, id=id, data=own_data(data, "text"), synthetic=synthetic
    )


@checked
def reasoning(content: str, *, id: str | None = None, **data: Any) -> PartDraft:
    """A reasoning part. Keywords go to ``data``."""
    return PartDraft("reasoning", content, id=id, data=own_data(data, "reasoning"))


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

    kept = own_data(data, "tool")
    # In the order of the fields: keywords take twice as long.
    return PartDraft(
        "tool", result, name, call_id, status, outcome, title, input, kept, id
    )


@checked
def tool_result(
    call_id: str, output: str | None, *, id: str | None = None, **data: Any
) -> PartDraft:
    """A result written as a record of its own, for a message of role ``tool``."""
    return PartDraft(
        "tool-result",
        output,
        call_id=call_id,
        id=id,
        data=own_data(data, "tool_result"),
    )


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
    facts = {"url": url, "mime": mime, "filename": filename, "content": content}
    return PartDraft(
        "file", id=id, data={**without_none(facts), **own_data(data, "file")}
    )


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
    values = (kind, path, scope, hash, truncated, error)
    facts = without_none(dict(zip(SOURCE_KEYS, values, strict=True)))
    return PartDraft(
        "source",
        text,
        title=title or path,
        input=facts,
        data=own_data(data, "context_source"),
        id=id,
    )


@checked
def part(
    type: str, *, text: str | None = None, id: str | None = None, **data: Any
) -> PartDraft:
    """A part of any type; an unknown type is kept verbatim. Keywords go to ``data``."""
    return PartDraft(type, text, id=id, data=own_data(data, "part"))
