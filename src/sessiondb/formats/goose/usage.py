"""The counts of answers, and the rest of a session's sums as one event.

Since 1.50 an answer states the tokens and the cost of its request. Before that no
message does: the session has sums over its requests, and since schema 15 a ledger of
them, of which the larger number counts (as in ``get_session_usage_totals``). Any
of these that answers state count for them. Counts of the last request are not sums.

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
    fitting,
    take_fields,
    value_at,
    without_empty,
    without_none,
)
from sessiondb.formats.kit.usage import CACHES, disjoint_tokens
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


def accumulated_sums(info: Mapping[str, Any]) -> Record:
    """Return the sums of a session by column, from either form of its record."""
    usage = as_object(info.get("accumulated_usage"))
    nested = {name: usage.get(key) for name, key in NESTED.items()}
    flat = {name: info.get(ACCUMULATED + name) for name in TOKEN_COLUMNS}

    # Of a record with both forms the object counts: it also has what caches took.
    return {**flat, **without_none(nested), "cost": info.get("accumulated_cost")}


def tokens_of_usage(used: Any) -> Tokens | None:
    """Return the counts that the metadata of an answer states, disjoint."""
    return disjoint_tokens(take_fields(dict(as_object(used)), ANSWER), CACHES)


def cost_of_usage(used: Any) -> float | None:
    """Return the cost that the metadata of an answer states."""
    amount: float | None = fitting(value_at(used, "cost"), cost)
    return amount


def carried_event(
    name: str, info: Mapping[str, Any], time: int | None
) -> MessageDraft | None:
    """Return the event of the sums that a session was written for Goose with, if any.

    *name* is its id, *info* the record of the session.
    """
    # Without what the answers state that were written with them.
    totals = _amounts_at(info, STATED)
    sums = _amounts_at(info, CARRIED)
    carried = {key: _subtract_from(sums[key], [totals.get(key)]) for key in sums}
    if not any(carried.values()):
        return None
    paid = fitting(carried.get("cost"), cost)
    draft = _usage_draft(name, time, carried)
    others = take_fields(dict(as_object(value_at(info, *REST))), _REST)
    tokens = Tokens(**others) if others else _disjoint_tokens(carried)
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
    answered = list(answers)
    totals, began = accumulated_sums(info), _amounts_at(info, CARRIED)
    sums = {
        key: _larger_sum(totals[key], [row.get(key) for row in rows]) for key in totals
    }
    own_sums = {key: _subtract_from(sums[key], [began.get(key)]) for key in sums}
    if not any(own_sums.values()):
        return None

    # The sums it began with include those of answers that were written for Goose.
    earlier = _amounts_at(info, STATED)
    tokens = _uncounted_tokens(
        _disjoint_tokens(own_sums),
        [tokens_of_usage(answer) for answer in answered],
        _disjoint_tokens(earlier),
    )
    later = _subtract_from(
        sum(cost_of_usage(answer) or 0 for answer in answered), [earlier.get("cost")]
    )
    paid = fitting(_subtract_from(own_sums["cost"], [later]), cost)
    # Of a session that comes back the answers may state everything.
    is_empty = not paid and not any((tokens or Tokens()).columns())
    if is_empty and value_at(info, *OURS):
        return None
    draft = _usage_draft(name, time, totals, **without_empty({"ledger": rows}))
    return replace(draft, tokens=tokens, cost=paid)


def _usage_draft(
    name: str, time: int | None, sums: Record, **data: Any
) -> MessageDraft:
    facts = {"accumulated": without_none(sums), **data}
    return MessageDraft("event", id=name, kind="usage", time_created=time, data=facts)


def _amounts_at(info: Mapping[str, Any], path: tuple[str, ...]) -> Record:
    """Return the numbers of an object in the record of a session."""
    amounts = as_object(value_at(info, *path))
    return {key: number for key, number in amounts.items() if amount(number)}


def usage_of_answer(answer: Message) -> Record | None:
    """Return the usage of an answer as its metadata states it; None if it is unknown.

    What caches took is within the input, and reasoning is output.
    """
    tokens = answer.tokens or Tokens()
    input_tokens = _known_sum(tokens.input, tokens.cache_read, tokens.cache_write)
    output_tokens = _known_sum(tokens.output, tokens.reasoning)
    counts = {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": _known_sum(input_tokens, output_tokens),
        "cacheReadTokens": tokens.cache_read,
        "cacheWriteTokens": tokens.cache_write,
        "cost": answer.cost,
    }
    return without_none(counts) or None


def sums_at_export(session: Session, answers: Iterable[Message]) -> Record:
    """Return what an extension says of the sums of a session that is written for Goose.

    *answers* are those that state their usage themselves.
    """
    answered = list(answers)
    used = [usage_of_answer(answer) or {} for answer in answered]
    totals = {
        name: _known_sum(*(counts.get(key) for counts in used))
        for name, key in _STATED.items()
    }
    others = {
        name: _subtract_from(
            count, [getattr(answer.tokens, name, None) for answer in answered]
        )
        for name, count in asdict(session.tokens).items()
    }
    facts = {
        CARRIED[-1]: without_none(accumulated_sums(flat_tokens(session))),
        STATED[-1]: without_none(totals),
        REST[-1]: without_none(others),
    }
    return without_empty(facts)


def flat_tokens(session: Session) -> Record:
    """Return the sums of a session, which Goose counts with what caches took."""
    tokens = session.tokens
    input_tokens = _known_sum(tokens.input, tokens.cache_read, tokens.cache_write)
    output_tokens = _known_sum(tokens.output, tokens.reasoning)
    return {
        **dict.fromkeys(TOKEN_COLUMNS[:3]),
        "accumulated_total_tokens": _known_sum(input_tokens, output_tokens),
        "accumulated_input_tokens": input_tokens,
        "accumulated_output_tokens": output_tokens,
        "accumulated_cost": session.cost,
    }


def _known_sum(*counts: Any) -> Any:
    """Return the sum of the counts that are known; None if none is known."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


