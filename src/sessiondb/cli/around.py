"""Things that belong to a message, or to a session: around it, behind it, above it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sessiondb.errors import NotFoundError
from sessiondb.model.purposes import ANSWER, PROMPT

if TYPE_CHECKING:
    from sessiondb import Session, Store
    from sessiondb.model import Message
    from sessiondb.model.handles import SessionRef


def messages_around(
    store: Store, session: Session, seq: int, number: int
) -> list[Message]:
    """Return the message at *seq* with *number* prompts and answers on each side.

    Also whatever is between them; of a message off the live path those of all branches.
    """
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


def origin_of(store: Store, session: Session) -> Session:
    """Return the session that a fork goes back to, over any forks that were made here.

    One that was imported, or that is not a fork, is its own origin. The program that
    has its origin is the one in which a fork is continued.
    """
    while session.time_imported is None and session.relation == "fork":
        if session.parent_id is None:  # it was removed
            break
        try:
            session = store.session(session.parent_id)
        except NotFoundError:  # it was deleted
            break
    return session


def with_results(store: Store, session: SessionRef, last: Message) -> Message:
    """Return the message with the last result of the calls of *last*, else *last*.

    A result may be several records behind its call, but not behind a prompt or the
    next answer: what ends there would keep more than was asked for. Calls that were
    made at once are an answer each in some programs; they stay together.
    """
    if not _call_ids(last, "tool"):
        return last

    # On the live path first: another branch may begin at the same answer.
    for branches in (False, True):
        end = _last_result(store.walk(session, branches=branches), last)
        if end is not last:
            return end
    return last


def _last_result(messages: Iterable[Message], last: Message) -> Message:
    """Return the message of a branch with most results of *last*, else *last*."""
    end, most = last, 0
    # By seq: the calls that wait for a result there, and how many results there were.
    states = {last.seq: (_call_ids(last, "tool"), 0)}
    for message in messages:
        if message.parent_seq not in states:
            continue
        waiting, count = states[message.parent_seq]
        if message.purpose == PROMPT:
            continue
        if message.purpose == ANSWER:
            calls = _call_ids(message, "tool")
            if count or not calls:
                continue
            waiting = waiting | calls
        results = _call_ids(message, "tool-result") & waiting
        waiting, count = waiting - results, count + len(results)
        states[message.seq] = waiting, count
        if count > most:
            end, most = message, count
        if not waiting:
            break
    return end


def _call_ids(message: Message, type_of_part: str) -> set[str]:
    """Return the ids of the calls, or of the calls whose results, a message holds."""
    return {
        part.call_id
        for part in message.parts
        if part.type == type_of_part and part.call_id is not None
    }
