"""The turns of a session: a prompt, and what follows it up to the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessiondb.dataclass import replace
from sessiondb.model import Message
from sessiondb.model.purposes import ANSWER, PROMPT


def with_last_answers(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield *messages*, the answers without their texts but for the last of each turn.

    A turn is held until it ends: only then it is known which answer is its last.
    """
    turn: list[Message] = []
    for message in messages:
        if message.purpose == PROMPT:
            yield from _with_last_answer(turn)
            turn.clear()
        turn.append(message)
    yield from _with_last_answer(turn)


def _with_last_answer(turn: list[Message]) -> Iterator[Message]:
    last = None
    for message in turn:
        if message.purpose == ANSWER and message.text.strip():
            last = message
    for message in turn:
        if message.purpose != ANSWER or message is last:
            yield message
        else:
            parts = tuple([part for part in message.parts if part.type != "text"])
            yield replace(message, parts=parts)
