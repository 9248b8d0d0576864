"""Answers and their calls, as far as the records of both generations are alike."""

from __future__ import annotations

from typing import Any

from sessiondb.formats.kit.fields import (
    amount,
    as_list,
    as_object,
    integer,
    text,
    value_at,
)
from sessiondb.model import Part, PartDraft, Tokens
from sessiondb.model.aliases import FINISHES
from sessiondb.model.draft import NO_INPUT
from sessiondb.patterns import late_pattern

#: The name of a call without one; a tool part must have one.
NAMELESS = "unknown"
#: The counts of an answer by their place in ``tokens``, in the order of `Tokens`.
COUNTS = (
    ("input",),
    ("output",),
    ("reasoning",),
    ("cache", "read"),
    ("cache", "write"),
)

#: Why an answer ended. "cancelled" is sessiondb's word for an answer that did not end
#: by itself: if OpenCode writes that word, it stays in the record.
_FINISHES = frozenset(FINISHES) - {"cancelled"}
# The texts are those of OpenCode's permission and question tools, 0.5 to 2.0.
_DENIED = late_pattern(
    r"(\w*Error: )?The user "
    r"(rejected permission to use"
    r"|has specified a rule which prevents"
    r"|dismissed this question)"
)
_ABORTED = "Tool execution aborted"


def take_finish(record: dict[str, Any]) -> str | None:
    """Move the finish of an answer out of its *record*; None if it has none.

    A reason without a word here is ``other``, and stays in the record.
    """
    finish = record.get("finish")
    if type(finish) is not str:
        return None
    if finish not in _FINISHES:
        return "other"

    del record["finish"]
    return finish


def finish_of(finish: str | None) -> str | None:
    """Return *finish* as OpenCode writes it; None for an answer that was cut off."""
    return None if finish == "cancelled" else finish


def outcome_of(error: str, details: Any) -> str:
    """Return the outcome of a call that ended with *error*.

    It is ``denied``, ``interrupted`` or ``failed``; *details* are the metadata of the
    call's state.
    """
    if _DENIED.match(error):
        return "denied"
    if error == _ABORTED or value_at(details, "interrupted") is True:
        return "interrupted"
    return "failed"


def input_of(part: Part | PartDraft) -> Any:
    """Return the arguments of a call, None if it has none."""
    return None if part.input is NO_INPUT else part.input


def child_sessions(part: dict[str, Any]) -> list[str]:
    """Return the ids of the sessions that a call started.

    Later versions name them in the metadata of its state; 0.5 lists their parts there.
    """
    details = as_object(value_at(part, "state", "metadata"))
    ids = [details.get("sessionId"), details.get("sessionID")]
    ids += [value_at(item, "sessionID") for item in as_list(details.get("summary"))]
    return [session for session in ids if text(session)]


def counts_of(tokens: Tokens | None) -> dict[str, Any]:
    """Return *tokens* as both generations count them; 0 for an unknown number."""
    columns = Tokens().columns() if tokens is None else tokens.columns()
    return _token_record([count or 0 for count in columns])


def usage_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the cost and the tokens of all *records*; odd numbers count as 0."""
    costs = [record.get("cost") for record in records]
    counts = []
    for path in COUNTS:
        column = [value_at(record, "tokens", *path) for record in records]
        counts.append(sum(count for count in column if integer(count)))

    return {
        "cost": sum(cost for cost in costs if amount(cost)),
        "tokens": _token_record(counts),
    }


def _token_record(counts: list[int]) -> dict[str, Any]:
    """Return the record of counts in the order of `COUNTS`."""
    new, output, reasoning, read, write = counts
    return {
        "input": new,
        "output": output,
        "reasoning": reasoning,
        "cache": {"read": read, "write": write},
    }
