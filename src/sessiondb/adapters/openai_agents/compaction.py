"""The end of a history, and its replacement by a compaction of it.

The SDK reads the last items, has them compacted, and replaces them if they are still
the last ones. The compaction continues the session from the message before them, so
that people can still read and search what it replaced: it is a branch. Items that are
encrypted say nothing to people, and are removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from agents.items import TResponseInputItem

from sessiondb.adapters.openai_agents.items import (
    Item,
    ItemDraft,
    append_items,
    items_of_messages,
)
from sessiondb.aio import AsyncStore
from sessiondb.dataclass import dataclass
from sessiondb.effects import SessionHandle
from sessiondb.errors import ConflictError, NotFoundError
from sessiondb.model import Message

#: Messages that are read at a time to find those that have expired.
_PAGE = 200


@dataclass(frozen=True)
class CompactionSnapshot:
    """The last items of a session, as `OpenAIResponsesCompactionSession` takes them."""

    items: list[TResponseInputItem]
    #: Whether these are all items of the session.
    complete: bool
    #: Replaces the items from a place in `items` on; False if the session changed.
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]


class HistoryEnd(NamedTuple):
    """The last items of a session at a revision, and the message of each."""

    session: SessionHandle
    revision: int
    items: list[Item]
    messages: list[Message]
    is_complete: bool


async def read_end(
    store: AsyncStore, session: SessionHandle, revision: int, limit: int
) -> HistoryEnd | None:
    """Return the last *limit* items; None if some message has none or several."""
    try:
        # One more says whether these are all.
        messages = await store.messages(session, last=limit + 1)
    except NotFoundError:
        return None
    is_complete = len(messages) <= limit
    messages = messages[-limit:]
    items = []
    for message in messages:
        of_message = items_of_messages([message])
        if len(of_message) != 1:
            return None
        items += of_message
    return HistoryEnd(session, revision, items, messages, is_complete)


async def replace_suffix(
    store: AsyncStore,
    end: HistoryEnd,
    start: int,
    drafts: Sequence[ItemDraft],
    is_expired: Callable[[Any], bool] | None,
) -> bool:
    """Replace the items from *start* on by *drafts*; False if the session changed.

    With *is_expired* the items are encrypted: those that are replaced are removed, and
    so are those at the beginning of the session of which it is true.
    """
    session, replaced = end.session, end.messages[start:]
    if not replaced:
        return False
    expired: list[Message] = []
    try:
        if is_expired is not None:
            expired = await _expired_beginning(store, session, replaced[0], is_expired)
        async with store.effects() as fx:
            # The revision is that of the first read, so nothing has changed since.
            fx.expect(session, revision=end.revision)
            if is_expired is None:
                fx.set_leaf(session, replaced[0].parent_seq)
            else:
                fx.remove(session, [*expired, *replaced])
            append_items(fx, session, drafts)
    except (ConflictError, NotFoundError):
        return False
    return True


async def _expired_beginning(
    store: AsyncStore,
    session: SessionHandle,
    first_replaced: Message,
    is_expired: Callable[[Any], bool],
) -> list[Message]:
    """Return the messages at the beginning of a session whose items have expired."""
    expired: list[Message] = []
    last_read: Message | None = None
    while True:
        page = await store.messages(
            session, after=last_read, before=first_replaced, limit=_PAGE
        )
        for message in page:
            items = items_of_messages([message])
            if not items or not all(is_expired(item) for item in items):
                return expired
            expired.append(message)
        if len(page) < _PAGE:
            return expired
        last_read = page[-1]
