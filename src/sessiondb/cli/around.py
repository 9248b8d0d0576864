"""The conversation around a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessiondb import Session, Store
    from sessiondb.model import Message


def messages_around(
    store: Store, session: Session, seq: int, number: int
) -> list[Message]:
    """Return the message at *seq* with *number* prompts and answers on each side.

    Also whatever is between them; of a message off the live path those of all branches.
    """
    from sessiondb.model.purposes import ANSWER, PROMPT

    messages = store.messages(session)
    if all(message.seq != seq for message in messages):
        messages = store.messages(session, branches=True)

    index = [message.seq for message in messages].index(seq)
    spoken = [
        position
        for position, message in enumerate(messages)
        if message.purpose in (PROMPT, ANSWER)
    ]
    earlier = [position for position in spoken if position < index]
    later = [position for position in spoken if position > index]
    first = earlier[-number:][0] if number and earlier else index
    last = later[:number][-1] if number and later else index
    return messages[first : last + 1]
