"""The verbs that append what programs exchange with a provider.

An item, a message or a response becomes one message, written as `Unit.append` writes
it; its parts keep what has no column, so that `Context` gives it back to that provider.
All of them are checked before the first one is queued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from sessiondb.effects.fields import with_fields
from sessiondb.errors import InvalidInputError
from sessiondb.loading import load
from sessiondb.model import MessageDraft
from sessiondb.model.draft import MessageFields
from sessiondb.model.handles import MessageHandle, SessionRef, session_key

if TYPE_CHECKING:
    from sessiondb.effects.project import ProjectPlace
    from sessiondb.effects.unit import Unit
    from sessiondb.formats.providers.taking import PlacedDraft

#: The fields that are those of every message of a call, those that are of every answer;
#: any other one is that of one answer.
_OF_ALL = frozenset({"turn_id", "agent", "time"})
_OF_ANSWERS = frozenset({"provider", "model"})


def append_openai(
    self: Unit, /, session: SessionRef, items: Any, **fields: Unpack[MessageFields]
) -> tuple[MessageHandle, ...]:
    """Write items, messages or responses of OpenAI; return a handle for each.

    *items* is what the Responses API or Chat Completions takes or returns: a list, one
    object or a text of the user; dictionaries, and objects of the SDK (anything with
    ``model_dump``). A response is one answer with the parts of all its items, its
    usage, model, id and end; of several choices the first one counts. A result settles
    the call of its id, also one that is stored already. Items of unknown types are kept
    as they are. *fields* are those of `append`: `turn_id`, `agent` and `time` of all
    messages, `provider` and `model` of all answers, any other one of the last answer.

    Raises `InvalidInputError` and `CodecError`, which name the place in *items*; then
    nothing of this call is written.
    """
    load("sessiondb.formats.providers.taking")
    from sessiondb.formats.providers.taking import openai_drafts

    return _append_drafts(self, session, openai_drafts(items), fields)


def append_anthropic(
    self: Unit,
    /,
    session: SessionRef,
    messages: Any,
    *,
    system: Any = None,
    **fields: Unpack[MessageFields],
) -> tuple[MessageHandle, ...]:
    """Write messages or responses of Anthropic; return a handle for each message.

    *messages* is what the Messages API takes or returns, in any of the forms that
    `append_openai` takes. *system* (a text or a list of text blocks) replaces the
    system texts before it: pass it when it is new, not with every request. A result
    settles the call of its id, also one that is stored already; blocks of unknown types
    are kept as they are. *fields* and errors are those of `append_openai`.
    """
    load("sessiondb.formats.providers.taking")
    from sessiondb.formats.providers.taking import anthropic_drafts, anthropic_system

    drafts = anthropic_drafts(messages)
    if system is None:
        return _append_drafts(self, session, drafts, fields)
    drafts.insert(0, anthropic_system(system))
    return _append_drafts(self, session, drafts, fields)[1:]


def _append_drafts(
    unit: Unit,
    session: SessionRef,
    placed: Sequence[PlacedDraft],
    fields: MessageFields,
) -> tuple[MessageHandle, ...]:
    unit.staged.live(session_key(session))
    drafts = _with_fields([draft for _, draft in placed], fields)
    # A unit is never emptied: what may be refused is queued elsewhere first.
    scratch = type(unit)(unit.engine, "", _no_place)
    handles = []
    for (place, _), draft in zip(placed, drafts, strict=True):
        try:
            handles.append(scratch.append(session, draft))
        except InvalidInputError as error:
            raise type(error)(f"{place}: {error}", hint=error.hint) from error

    unit.add(*scratch.effects)
    for handle in handles:
        unit.staged.append(handle, False, False)
        unit.follow_append(handle, *handle.parts)
    return tuple(handles)


def _with_fields(
    drafts: Sequence[MessageDraft], fields: MessageFields
) -> list[MessageDraft]:
    """Return drafts with each field where it belongs; raises `InvalidInputError`."""
    answers = [index for index, item in enumerate(drafts) if item.role == "assistant"]
    of_last = fields.keys() - _OF_ALL - _OF_ANSWERS
    if of_last and not answers:
        raise InvalidInputError(
            f"{', '.join(sorted(of_last))}: of an answer, and none is appended"
        )

    stated = []
    for index, draft in enumerate(drafts):
        names = _OF_ALL
        if draft.role == "assistant":
            names = names | _OF_ANSWERS
        if answers and index == answers[-1]:
            names = names | of_last
        own: Any = {name: value for name, value in fields.items() if name in names}
        stated.append(with_fields(draft, own))
    return stated


def _no_place(directory: str | None) -> ProjectPlace:
    raise AssertionError(f"an append is not written to a directory: {directory}")
