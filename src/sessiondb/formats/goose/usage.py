"""The counts of answers, and the rest of a session's sums as one event.

Since 1.50 an answer states the tokens of its request. Before that no message does: the
session has sums over its requests, and since schema 15 a ledger of them, of which the
larger number counts (as in ``get_session_usage_totals``). What answers state of these
is theirs. Counts of the last request alone are no sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sessiondb.formats.goose.fields import (
    ACCUMULATED,
    ANSWER,
    NESTED,
    TOKEN_COLUMNS,
)
from sessiondb.formats.kit.fields import (
    amount,
    as_object,
    cost,
    count,
    fitting,
    take,
    without_none,
)
from sessiondb.formats.kit.usage import CACHES, disjoint
from sessiondb.model import MessageDraft, Tokens

Record = dict[str, Any]
_COLUMNS = ("input", "output", "cache_read", "cache_write")


def accumulated(info: Mapping[str, Any]) -> Record:
    """Return the sums of a session by column, from either form of its record."""
    usage = as_object(info.get("accumulated_usage"))
    nested = {name: usage.get(key) for name, key in NESTED.items()}
    flat = {name: info.get(ACCUMULATED + name) for name in TOKEN_COLUMNS}

    # Of a record with both forms the object counts: it also has what caches took.
    return {**flat, **without_none(nested), "cost": info.get("accumulated_cost")}


def stated_in(used: Any) -> Tokens | None:
    """Return the counts that the metadata of an answer states, disjoint."""
    return disjoint(take(dict(as_object(used)), ANSWER), CACHES)


def usage_event(
    name: str,
    info: Mapping[str, Any],
    ledger: Iterable[Record],
    answers: Iterable[Any],
    time: int | None,
) -> MessageDraft | None:
    """Return the event of a session's sums; None if it has none.

    Without those of its *answers*, which count by themselves.
    """
    rows = list(ledger)
    stated = accumulated(info)
    sums = {key: _larger(stated[key], [row.get(key) for row in rows]) for key in stated}
    if not any(sums.values()):
        return None

    data = {"accumulated": without_none(stated)}
    if rows:
        data["ledger"] = rows  # type: ignore[assignment]

    return MessageDraft(
        "event",
        id=name,
        kind="usage",
        tokens=_rest(_tokens(sums), answers),
        cost=fitting(sums["cost"], cost),
        time_created=time,
        data=data,
    )


def _rest(tokens: Tokens | None, answers: Iterable[Any]) -> Tokens | None:
    """Return the counts of a session that none of its answers states.

    Answers of another session, which this one is a copy of, may be more than its own.
    """
    found = list(filter(None, map(stated_in, answers)))
    if tokens is None or not found:
        return tokens

    left = without_none(asdict(tokens))
    for answer in map(asdict, found):
        left = {name: left[name] - (answer[name] or 0) for name in left}
    return Tokens(**{name: max(0, left[name]) for name in left})


def _larger(stated: Any, rows: list[Any]) -> Any:
    numbers = list(filter(amount, rows))
    known = [sum(numbers)] if numbers else []
    known += filter(amount, [stated])
    return max(known, default=None)


def _tokens(sums: Record) -> Tokens | None:
    """Return disjoint counts; None if they contradict each other.

    Goose counts what came from a cache, or went into it, as input: as OpenAI and Google
    do, and where a provider counts it apart it is added (``get_usage`` in
    ``formats/anthropic.rs``, ``Usage::from_cache_exclusive_input`` for Bedrock).
    """
    found = {column: sums[f"{column}_tokens"] for column in _COLUMNS}
    known = without_none(found)
    # Sums of a ledger may be anything that a row has.
    return disjoint(known, CACHES) if all(map(count, known.values())) else None
