"""Sessions to the JSON of ``opencode export``, version 1.x.

Works on what the reader yields and on what the database returns: both name
their fields alike. What came from OpenCode is written as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sessiondb.formats.opencode import fields
from sessiondb.formats.opencode.convert import DIFF_REST, OUTPUT_FILE, TODO_REST
from sessiondb.formats.opencode.fields import overlay, put, put_all
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

_OURS = frozenset({DIFF_REST, TODO_REST, OUTPUT_FILE, "row", "text_exact"})


def export_json(
    session: Session | SourceSession, messages: Iterable[Message | MessageDraft]
) -> dict[str, Any]:
    """Return what ``opencode export`` prints for a session.

    Messages of a role that OpenCode 1.x does not have are left out.
    """
    name = _name(session)
    entries = []
    for message in messages:
        info = message_info(message, name)
        if info is not None:
            parts = [part_json(part, info["id"], name) for part in message.parts]
            entries.append({"info": info, "parts": parts})
    return {"info": session_info(session), "messages": entries}


def session_info(session: Session | SourceSession) -> dict[str, Any]:
    """Return a session's own record."""
    info: dict[str, Any] = {"id": _name(session)}
    if isinstance(session, Session):
        info.update(slug=session.slug, projectID=session.project_id)
    put_all(info, fields.SESSION, session)
    info["metadata"] = {key: value for key, value in session.metadata.items() if key != "share"}
    if not info["metadata"]:
        del info["metadata"]
    if session.relation == "subagent":
        put(info, ("parentID",), session.parent_source_id)
    return overlay(info, _rest(session.data))


def message_info(message: Message | MessageDraft, session_id: str) -> dict[str, Any] | None:
    """Return a message's own record; None for a role that OpenCode 1.x does not have."""
    role = message.role if message.role in fields.MESSAGE else None
    if role is None and "role" not in message.data:
        return None
    info: dict[str, Any] = {"id": message.id, "sessionID": session_id}
    put_all(info, fields.MESSAGE.get(role or "", fields.EVENT), message)
    put(info, ("role",), role)
    if role == "assistant":
        put(info, ("parentID",), message.turn_id)
        if message.tokens is not None:
            put_all(info, fields.TOKENS, message.tokens)
        if message.finish != "cancelled":
            put(info, ("finish",), message.finish)
        if message.kind == "compaction":
            info["summary"] = True
    return overlay(info, _rest(message.data))


def part_json(part: Part | PartDraft, message_id: str, session_id: str) -> dict[str, Any]:
    """Return a part's record."""
    record = {"id": part.id, "messageID": message_id, "sessionID": session_id, "type": part.type}
    put_all(record, fields.PART.get(part.type, ()), part)
    if part.type == "tool":
        put(record, ("state", "status"), part.status)
        put(record, fields.RESULT.get(part.status, ("state", "output")), part.text)
        given = _input(part)
        if given is not NO_INPUT:
            overlay(record, {"state": {"input": given}})
    elif part.type not in fields.PART:
        put(record, ("text",), part.text)
    return overlay(record, _rest(part.data))


def session_diff(diffs: Iterable[FileDiff], data: dict[str, Any]) -> list[Any]:
    """Return the list of ``storage/session_diff``: *diffs* and *data* are the session's."""
    known = {diff.path: diff for diff in diffs if diff.seq == 0}
    order = data.get(DIFF_REST) or [{"file": path} for path in known]
    return [_diff(item, known) if isinstance(item, dict) else item[0] for item in order]


def _diff(rest: dict[str, Any], known: dict[str, FileDiff]) -> dict[str, Any]:
    diff = known[rest["file"]]
    item: dict[str, Any] = {}
    for key in ("patch", "additions", "deletions"):
        put(item, (key,), getattr(diff, key))
    for key in ("before", "after"):
        content = getattr(diff, key)
        put(item, (key,), None if content is None else content.decode("utf-8", "surrogatepass"))
    return overlay(item, rest)


def _name(session: Session | SourceSession) -> str:
    own = session.id if isinstance(session, Session) else ""
    return session.source_id or own


def _input(part: Part | PartDraft) -> Any:
    if isinstance(part, PartDraft):
        return part.input
    return NO_INPUT if part.input_json is None else json.loads(part.input_json)


def _rest(data: Any) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in _OURS}
