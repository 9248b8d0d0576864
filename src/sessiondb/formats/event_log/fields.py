"""Where the records of a plain log keep values that have a column, in each spelling.

The first key of a column is how we write it; see `kit.spelled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    clean_name,
    clean_text,
    cost,
    count,
    is_object,
    text,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.spelled import (
    Table,
    first_fitting,
    in_ms,
    keys_in,
    not_null,
    spelled,
    take_spelled,
)
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.model import aliases
from sessiondb.model.aliases import finishes

Record = dict[str, Any]
#: When a record was written: in Unix ms, or a text, in UTC if it has no offset.
TIME = ("time", "timestamp", "ts")
_IN_MS: Table = {"ms": spelled(in_ms, *TIME)}
#: Says whether a record has no time, and the value that the record itself has there.
TIMELESS = "no_time"
_SESSION_ID = spelled(usable_id, "session_id", "id")
HEADER: Table = {
    "source_id": _SESSION_ID,
    "directory": spelled(clean_text, "cwd", "directory", "working_directory"),
    "title": spelled(clean_text, "title", "name"),
    "agent": spelled(clean_name, "agent"),
    "provider_id": spelled(clean_name, "provider", "provider_id"),
    "model_id": spelled(clean_name, "model", "model_id"),
    "version": spelled(clean_name, "version", "agent_version"),
    "parent_source_id": spelled(
        usable_id, "parent_session_id", "parent_id", "forked_from"
    ),
    "call_id": spelled(clean_name, "parent_call_id"),
    "share_url": spelled(clean_text, "share_url"),
    "permission": spelled(not_null, "permission"),
    "metadata": spelled(is_object, "metadata"),
    "revert": spelled(not_null, "revert"),
    "time_archived": spelled(in_ms, "time_archived"),
    "summary_additions": spelled(count, "summary_additions"),
    "summary_deletions": spelled(count, "summary_deletions"),
    "summary_files": spelled(count, "summary_files"),
}
RELATIONS = ("fork", "subagent")
TITLE: Table = {"title": spelled(clean_text, "title", "name", "new_title")}

MESSAGE_ID = ("message_id", "id")
ANSWER: Table = {
    "agent": spelled(clean_name, "agent"),
    "provider_id": spelled(clean_name, "provider", "provider_id"),
    "model_id": spelled(clean_name, "model", "model_id"),
    "response_id": spelled(clean_name, "response_id"),
    "cost": spelled(cost, "cost", "cost_usd", "total_cost_usd"),
}
#: The kind of a message of another role than ``event``; an event has it as its type.
KIND: Table = {"kind": spelled(clean_name, "kind")}
CALL: Table = {
    "call_id": spelled(clean_name, "call_id", "tool_call_id", "callId", "id"),
    "tool": spelled(clean_name, "name", "tool", "tool_name"),
    "title": spelled(clean_text, "title"),
}
RESULT: Table = {"call_id": CALL["call_id"]}
#: Keys of texts, the preferred one first.
TEXT = ("text", "content", "message", "prompt")
REASONING = ("reasoning", "thinking")
INPUT = ("arguments", "input", "args")
#: The keys of a source of a context; these are kept whatever their values.
CONTEXT: Table = {
    "kind": spelled(clean_name, "kind", "type"),
    "path": spelled(clean_name, "path", "file", "file_path"),
    "scope": spelled(clean_name, "scope"),
    "hash": spelled(clean_name, "hash", "sha256", "digest"),
    "truncated": spelled(not_null, "truncated"),
    "error": spelled(not_null, "error"),
}
OUTPUT = ("output", "result", "content")
#: Why an answer ended, here, by how programs say it.
FINISH: Mapping[str, str] = finishes(
    "stop", "end_turn", "completed", "length", "max_tokens", "tool-calls",
    "tool_calls", "tool_use", "error", "failed", "cancelled", "canceled",
    "aborted", "interrupted", "other",
)  # fmt: skip
FINISH_KEYS = ("finish", "finish_reason", "stop_reason")


def _is_finish(value: Any) -> bool:
    return text(value) and FINISH.get(value) == value


def _is_error(value: Any) -> bool:
    return is_object(value) and value != {}


#: The end of an answer: reasons and errors in other forms stay in the record.
ENDED: Table = {
    **ANSWER,
    "finish": spelled(_is_finish, FINISH_KEYS[0]),
    "error": spelled(_is_error, "error"),
}
COST: Table = {"cost": ANSWER["cost"]}
#: The columns of a message that is no answer: its cost counts if it is `COUNTED`.
STATED: Table = {name: key for name, key in ENDED.items() if name != "cost"}
#: Says that the cost and the usage of an event are its own, and not a sum of others.
COUNTED = "counted"
#: How a call ended, by the words of programs for it; others are not an outcome.
OUTCOME: Mapping[str, str] = aliases.OUTCOME
OUTCOME_KEYS = ("outcome", "status")

USER, SYSTEM, STARTED = "user_message", "system_message", "assistant_started"
FINISHED, CALLED, RETURNED = "assistant_finished", "tool_started", "tool_finished"
RENAMED = "session_renamed"
#: The parts of a message of role ``tool`` that are no results.
RETURNED_PARTS = "tool_message"
#: A part of an answer that is neither a text nor a call; the key of its block, too.
PART = "part"
#: The kind of a record that is equal to the one before it.
REPEATED = "repeated"
#: Records that are messages of a role, by their type; `type_of` is the way back.
ROLES: Mapping[str, str] = {
    USER: "user",
    "user": "user",
    SYSTEM: "system",
    "system": "system",
    RETURNED: "tool",
    RETURNED_PARTS: "tool",
}
#: A record that states the kind of its event: records of that type are something else.
EVENT = "event"
_TYPES: Mapping[str, str] = {"user": USER, "system": SYSTEM, "tool": RETURNED}
#: Records that are a text of an answer each, and the type of its part: our own log has
#: the first two.
SAID: Mapping[str, str] = {
    "text_finished": "text",
    "reasoning_finished": "reasoning",
    "assistant_text": "text",
    "assistant_reasoning": "reasoning",
}
#: Records that are of an answer; a complete one may be a single record.
OF_ANSWER = frozenset({STARTED, FINISHED, CALLED, "assistant_message", *SAID})
#: Records that are known here under another name.
KINDS: Mapping[str, str] = {RENAMED: "title_change"}
#: Types of records that are no events of that kind.
_RESERVED = OF_ANSWER | ROLES.keys() | KINDS.keys() | {PART, EVENT, "session_meta"}
#: Types by which a log is recognised.
TYPES = OF_ANSWER | {USER, RETURNED}


def is_of_answer(record: Record) -> bool:
    """Return whether a record is one of those of an answer."""
    kind = record["type"]
    return kind in OF_ANSWER or (kind == PART and is_block(record.get(PART)))


def is_block(value: Any) -> bool:
    """Return whether *value* is an object with a type."""
    return is_object(value) and usable_id(value.get("type"))


def take_time(record: Record) -> int | None:
    """Return when a record was written; an integer in Unix ms leaves it."""
    is_timeless = not keys_in(record, TIME)
    if is_timeless or TIMELESS in record:
        own_times = [record[key] for key in keys_in(record, (TIMELESS,))]
        record[TIMELESS] = [is_timeless, *own_times]

    _, written = first_fitting(record, TIME, not_null)
    return take_spelled(record, _IN_MS).get("ms", _time_of(written))


def _time_of(written: Any) -> int | None:
    """Return the Unix ms of a text, or of a number with a fraction."""
    if type(written) is float and isfinite(written) and in_ms(int(written)):
        return int(written)
    return time_in_utc(written)


def put_time(record: Record, ms: int | None) -> None:
    """Write the time of a record that has none of its own."""
    is_timeless, *own_times = as_list(record.get(TIMELESS)) or [False]
    if own_times:
        record[TIMELESS] = own_times[0]
    elif is_timeless:
        del record[TIMELESS]
    if not is_timeless and not keys_in(record, TIME):
        record[TIME[0]] = ms


def type_of(role: str, kind: str | None) -> str:
    """Return the type of the record that a message is written as."""
    if role == "event" and kind in _RESERVED:
        return EVENT
    return _TYPES.get(role, kind or "custom")


def kind_of(record: Record) -> str:
    """Return the kind of the event that a record is."""
    kind: str = record["type"]
    if kind == EVENT and clean_name(record.get("kind")):
        return str(record["kind"])
    return KINDS.get(kind, kind)
