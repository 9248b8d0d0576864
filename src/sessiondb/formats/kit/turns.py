"""The usage of answers, if a program records it in events of its own.

A response may be several messages, and its counts an event of kind ``usage`` beside
them. Formats without such events have counts on answers alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from sessiondb.dataclass import replace
from sessiondb.model import Message

_NAMES = (
    "cost",
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
)
_NO_COUNTS: dict[str, Any] = dict.fromkeys(_NAMES)
_counts_of = attrgetter(*_NAMES)


def with_usage(messages: Iterable[Message]) -> list[Message]:
    """Return *messages* with the usage of all events on answers.

    An event of kind ``usage`` belongs to the answer before it in its turn, else to the
    first one after it, else to the last one before. It is counted once, also if
    branches continue a turn, and has no counts itself then (see `is_moved`). Without
    any answer it keeps them.
    """
    messages = list(messages)
    answers = _answers_of_usage(messages)
    events: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        if message.seq in answers:
            events[answers[message.seq]].append(message)

    moved = []
    for message in messages:
        if message.seq in answers:
            moved.append(replace(message, **_NO_COUNTS))
        else:
            moved.append(_add_counts(message, events.get(message.seq, ())))
    return moved


def as_usage(answer: Message) -> Message:
    """Return an answer that a format cannot have as an event with its usage alone."""
    return replace(answer, role="event", kind="usage", parts=())


def is_moved(message: Message) -> bool:
    """Return whether the counts of an event, if it had any, are on an answer."""
    return message.kind == "usage" and set(_counts_of(message)) == {None}


def _answers_of_usage(messages: Sequence[Message]) -> dict[int, int]:
    """Return the answer that each usage belongs to, both by their seqs."""
    in_turn: dict[int | None, int] = {}
    earlier: dict[int | None, int] = {}
    for message in messages:
        seq, parent_seq = message.seq, message.parent_seq
        if message.role == "assistant":
            in_turn[seq] = earlier[seq] = seq
            continue
        if parent_seq in earlier:
            earlier[seq] = earlier[parent_seq]
        if parent_seq in in_turn and message.role != "user":
            in_turn[seq] = in_turn[parent_seq]

    # Of several branches the oldest one comes last here.
    later: dict[int | None, int] = {}
    for message in reversed(messages):
        if message.role == "assistant":
            later[message.parent_seq] = message.seq
        elif message.seq in later:
            later[message.parent_seq] = later[message.seq]

    nearest = {**earlier, **later, **in_turn}
    usage = [message.seq for message in messages if message.kind == "usage"]
    return {seq: nearest[seq] for seq in usage if seq in nearest}


def _add_counts(message: Message, events: Iterable[Message]) -> Message:
    """Return *message* with the counts of *events*; None if none has any."""
    for event in events:
        sums: dict[str, Any] = {}
        for name in _NAMES:
            counts = [getattr(message, name), getattr(event, name)]
            known_counts = [count for count in counts if count is not None]
            sums[name] = sum(known_counts) if known_counts else None
        message = replace(message, **sums)
    return message
