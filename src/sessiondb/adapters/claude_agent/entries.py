"""Entries of a transcript as messages, and messages as the same entries again.

They are the messages that an import of the transcript makes (`formats.claude`), with
one message for each entry. An entry that would not come back as it was is stored with
its complete JSON beside what people read of it, so any entry comes back deep-equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast

from claude_agent_sdk.types import SessionStoreEntry

from sessiondb import ids
from sessiondb.errors import InvalidInputError
from sessiondb.formats.claude.drafts import NumberedRecord, message_draft
from sessiondb.formats.claude.records import lines_of
from sessiondb.formats.claude.tree import MessagePlace
from sessiondb.formats.kit.conversion import is_native
from sessiondb.formats.kit.fields import as_list, list_or_item, value_at
from sessiondb.formats.kit.json import is_storable, usable_id
from sessiondb.formats.kit.links import MADE
from sessiondb.model import Message, MessageDraft, PartDraft
from sessiondb.model.draft import NO_INPUT

Record = dict[str, Any]
_ROLES = {"user": "user", "assistant": "assistant"}


def message_name(entry: Mapping[str, Any]) -> str | None:
    """Return the id of an entry's message; None for one without a uuid.

    It is the uuid, unless that cannot be the id of a message or looks like one of ours.
    """
    uuid = entry.get("uuid")
    return name_of_uuid(uuid) if isinstance(uuid, str) and uuid else None


def name_of_uuid(uuid: str) -> str:
    """Return the id of the message with a uuid."""
    if usable_id(uuid) and not uuid.startswith(MADE) and not is_native(uuid):
        return uuid
    return f"{MADE}{sha256(uuid.encode('utf-8', 'surrogatepass')).hexdigest()}"


def new_name() -> str:
    """Return an id for an entry without a uuid."""
    return MADE + ids.new_message_id()


def draft_of_entry(entry: Mapping[str, Any], place: MessagePlace) -> MessageDraft:
    """Return an entry as the message at a place; it comes back as it is.

    Raises `InvalidInputError` for one that is not a JSON object.
    """
    # A copy, which the draft takes apart; it also is what JSON makes of the entry.
    record = _copy_of_entry(entry)
    try:
        if usable_id(record.get("type")) and is_storable(record):
            draft = message_draft([NumberedRecord(0, record)], place)
            is_ambiguous = "claude_agent_entry" in draft.data
            if not is_ambiguous and _record_of_draft(draft) == entry:
                return draft
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    return verbatim_draft(entry, place.name)


def verbatim_draft(entry: Mapping[str, Any], name: str) -> MessageDraft:
    """Return a message with the texts of an entry, and the entry as it is."""
    kind = entry.get("type")
    role = _ROLES.get(kind, "event") if isinstance(kind, str) else "event"
    if role != "event":
        kind = None
    elif not usable_id(kind):
        kind = "entry"
    parts = [
        PartDraft("text", words.encode(errors="replace").decode())
        for words in _texts_of(entry)
    ]
    # Escaped, so that no character is one that a database refuses.
    data = {"claude_agent_entry": json.dumps(entry)}
    return MessageDraft(role, tuple(parts), id=name, kind=kind, data=data)


def entry_of_message(message: Message) -> SessionStoreEntry:
    """Return the entry that a message was."""
    verbatim = message.data.get("claude_agent_entry")
    if isinstance(verbatim, str):
        return cast(SessionStoreEntry, json.loads(verbatim))
    ((_, record),) = lines_of(message)
    return cast(SessionStoreEntry, record)


def _copy_of_entry(entry: Mapping[str, Any]) -> Record:
    try:
        copy = json.loads(json.dumps(entry))
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInputError(f"an entry is not a JSON object: {error}") from error
    return cast(Record, copy)


def _record_of_draft(draft: MessageDraft) -> Record:
    """Return the entry that a draft will be when it is read as a message."""
    parts = [
        replace(part, input=None) if part.input is NO_INPUT else part
        for part in draft.parts
    ]
    columns = {
        name: getattr(draft, name)
        for name in ("id", "role", "kind", "data", "response_id", "model_id")
    }
    message: Any = SimpleNamespace(**columns, parts=parts)
    ((_, record),) = lines_of(message)
    return record


def _texts_of(entry: Mapping[str, Any]) -> Iterator[str]:
    content = value_at(entry, "message", "content")
    if content is None:
        content = entry.get("content")
    for block in as_list(list_or_item(content)):
        words = block if isinstance(block, str) else value_at(block, "text")
        if isinstance(words, str) and words:
            yield words