def _uncounted_tokens(
    tokens: Tokens | None, answers: Iterable[Tokens | None], earlier: Tokens | None
) -> Tokens | None:
    """Return the counts of a session that none of its answers states.

    *earlier* is what answers stated with which it began.
    """
    if tokens is None:
        return None

    counted_answers = [asdict(answer) for answer in answers if answer]
    counted = asdict(earlier or Tokens())
    left = {}
    for name, total in without_none(asdict(tokens)).items():
        uncounted = _subtract_from(
            sum(counts[name] or 0 for counts in counted_answers), [counted[name]]
        )
        left[name] = _subtract_from(total, [uncounted])
    return Tokens(**left)


def _subtract_from(total: Any, parts: Iterable[Any]) -> Any:
    """Return what a total has besides the *parts* numbers; None without a total.

    Answers of another session, which this one is a copy of, may be more than its own.
    """
    if total is None:
        return None
    left = max(0, total - sum(part or 0 for part in parts))
    # No fraction of a cent that only the sum of other fractions makes.
    return round(left, 9) if isinstance(left, float) else left


def _larger_sum(total: Any, rows: list[Any]) -> Any:
    """Return the larger of a total and the sum of the rows; None without a number."""
    numbers = [number for number in rows if amount(number)]
    sums = [sum(numbers)] if numbers else []
    if amount(total):
        sums.append(total)
    return max(sums, default=None)


def _disjoint_tokens(sums: Record) -> Tokens | None:
    """Return disjoint counts; None if they contradict each other.

    Goose counts what came from a cache, or went into it, as input: as OpenAI and Google
    do, and where a provider counts it apart it is added (``get_usage`` in
    ``formats/anthropic.rs``, ``Usage::from_cache_exclusive_input`` for Bedrock).
    """
    counts = {column: sums.get(f"{column}_tokens") for column in _COLUMNS}
    known_counts = without_none(counts)
    for number in known_counts.values():
        # Sums of a ledger may be anything that a row has.
        if not count(number):
            return None
    return disjoint_tokens(known_counts, CACHES)
