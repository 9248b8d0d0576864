"""The events of a session, read by one statement.

Most events are small: their rows have all of them. A text, a result or a file of a
kilobyte or more is in a blob, and such messages are read as every program reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig

from sessiondb import codec
from sessiondb.adapters.adk import statements as sql
from sessiondb.adapters.adk.events import (
    AdkPart,
    event_of,
    event_of_record,
    time_ms,
)
from sessiondb.adapters.adk.heads import AdkHead
from sessiondb.aio import AsyncStore
from sessiondb.effects import SessionHandle
from sessiondb.errors import NotFoundError


async def read_events(
    store: AsyncStore, head: AdkHead, config: GetSessionConfig | None
) -> list[Event] | None:
    """Return the events of a session that *config* selects, oldest first.

    They are those of all branches: what ADK rewound is an event as before. None if all
    messages were removed since *head* was read.
    """
    is_empty = config is not None and config.num_recent_events == 0
    if head.leaf is None or is_empty:
        return []
    handle = SessionHandle(head.session_id)
    rows = await _rows(store, handle, head.last_seq, config)
    is_selected = config is not None and config.after_timestamp
    if not rows and not is_selected:
        return None

    events: dict[int, Event | None] = {}
    ids_of_large: list[str] = []
    for message_rows in _rows_by_message(rows):
        seq, message_id, data, *_ = message_rows[0]
        if any(row[3] for row in message_rows):
            ids_of_large.append(message_id)
            events[seq] = None
        elif (record := codec.unpack(data).get("adk")) is not None:
            parts = [AdkPart(*columns) for _, _, _, _, *columns in message_rows]
            events[seq] = event_of_record(record, parts)

    if ids_of_large:
        try:
            messages = await store.messages(handle, ids=ids_of_large, resolve=False)
        except NotFoundError:
            return None
        # One that was removed since is not there.
        events |= {message.seq: event_of(message) for message in messages}
    return _selected([it for it in events.values() if it is not None], config)


async def _rows(
    store: AsyncStore,
    handle: SessionHandle,
    last_seq: int,
    config: GetSessionConfig | None,
) -> Sequence[tuple[Any, ...]]:
    parameters: dict[str, Any] = {"session_id": handle, "last_seq": last_seq}
    statement = sql.EVENTS
    if config is not None and config.after_timestamp:
        statement = sql.EVENTS_SINCE
        parameters["since"] = time_ms(config.after_timestamp)
    elif config is not None and config.num_recent_events is not None:
        statement = sql.LAST_EVENTS
        parameters["last"] = config.num_recent_events
    return await store.select(statement, parameters)


def _rows_by_message(
    rows: Sequence[tuple[Any, ...]],
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of each message, which has one for each part."""
    message_rows: list[tuple[Any, ...]] = []
    for row in rows:
        if message_rows and row[0] != message_rows[0][0]:
            yield message_rows
            message_rows = []
        message_rows.append(row)
    if message_rows:
        yield message_rows


def _selected(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    """Return the events that a configuration selects, exactly by their times."""
    if config is None:
        return events
    if config.after_timestamp:
        events = [it for it in events if it.timestamp >= config.after_timestamp]
    if config.num_recent_events is not None:
        events = events[max(len(events) - config.num_recent_events, 0) :]
    return events
