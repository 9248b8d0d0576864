"""Answers and their calls, as far as the records of both generations are alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sessiondb.formats.kit.fields import (
    amount,
    as_list,
    as_object,
    integer,
    text,
    within,
)
from sessiondb.model import Part, PartDraft, Tokens
from sessiondb.model.aliases import FINISHES
from sessiondb.model.draft import NO_INPUT

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
#: by itself: where OpenCode writes that word, it stays in the record.
_FINISHES = frozenset(FINISHES) - {"cancelled"}
# The texts are those of OpenCode's permission and question tools, 0.5 to 2.0.
_DENIED = re.compile(
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


def outcome(error: str, details: Any) -> str:
    """Return the outcome of a call that ended with *error*.

    It is ``denied``, ``interrupted`` or ``failed``; *details* are the metadata of the
    call's state.
    """
    if _DENIED.match(error):
        return "denied"
    if error == _ABORTED or within(details, "interrupted") is True:
        return "interrupted"
    return "failed"


def input_of(part: Part | PartDraft) -> Any:
    """Return the arguments of a call, None if it has none."""
    given = part.input
    return None if given is NO_INPUT else given


def children(part: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of the sessions that a call started.

    Later versions name them in the metadata of its state; 0.5 lists their parts there.
    """
    details = as_object(within(part, "state", "metadata"))
    named = [details.get("sessionId"), details.get("sessionID")]
    named += [within(shown, "sessionID") for shown in as_list(details.get("summary"))]
    yield from filter(text, named)


def counts_of(tokens: Tokens | None) -> dict[str, Any]:
    """Return *tokens* as both generations count them; what is unknown is 0."""
    known = tokens or Tokens()
    counts = [count or 0 for count in known.columns()]
    return _tokens(*counts)


def spent(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the cost and the tokens of all *records*; odd numbers count as 0."""
    costs = (record.get("cost") for record in records)
    columns = (
        [within(record, "tokens", *path) for record in records] for path in COUNTS
    )
    counts = (sum(filter(integer, column)) for column in columns)

    return {"cost": sum(filter(amount, costs)), "tokens": _tokens(*counts)}


def _tokens(input_: int, output: int, reasoning: int, *cache: int) -> dict[str, Any]:
    read, write = cache
    return {
        "input": input_,
        "output": output,
        "reasoning": reasoning,
        "cache": {"read": read, "write": write},
    }
