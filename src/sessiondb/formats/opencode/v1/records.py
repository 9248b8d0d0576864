"""Sessions to the JSON of ``opencode export``, version 1.x.

Works on what the reader yields and on what the database returns: both name
their fields alike. Values from OpenCode are written as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import overlay, put
from sessiondb.formats.opencode.keys import (
    DIFF_REST,
    OUTPUT_FILE,
    ROW_REST,
    SHARE_REST,
    TODO_REST,
)
from sessiondb.formats.opencode.v1 import fields
from sessiondb.formats.opencode.v1.drafts import DIFF
from sessiondb.model import (
    FileDiff,
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Session,
    SourceSession,
)
from sessiondb.model.draft import NO_INPUT

_NOT_OF_SESSION = frozenset({DIFF_REST, TODO_REST, ROW_REST, SHARE_REST})
_SECRET = frozenset({"share"})
_NOT_OF_PART = frozenset({OUTPUT_FILE})


def export_json(
    session: Session | SourceSession, messages: Iterable[Message | MessageDraft]
) -> dict[str, Any]:
    """Return what ``opencode export`` prints for a session.

    Messages of a role that OpenCode 1.x does not have are left out.
    """
    name = session_name(session)
    entries = []
    for message in messages:
        info = message_info(message, name)
        if info is not None:
            parts = [part_json(part, info["id"], name) for part in message.parts]
            entries.append({"info": info, "parts": parts})
    return {"info": session_info(session), "messages": entries}


def session_info(session: Session | SourceSession) -> dict[str, Any]:
    """Return a session's own record."""
    info: dict[str, Any] = {"id": session_name(session)}
    if isinstance(session, Session):
        info.update(slug=session.slug, projectID=session.project_id)
    put(info, fields.SESSION, as_stated(session))
    if session.data.get(SHARE_REST, {}).get("alone") and _is_shared_at(session):
        del info["share"]
    info["metadata"] = without(_SECRET, session.metadata)
    if not info["metadata"]:
        del info["metadata"]
    if session.relation == "subagent" and session.parent_source_id is not None:
        info["parentID"] = session.parent_source_id
    return overlay(info, without(_NOT_OF_SESSION, session.data))


def _is_shared_at(session: Session | SourceSession) -> bool:
    share = session.metadata.get("share")
    return (
        isinstance(share, Mapping) and share.get("url") == session.share_url is not None
    )


def message_info(
    message: Message | MessageDraft, session_id: str
) -> dict[str, Any] | None:
    """Return a message's own record; None for a role that OpenCode 1.x does not have."""
    role = message.role if message.role in fields.MESSAGE else None
    if role is None and "role" not in message.data:
        return None
    info: dict[str, Any] = {"id": message.id, "sessionID": session_id}
    put(info, fields.MESSAGE.get(role or "", fields.EVENT), message)
    if role is not None:
        info["role"] = role
    if role == "assistant":
        if message.turn_id is not None:
            info["parentID"] = message.turn_id
        if message.tokens is not None:
            put(info, fields.TOKENS, message.tokens)
        if message.finish not in (None, "cancelled"):
            info["finish"] = message.finish
        if message.kind == "compaction":
            info["summary"] = True
    return overlay(info, message.data)


def part_json(
    part: Part | PartDraft, message_id: str, session_id: str
) -> dict[str, Any]:
    """Return a part's record."""
    record: dict[str, Any] = {
        "id": part.id,
        "messageID": message_id,
        "sessionID": session_id,
    }
    record["type"] = part.type
    put(record, fields.PART.get(part.type, {}), part)
    if part.type == "tool" and (state := _state(part)):
        overlay(record, {"state": state})
    elif part.text is not None:
        record["text"] = part.text
    return overlay(record, without(_NOT_OF_PART, part.data))


def _state(part: Part | PartDraft) -> dict[str, Any]:
    state: dict[str, Any] = {}
    if part.status is not None:
        state["status"] = part.status
    if part.text is not None:
        state[fields.RESULT.get(part.status, "output")] = part.text
    if isinstance(part, Part):
        if part.input_json is not None:
            state["input"] = part.input
    elif part.input is not NO_INPUT:
        state["input"] = part.input
    return state


def session_diff(diffs: Iterable[FileDiff], data: Mapping[str, Any]) -> list[Any]:
    """Return the list of ``storage/session_diff``: *diffs* and *data* are the session's."""
    known = {diff.path: diff for diff in diffs if diff.seq == 0}
    order = data.get(DIFF_REST) or []
    named = {item["file"] for item in order if isinstance(item, dict)}
    order = [*order, *({"file": path} for path in known if path not in named)]
    # Values set here since then count: a file may be gone, another one new.
    return [
        _diff(item, known) if isinstance(item, dict) else item[0]
        for item in order
        if not isinstance(item, dict) or item["file"] in known
    ]


def _diff(rest: dict[str, Any], known: dict[str, FileDiff]) -> dict[str, Any]:
    diff = known[rest["file"]]
    item: dict[str, Any] = {}
    put(item, DIFF, diff)
    for side in ("before", "after"):
        if side in item:
            item[side] = item[side].decode("utf-8", "surrogatepass")
    return overlay(item, rest)


def as_stated(session: Session | SourceSession) -> Session | SourceSession:
    """Return a session without the model that it only has from its answers."""
    if isinstance(session, Session) and session.model_source == "derived":
        return replace(session, provider_id=None, model_id=None)
    return session


def session_name(session: Session | SourceSession) -> str:
    """Return the id that a session has in its own store, else the one it has here."""
    own = session.id if isinstance(session, Session) else ""
    return session.source_id or own


def without(keys: frozenset[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return *data* without *keys*."""
    return {key: value for key, value in data.items() if key not in keys}
