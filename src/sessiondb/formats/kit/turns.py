"""The usage of answers, if a program records it in events of its own.

A response may be several messages, and its counts an event of kind ``usage`` beside
them. Formats without such events have counts on answers alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from sessiondb.model import Message

_NAMES = (
    "cost",
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
)
_counts = attrgetter(*_NAMES)


class _Turn(NamedTuple):
    """The last answer of a turn, and the usage that comes before the first one."""

    answer: int | None = None
    waiting: tuple[Message, ...] = ()


def with_usage(messages: Iterable[Message]) -> list[Message]:
    """Return *messages* with the usage of each turn on its answers.

    An event of kind ``usage`` belongs to the answer before it in its turn, else to the
    first one after it. It is counted once, also where branches continue a turn. One
    outside of turns, or in a turn without answers, is not moved.
    """
    found = list(messages)
    answers = _answers(found)
    usage: dict[int, list[Message]] = defaultdict(list)
    for message in found:
        if message.seq in answers:
            usage[answers[message.seq]].append(message)

    return [_with(message, usage.get(message.seq, ())) for message in found]


def _answers(messages: Sequence[Message]) -> dict[int, int]:
    """Return the answer that each usage belongs to, both by their seqs."""
    found: dict[int, int] = {}
    turns: dict[int | None, _Turn] = {}
    for message in messages:
        turn = turns.get(message.parent_seq)
        if message.role == "user":
            turn = _Turn()
        elif turn is None:
            continue
        elif message.role == "assistant":
            for event in turn.waiting:
                found.setdefault(event.seq, message.seq)
            turn = _Turn(message.seq)
        elif message.kind == "usage" and turn.answer is not None:
            found[message.seq] = turn.answer
        elif message.kind == "usage":
            turn = turn._replace(waiting=(*turn.waiting, message))
        turns[message.seq] = turn

    return found


def _with(message: Message, usage: Iterable[Message]) -> Message:
    for event in usage:
        sums = map(_sum, _counts(message), _counts(event))
        message = replace(message, **dict(zip(_NAMES, sums, strict=True)))
    return message


def _sum(*counts: float | None) -> Any:
    """Return the sum of the counts that are known; None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
