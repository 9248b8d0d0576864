"""How calls ended, and which call started a subagent."""

from __future__ import annotations

import re
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    value_at,
)
from sessiondb.formats.kit.json import load_object, load_text
from sessiondb.patterns import late_pattern

Record = dict[str, Any]

#: Characters of a result that say how it ended; the rest is output, which may say
#: anything.
_BEGINNING = 400
_ABORTED = late_pattern(r"aborted(?: by user|\Z)")
_EXIT_CODE = late_pattern(
    r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE
)
#: Tools that start a subagent.
_SPAWNING_TOOLS = ("spawn_agent", "spawnAgent")


def ending_of(outcome: str | None) -> dict[str, Any]:
    """Return the columns of a result with an *outcome*; None is not a failure."""
    return {"outcome": outcome, "status": "error" if outcome else None}


def outcome_of_item(item: Record) -> str | None:
    """Return the outcome of a call by its item, or by an event of its own."""
    status = as_string(item.get("status")).lower()
    if status == "failed":
        return "failed"
    if status == "declined":
        return "denied"

    result = as_object(item.get("result"))
    answer = as_object(result.get("Ok"))
    if item.get("success") is False or "Err" in result:
        return "failed"
    if answer.get("isError") is True or answer.get("is_error") is True:
        return "failed"
    return _outcome_of_exit(item.get("exit_code"))


def outcome_of_text(result: str) -> str | None:
    """Return the outcome that the text of a result names; None for success."""
    start = result[:_BEGINNING]
    if _ABORTED.match(start):
        return "interrupted"
    if "rejected by user" in start:
        return "denied"

    if start.startswith('{"output"'):
        try:
            record = load_object(result.encode("utf-8", "surrogatepass"))
            return _outcome_of_exit(value_at(record, "metadata", "exit_code"))
        except ValueError:
            pass

    match = _EXIT_CODE.search(start.partition("\nOutput:\n")[0])
    return None if match is None else _outcome_of_exit(int(match[1]))


def _outcome_of_exit(code: Any) -> str | None:
    """Return the outcome of a command with that exit code."""
    return "failed" if type(code) is int and code != 0 else None


def call_that_spawned(payload: Record, thread: str) -> str | None:
    """Return the call that started a subagent, if that is what a record says."""
    item = as_object(payload.get("item"))
    # Later calls of other tools name the agents that they wait for, too.
    is_spawning = item.get("tool") in _SPAWNING_TOOLS
    if is_spawning and thread in as_list(item.get("receiver_thread_ids")):
        return as_text(item.get("id"))

    if payload.get("new_thread_id") == thread or _spawned_agent(payload) == thread:
        return as_text(payload.get("call_id"))
    return None


def _spawned_agent(payload: Record) -> Any:
    """Return the agent that the result of a call names."""
    try:
        return value_at(load_text(as_string(payload.get("output"))), "agent_id")
    except ValueError:
        return None
