"""Items of the Responses API as messages, and messages as the items that they were.

An item is one message, in the form in which `append_openai` stores it: its texts, calls
and results are parts, and what has no column is in the ``data`` of the first one under
``openai``. So every program of sessiondb can read it, and give it back to a provider.
An item that has no such form is kept as JSON under ``openai_agents``, beside its text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from sessiondb.adapters.drafts import part_as_read
from sessiondb.dataclass import replace
from sessiondb.effects import SessionHandle, Unit
from sessiondb.errors import CodecError, InvalidInputError
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.providers.responses.drafts import message_draft
from sessiondb.formats.providers.responses.fields import API, ROLES
from sessiondb.formats.providers.responses.items import item_of, items_of
from sessiondb.formats.providers.rest import begins_item, items_in
from sessiondb.model import Message, MessageDraft, Part, PartDraft, text

Item: TypeAlias = dict[str, Any]
#: The message of an item, and the JSON of the item.
ItemDraft: TypeAlias = tuple[MessageDraft, str]

_NOT_STORABLE = (InvalidInputError, CodecError)


def drafts_of_items(items: Iterable[Any]) -> list[ItemDraft]:
    """Return the message that each item is, and the JSON of the item.

    Raises what `json.dumps` raises for a value that is not JSON.
    """
    drafts: list[ItemDraft] = []
    calls: dict[str, int] = {}
    for item in items:
        # The text makes the copy that `message_draft` takes apart.
        item_json = json.dumps(item)
        draft = _draft_of_json(item_json)
        part = draft.parts[0]
        if part.call_id is not None:
            if part.type == "tool" and part.status == "pending":
                calls[part.call_id] = len(drafts)
            elif part.type == "tool-result" and part.call_id in calls:
                # Else the commit would write the call twice, and index it twice.
                place = calls.pop(part.call_id)
                call, call_json = drafts[place]
                drafts[place] = (_settled(call, part), call_json)
        drafts.append((draft, item_json))
    return drafts


def _draft_of_json(item_json: str) -> MessageDraft:
    item = json.loads(item_json)
    if type(item) is dict:
        try:
            draft = message_draft(dict(item))
        except OddRecordError:
            return verbatim_draft(item_json)
        if item_of([part_as_read(it) for it in draft.parts]) == json.loads(item_json):
            return draft
    return verbatim_draft(item_json)


def _settled(call: MessageDraft, result: PartDraft) -> MessageDraft:
    """Return a call that has ended: its result follows in the same unit."""
    (part,) = call.parts
    if result.status == "error":
        part = replace(
            part, text=result.text, status="error", outcome=result.outcome or "failed"
        )
    else:
        part = replace(part, text=result.text, status="completed")
    return replace(call, parts=(part,))


def verbatim_draft(item_json: str) -> MessageDraft:
    """Return the message of an item that our columns do not hold: JSON and a text."""
    item = json.loads(item_json)
    role, content = "event", None
    if type(item) is dict:
        role = ROLES.get(str(item.get("role")), "event")
        content = item.get("content")
    words = content if type(content) is str else item_json
    part = replace(text(words), data={"openai_agents": item_json})
    return MessageDraft(
        role, (part,), kind="custom_message" if role == "event" else None
    )


def append_items(fx: Unit, session: SessionHandle, drafts: Iterable[ItemDraft]) -> None:
    """Queue the messages of `drafts_of_items`."""
    for draft, item_json in drafts:
        try:
            fx.append(session, draft)
        except _NOT_STORABLE:
            # An agent that runs elsewhere has to run here.
            fx.append(session, verbatim_draft(item_json))


# -- back --------------------------------------------------------------------------


def items_of_messages(messages: Sequence[Message]) -> list[Item]:
    """Return the items of messages, whoever wrote them; see `items_of_message`.

    Neighbours that are of other programs are converted together, because a result is
    found beside its call.
    """
    items: list[Item] = []
    others: list[Message] = []
    for message in messages:
        if is_item(message.parts):
            items += items_of(others, (), None)
            others = []
            items += items_of_parts(message.parts)
        elif message.purpose != "bookkeeping":
            others.append(message)
    return items + items_of(others, (), None)


def is_item(parts: Sequence[Part]) -> bool:
    """Whether a message was written as an item, or as several of one response."""
    return bool(parts) and (
        "openai_agents" in parts[0].data or begins_item(parts[0], API)
    )


def items_of_parts(parts: Sequence[Part]) -> list[Item]:
    """Return the items that the parts of a message were, of which `is_item` is true."""
    verbatim = parts[0].data.get("openai_agents")
    if verbatim is not None:
        return [json.loads(verbatim)]
    return [item_of(group) for group in items_in(parts, API)]
