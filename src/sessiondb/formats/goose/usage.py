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
    REST,
    STATED,
    TOKEN_COLUMNS,
)
from sessiondb.formats.kit.fields import (
    Fields,
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
from sessiondb.model import Message, MessageDraft, Session, Tokens

Record = dict[str, Any]
_COLUMNS = ("input", "output", "cache_read", "cache_write")
#: The counts of a session that no answer states, by column.
_REST: Fields = {name: (name, count) for name in (*_COLUMNS, "reasoning")}
#: The sums of a session, and where answers state what is in them.
_STATED = {
    "total_tokens": "totalTokens",
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadTokens",
    "cache_write_tokens": "cacheWriteTokens",
    "cost": "cost",
}


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
    rest = take(dict(as_object(within(info, *REST))), _REST)
    tokens = Tokens(**rest) if rest else _tokens(carried)
    return replace(draft, tokens=tokens, cost=paid)


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
    stated, began = accumulated(info), _amounts(info, CARRIED)
    sums = {key: _larger(stated[key], [row.get(key) for row in rows]) for key in stated}
    own = {key: _less(sums[key], [began.get(key)]) for key in sums}
    if not any(own.values()):
        return None

    # What answers stated that were written for Goose is among the sums it began with.
    before = _amounts(info, STATED)
    tokens = _rest(_tokens(own), map(stated_in, found), _tokens(before))
    later = _less(sum(filter(None, map(cost_in, found))), [before.get("cost")])
    paid = fitting(_less(own["cost"], [later]), cost)
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
    """Return the sums that a session was written for Goose with, by column.

    Without what the answers state that were written with it.
    """
    stated = _amounts(info, STATED)
    carried = _amounts(info, CARRIED)
    return {key: _less(number, [stated.get(key)]) for key, number in carried.items()}


def _amounts(info: Mapping[str, Any], path: tuple[str, ...]) -> Record:
    """Return the numbers of an object in the record of a session."""
    found = as_object(within(info, *path))
    return {key: number for key, number in found.items() if amount(number)}


def used_by(answer: Message) -> Record | None:
    """Return the usage of an answer as its metadata states it; None if it is unknown.

    What caches took is within the input, and reasoning is output.
    """
    tokens = answer.tokens or Tokens()
    given = _sum(tokens.input, tokens.cache_read, tokens.cache_write)
    made = _sum(tokens.output, tokens.reasoning)
    known = {
        "inputTokens": given,
        "outputTokens": made,
        "totalTokens": _sum(given, made),
        "cacheReadTokens": tokens.cache_read,
        "cacheWriteTokens": tokens.cache_write,
        "cost": answer.cost,
    }
    return without_none(known) or None


def begun_with(session: Session, answers: Iterable[Message]) -> Record:
    """Return what an extension says of the sums of a session that is written for Goose.

    *answers* are those that state their usage themselves.
    """
    found = list(answers)
    used = [used_by(answer) or {} for answer in found]
    stated = {
        name: _sum(*(of.get(key) for of in used)) for name, key in _STATED.items()
    }
    rest = {
        name: _less(count, [getattr(of.tokens, name, None) for of in found])
        for name, count in asdict(session.tokens).items()
    }
    known = {
        CARRIED[-1]: without_none(accumulated(flat_tokens(session))),
        STATED[-1]: without_none(stated),
        REST[-1]: without_none(rest),
    }
    return filled(known)


def flat_tokens(session: Session) -> Record:
    """Return the sums of a session, which Goose counts with what caches took."""
    tokens = session.tokens
    given = _sum(tokens.input, tokens.cache_read, tokens.cache_write)
    made = _sum(tokens.output, tokens.reasoning)
    return {
        **dict.fromkeys(TOKEN_COLUMNS[:3]),
        "accumulated_total_tokens": _sum(given, made),
        "accumulated_input_tokens": given,
        "accumulated_output_tokens": made,
        "accumulated_cost": session.cost,
    }


def _sum(*counts: Any) -> Any:
    """Return the sum of the counts that are known; None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _rest(
    tokens: Tokens | None, answers: Iterable[Tokens | None], before: Tokens | None
) -> Tokens | None:
    """Return the counts of a session that none of its answers states.

    *before* is what answers stated with which it began.
    """
    if tokens is None:
        return None

    found = [asdict(answer) for answer in answers if answer]
    counted = asdict(before or Tokens())
    left = {}
    for name, known in without_none(asdict(tokens)).items():
        stated = _less(sum(of[name] or 0 for of in found), [counted[name]])
        left[name] = _less(known, [stated])
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
