"""Sessions to the records of OpenCode 1.x, as ``opencode export`` prints them.

Works on the drafts of the reader and on the records of the database: both name their
fields alike. Values that came from OpenCode are written as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import (
    overlay,
    put_fields,
    value_at,
    without_keys,
    without_none,
)
from sessiondb.formats.opencode.answers import finish_of, input_of
from sessiondb.formats.opencode.keys import (
    DIFF_REST,
    OUTPUT_FILE,
    ROW_REST,
    SHARE_REST,
    TODO_REST,
)
from sessiondb.formats.opencode.v1 import fields
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Session,
    SourceSession,
)

_NOT_OF_SESSION = frozenset({DIFF_REST, TODO_REST, ROW_REST, SHARE_REST})
_SECRET = frozenset({"share"})
_NOT_OF_PART = frozenset({OUTPUT_FILE})


def export_json(
    session: Session | SourceSession, messages: Iterable[Message | MessageDraft]
) -> dict[str, Any]:
    """Return the JSON that ``opencode export`` prints for a session.

    Messages of a role that OpenCode 1.x does not have are left out.
    """
    session_id = session_name(session)
    entries = []
    for message in messages:
        info = message_info(message, session_id)
        if info is not None:
            parts = parts_json(message, info["id"], session_id)
            entries.append({"info": info, "parts": parts})
    return {"info": session_info(session), "messages": entries}


def session_info(session: Session | SourceSession) -> dict[str, Any]:
    """Return a session's own record."""
    info: dict[str, Any] = {"id": session_name(session)}
    if isinstance(session, Session):
        info.update(slug=session.slug, projectID=session.project_id)
    put_fields(info, fields.SESSION, as_recorded(session))

    # Not in the record: the secret of a share, and an address that only its file has.
    is_only_in_file = session.data.get(SHARE_REST, {}).get("alone")
    if is_only_in_file and session.share_url is not None:
        address = value_at(session.metadata.get("share"), "url")
        if address == session.share_url:
            del info["share"]
    info["metadata"] = without_keys(_SECRET, session.metadata)
    drop_if_empty(info, "metadata")
    return overlay(info, without_keys(_NOT_OF_SESSION, session.data))


def drop_if_empty(info: dict[str, Any], key: str) -> None:
    """Remove a key whose value is empty."""
    if not info.get(key):
        del info[key]


def message_info(
    message: Message | MessageDraft, session_id: str
) -> dict[str, Any] | None:
    """Return a message's own record.

    None for a role that OpenCode 1.x does not have.
    """
    role = message.role
    info: dict[str, Any] = {"id": message.id, "sessionID": session_id}

    if role in fields.MESSAGE:
        put_fields(info, fields.MESSAGE[role], message)
        info["role"] = role
    elif "role" in message.data:
        put_fields(info, fields.EVENT, message)
    else:
        return None

    if role == "assistant":
        put_tokens(info, message)
        if message.kind == "compaction":
            info["summary"] = True
        finish = finish_of(message.finish)
        if finish is not None:
            info["finish"] = finish
    return overlay(info, message.data)


def put_tokens(record: dict[str, Any], message: Message | MessageDraft) -> None:
    """Write the counts of a message into its record, if they are known."""
    if message.tokens is not None:
        put_fields(record, fields.TOKENS, message.tokens)


def parts_json(
    message: Message | MessageDraft, message_id: str, session_id: str
) -> list[dict[str, Any]]:
    """Return the records of a message's parts; a source is in that of its call."""
    parts = (part for part in message.parts if part.type != "source")
    return [part_json(part, message_id, session_id) for part in parts]


def part_json(
    part: Part | PartDraft, message_id: str, session_id: str
) -> dict[str, Any]:
    """Return a part's record."""
    record: dict[str, Any] = {
        "id": part.id,
        "messageID": message_id,
        "sessionID": session_id,
        "type": part.type,
    }
    put_fields(record, fields.PART.get(part.type, {}), part)
    if part.synthetic and part.data.get("ignored") is not True:
        record["synthetic"] = True

    state: dict[str, Any] = {}
    if part.type == "tool":
        result = fields.RESULT.get(part.status, "output")
        state = {"status": part.status, result: part.text, "input": input_of(part)}
        state = without_none(state)
    if state:
        overlay(record, {"state": state})
    elif part.text is not None:
        record["text"] = part.text

    return overlay(record, without_keys(_NOT_OF_PART, part.data))


def as_recorded(session: Session | SourceSession) -> Session | SourceSession:
    """Return a session without what OpenCode does not record of it.

    That is a model that is only known from its answers, and the original of a fork.
    """
    if isinstance(session, Session) and session.model_source == "derived":
        session = replace(session, provider_id=None, model_id=None)
    if session.relation != "subagent" and session.parent_source_id is not None:
        session = replace(session, parent_source_id=None)
    return session


def session_name(session: Session | SourceSession) -> str:
    """Return the id that a session has in its own store, else the one it has here."""
    if session.source_id:
        return session.source_id
    return session.id if isinstance(session, Session) else ""
