"""Drafts: the values that writes take; `model.drafting` builds them.

They are checked when an effect is queued. The keys of ``data`` of a draft that a
program makes itself are its own, whatever their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar

from sessiondb.dataclass import dataclass, field
from sessiondb.errors import InvalidInputError
from sessiondb.model.bounds import Time
from sessiondb.model.records import Tokens

if TYPE_CHECKING:
    from sessiondb.model.json_drafts import MessageObject, PartObject

T = TypeVar("T")
#: A message and a part as verbs take them: drafts, or the same as JSON objects.
MessageLike: TypeAlias = "MessageDraft | MessageObject"
PartLike: TypeAlias = "PartDraft | str | PartObject"
STATUSES = ("pending", "running", "completed", "error")
#: ``input`` of a part that has none; None is a JSON value of its own.
NO_INPUT: Any = type("NoInput", (), {"__repr__": lambda _: "NO_INPUT"})()


@dataclass(frozen=True, slots=True)
class PartDraft:
    """A part to be written; without ``id`` it gets one. Times in Unix ms.

    ``synthetic``: the program added it to what its user typed.
    """

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
    synthetic: bool = False


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
