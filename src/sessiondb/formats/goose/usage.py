"""The counts of answers, and the rest of a session's sums as one event.

Since 1.50 an answer states the tokens and the cost of its request. Before that no
message does: the session has sums over its requests, and since schema 15 a ledger of
them, of which the larger number counts (as in ``get_session_usage_totals``). What
answers state of these counts for them. Counts of the last request are not sums.

A session that was written for Goose begins with the sums that it had here. They are an
event of their own, which is already counted here if the session comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from sessiondb.formats.goose.fields import (
    ACCUMULATED,
    ANSWER,
    CARRIED,
    NESTED,
    OURS,
    TOKEN_COLUMNS,
)
from sessiondb.formats.kit.fields import (
    amount,
    as_object,
    cost,
    count,
    filled,
    fitting,
    take,
    within,
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


def cost_in(used: Any) -> float | None:
    """Return the cost that the metadata of an answer states."""
    stated: float | None = fitting(within(used, "cost"), cost)
    return stated


def carried_event(
    name: str, info: Mapping[str, Any], time: int | None
) -> MessageDraft | None:
    """Return the event of the sums that a session was written for Goose with, if any.

    *name* is its id, *info* the record of the session.
    """
    carried = _carried(info)
    if not any(carried.values()):
        return None
    paid = fitting(carried.get("cost"), cost)
    draft = _event(name, time, carried)
    return replace(draft, tokens=_tokens(carried), cost=paid)


def usage_event(
    name: str,
    info: Mapping[str, Any],
    ledger: Iterable[Record],
    answers: Iterable[Any],
    time: int | None,
) -> MessageDraft | None:
    """Return the event of a session's other sums, or None.

    Without those of its *answers*, which count by themselves.
    """
    rows = list(ledger)
    found = list(answers)
    stated, carried = accumulated(info), _carried(info)
    sums = {key: _larger(stated[key], [row.get(key) for row in rows]) for key in stated}
    own = {key: _less(sums[key], [carried.get(key)]) for key in sums}
    if not any(own.values()):
        return None

    tokens = _rest(_tokens(own), map(stated_in, found))
    paid = fitting(_less(own["cost"], map(cost_in, found)), cost)
    # Of a session that comes back the answers may state everything.
    is_empty = not any((paid, *(tokens or Tokens()).columns()))
    if is_empty and within(info, *OURS):
        return None
    draft = _event(name, time, stated, **filled({"ledger": rows}))
    return replace(draft, tokens=tokens, cost=paid)


def _event(name: str, time: int | None, sums: Record, **data: Any) -> MessageDraft:
    known = {"accumulated": without_none(sums), **data}
    return MessageDraft("event", id=name, kind="usage", time_created=time, data=known)


def _carried(info: Mapping[str, Any]) -> Record:
    """Return the sums that a session was written for Goose with, by column."""
    carried = as_object(within(info, *CARRIED))
    return {name: number for name, number in carried.items() if amount(number)}


def _rest(tokens: Tokens | None, answers: Iterable[Tokens | None]) -> Tokens | None:
    """Return the counts of a session that none of its answers states."""
    if tokens is None:
        return None

    found = [asdict(answer) for answer in answers if answer]
    known = without_none(asdict(tokens))
    left = {name: _less(known[name], [of[name] for of in found]) for name in known}
    return Tokens(**left)


def _less(total: Any, known: Iterable[Any]) -> Any:
    """Return what a total has besides the *known* numbers; None without a total.

    Answers of another session, which this one is a copy of, may be more than its own.
    """
    if total is None:
        return None
    left = max(0, total - sum(filter(None, known)))
    # No fraction of a cent that only the sum of other fractions makes.
    return round(left, 9) if isinstance(left, float) else left


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
    found = {column: sums.get(f"{column}_tokens") for column in _COLUMNS}
    known = without_none(found)
    # Sums of a ledger may be anything that a row has.
    return disjoint(known, CACHES) if all(map(count, known.values())) else None
