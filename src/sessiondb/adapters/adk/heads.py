"""Sessions as ADK has them, and as a row of the database states them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from google.adk.events.event import Event
from google.adk.sessions import Session
from pydantic import PrivateAttr

from sessiondb import codec
from sessiondb.adapters.adk.state import state_of
from sessiondb.adapters.adk.statements import HEAD_WIDTH


class AdkPlace(NamedTuple):
    """Where a session ends: its id in the database, and the seq of its last event."""

    session_id: str
    leaf: int | None


class AdkSession(Session):
    """A session as ADK has it, which knows where it ends in the database."""

    _place: AdkPlace | None = PrivateAttr(default=None)

    @property
    def place(self) -> AdkPlace | None:
        """Where the session ended when it was read, or written last.

        None if something other than the service made the object.
        """
        return self._place

    def move_to(self, place: AdkPlace) -> Self:
        """Set where the session ends, and return it."""
        self._place = place
        return self


def place_in(session: Session) -> AdkPlace | None:
    """Return where a session ends, if its object knows it."""
    return session.place if isinstance(session, AdkSession) else None


class AdkHead(NamedTuple):
    """A session without its events."""

    session_id: str
    leaf: int | None
    last_seq: int
    app: str
    user: str
    id: str
    state: dict[str, Any]
    #: The time of the last event, in seconds.
    updated: float
    #: None if it has no event, or ends with a message of another program.
    last_event_id: str | None

    @property
    def place(self) -> AdkPlace:
        """Where the session ends."""
        return AdkPlace(self.session_id, self.leaf)

    def listed(self, shared: dict[str, Any]) -> Session:
        """Return the session as a list has it, with the *shared* state of others."""
        return Session(
            app_name=self.app,
            user_id=self.user,
            id=self.id,
            state={**self.state, **shared},
            last_update_time=self.updated,
        )

    def session(
        self, shared: dict[str, Any], events: Sequence[Event] = ()
    ) -> AdkSession:
        """Return the session with its events, and with the *shared* state of others."""
        return AdkSession(
            app_name=self.app,
            user_id=self.user,
            id=self.id,
            state={**self.state, **shared},
            events=list(events),
            last_update_time=self.updated,
        ).move_to(self.place)


def head_of(app: str, columns: Sequence[Any]) -> AdkHead | None:
    """Return the session of a row; None if another program made it under our name."""
    session_id, leaf, last_seq, metadata, leaf_time, data, *blob = columns[:HEAD_WIDTH]
    facts = json.loads(metadata).get("adk")
    if facts is None:
        return None
    event_id, updated = None, facts["time_created"]
    if leaf_time is not None:
        record = _leaf_record(data, *blob)
        event_id = record.get("id")
        updated = record.get("timestamp", leaf_time / 1000)
    return AdkHead(
        session_id,
        leaf,
        last_seq,
        app,
        facts["user_id"],
        facts["id"],
        state_of(facts["state"]),
        updated,
        event_id,
    )


def _leaf_record(
    data: bytes | None, size: int | None, encoding: str | None, content: bytes | None
) -> Mapping[str, Any]:
    """Return what the last message of a session has of an event; {} for nothing."""
    if content is not None:
        data = codec.content_of_blob(size or 0, encoding or "", content)
    record: Mapping[str, Any] | str = codec.unpack(data).get("adk", {})
    return json.loads(record) if isinstance(record, str) else record
