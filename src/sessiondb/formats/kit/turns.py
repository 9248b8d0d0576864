"""The usage of answers, if a program records it in events of its own.

A response may be several messages, and its counts an event of kind ``usage`` beside
them. Formats without such events have counts on answers alone.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from sessiondb.model import Message

_NAMES = (
    "cost",
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
)
_MOVED: dict[str, Any] = dict.fromkeys(_NAMES)
_counts = attrgetter(*_NAMES)


def with_usage(messages: Iterable[Message]) -> list[Message]:
    """Return *messages* with the usage of all events on answers.

    An event of kind ``usage`` belongs to the answer before it in its turn, else to the
    first one after it, else to the last one before. It is counted once, also where
    branches continue a turn, and has no counts itself then (see `is_moved`). Without
    any answer it keeps them.
    """
    found = list(messages)
    answers = _answers(found)
    usage: dict[int, list[Message]] = defaultdict(list)
    for message in found:
        if message.seq in answers:
            usage[answers[message.seq]].append(message)

    return [
        replace(message, **_MOVED)
        if message.seq in answers
        else _with(message, usage.get(message.seq, ()))
        for message in found
    ]


def as_usage(answer: Message) -> Message:
    """Return an answer that a format cannot have as an event with its usage alone."""
    return replace(answer, role="event", kind="usage", parts=())


def is_moved(message: Message) -> bool:
    """Return whether the counts of an event, if it had any, are on an answer."""
    return message.kind == "usage" and set(_counts(message)) == {None}


def _answers(messages: Sequence[Message]) -> dict[int, int]:
    """Return the answer that each usage belongs to, both by their seqs."""
    in_turn: dict[int | None, int] = {}
    after: dict[int | None, int] = {}
    before: dict[int | None, int] = {}
    for message in messages:
        seq, above = message.seq, message.parent_seq
        if message.role == "assistant":
            in_turn[seq] = before[seq] = seq
            continue
        if above in before:
            before[seq] = before[above]
        if above in in_turn and message.role != "user":
            in_turn[seq] = in_turn[above]

    # Of several branches the oldest one comes last here.
    for message in reversed(messages):
        if message.role == "assistant":
            after[message.parent_seq] = message.seq
        elif message.seq in after:
            after[message.parent_seq] = after[message.seq]

    nearest = ChainMap(in_turn, after, before)
    usage = (message.seq for message in messages if message.kind == "usage")
    return {seq: nearest[seq] for seq in usage if seq in nearest}


def _with(message: Message, usage: Iterable[Message]) -> Message:
    for event in usage:
        sums = map(_sum, _counts(message), _counts(event))
        message = replace(message, **dict(zip(_NAMES, sums, strict=True)))
    return message


def _sum(*counts: float | None) -> Any:
    """Return the sum of the counts that are known; None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
