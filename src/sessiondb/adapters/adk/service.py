"""ADK's session service on a database of sessiondb.

An event is appended with its changes of state in one transaction, which fails if the
session does not end where the caller's copy of it ends. So an event never follows one
that its agent did not see, whichever process wrote that, and a session that did not
change is never called stale, whatever the clocks say.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as adk_time
from google.adk.platform import uuid as adk_uuid
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import (
    GetSessionConfig,
    ListSessionsResponse,
)

from sessiondb.adapters.adk import statements as sql
from sessiondb.adapters.adk.events import (
    event_of,
    exact_draft,
    message_id,
    opaque_draft,
    time_ms,
)
from sessiondb.adapters.adk.heads import (
    AdkHead,
    AdkPlace,
    AdkSession,
    head_of,
    place_in,
)
from sessiondb.adapters.adk.keys import SOURCE, AdkKey, scope_of, scopes_of_app
from sessiondb.adapters.adk.reading import read_events
from sessiondb.adapters.adk.state import (
    OF_APPS,
    OF_USERS,
    StateDelta,
    decoded_state,
    delta_by_scope,
    shared_state,
    state_of,
    stored_state,
    updated_state,
)
from sessiondb.adapters.opening import AsyncStoreUser, Where
from sessiondb.effects import SessionHandle, Unit
from sessiondb.errors import (
    CodecError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
)

_STALE = (
    "The session has been modified in storage since it was loaded. "
    "Please reload the session before appending more events."
)


class SessionDBSessionService(AsyncStoreUser, BaseSessionService):
    """A session service of Google ADK on a database of sessiondb.

    *database* is a path, a URL or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. The database is opened by the first call.
    It may be used from any event loop and any number of processes, and is an
    asynchronous context manager that closes the store it opened.
    """

    def __init__(self, database: Where = None, **options: Any) -> None:
        super().__init__(database, options)

    @classmethod
    def from_uri(cls, uri: str, **_: Any) -> Self:
        """Return the service of ``sessiondb:///PATH``, for ADK's service registry.

        The rest of the URI is as in ``sqlite:///PATH``; further arguments of ADK
        (``agents_dir``) have no meaning here.
        """
        return cls("sqlite:" + uri.partition(":")[2])

    # -- sessions ----------------------------------------------------------------

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Make a session; raises `AlreadyExistsError` if there is one with this id.

        White space around an id is not part of it, and without one it is a new UUID.
        """
        name = (session_id or "").strip() or adk_uuid.new_uuid()
        key = AdkKey(app_name, user_id, name)
        delta = delta_by_scope(state)
        created = adk_time.get_time()
        facts = {
            "user_id": user_id,
            "id": name,
            "time_created": created,
            "state": stored_state(delta.session),
        }
        try:
            async with self.store.effects() as fx:
                opened = fx.open_session(
                    key.source_id,
                    source=SOURCE,
                    directory=None,
                    agent=app_name,
                    scope=key.scope,
                    time=time_ms(created),
                    metadata={"adk": facts},
                )
                fx.expect(opened, absent=True)
                _update_shared_states(fx, key, delta)
        except ConflictError as error:
            raise AlreadyExistsError(
                f"Session with id {name} already exists."
            ) from error
        app_state, user_state = await self._values(
            (OF_APPS, scopes_of_app(app_name)[0]), (OF_USERS, key.scope)
        )
        head = AdkHead(
            opened.id, None, 0, app_name, user_id, name, delta.session, created, None
        )
        return head.session(shared_state(app_state, user_state))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events; None if there is none with this id."""
        key = AdkKey.named(app_name, user_id, session_id)
        while True:
            row = await self._head_and_state(key)
            if row is None:
                return None
            head, shared = row
            events = await read_events(self.store, head, config)
            if events is not None:
                return head.session(shared, events)
            # Removed since: there is none, or another one by now.

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of a user, or of all users, without their events.

        The one that was used last comes last.
        """
        app, end = scopes_of_app(app_name)
        if user_id is None:
            bounds = {"app": app, "end": end}
            rows = await self.store.select(sql.HEADS_OF_APP, bounds)
            states = dict(await self.store.select(sql.STATES_OF_USERS, bounds))
        else:
            scope = scope_of(app_name, user_id)
            rows = await self.store.select(
                sql.HEADS_OF_USER, {"app": app, "scope": scope}
            )
            states = {scope: rows[0][-1]} if rows else {}
        if not rows:
            return ListSessionsResponse()

        app_state = decoded_state(rows[0][sql.HEAD_WIDTH])
        shared: dict[str, dict[str, Any]] = {}
        heads = [head for row in rows if (head := head_of(app_name, row)) is not None]
        heads.sort(key=lambda head: (head.updated, head.user, head.id))
        for user in {head.user for head in heads}:
            user_state = decoded_state(states.get(scope_of(app_name, user)))
            shared[user] = shared_state(app_state, user_state)
        sessions: list[Session] = [head.listed(shared[head.user]) for head in heads]
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """Remove a session with its events, if there is one; forks of it stay."""
        row = await self._head_and_state(AdkKey.named(app_name, user_id, session_id))
        if row is None:
            return
        # Another process may have been faster.
        with suppress(NotFoundError):
            async with self.store.effects() as fx:
                fx.delete(SessionHandle(row[0].session_id), keep_forks=True)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user, without prefixes; {} for none."""
        (state,) = await self._values((OF_USERS, scope_of(app_name, user_id)))
        return state

    # -- events ------------------------------------------------------------------

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event to a session, with its changes of state, and return it.

        A partial event is not stored. Raises `StaleSessionError` if the session has
        changed since it was read, and `SessionNotFoundError`. An event that is the
        last one already, of a caller who was cancelled, is not stored again.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        delta = delta_by_scope(event.actions.state_delta)
        key = AdkKey(session.app_name, session.user_id, session.id)
        is_named = True
        while True:
            place = await self._place_of(session, key)
            conflict: Exception | None = None
            seq = 0
            try:
                seq = await self._append(place, session, event, delta, with_id=is_named)
            except (ConflictError, NotFoundError) as error:
                conflict = error
            if seq > (place.leaf or 0):
                return self._appended(session, event, AdkPlace(place.session_id, seq))

            # Tasks of an invocation share the object, and another one was faster.
            if place_in(session) not in (None, place):
                continue
            head = await self._existing_head(key)
            if await self._stored_event(head.place, event.id) == event:
                return self._found(session, event, head)
            if head.place == place and is_named:
                is_named = False  # another event has its id
            elif head.place == place:
                raise conflict or StaleSessionError(_STALE)
            elif place_in(session) is not None:
                raise StaleSessionError(_STALE) from conflict

    async def _append(
        self,
        place: AdkPlace,
        session: Session,
        event: Event,
        delta: StateDelta,
        *,
        with_id: bool,
    ) -> int:
        """Write an event that follows *place*, and return its seq.

        It is that of an earlier message if one with the id of the event is there.
        Without *with_id* the message has another id, and its parent is the last one.
        """
        handle = SessionHandle(place.session_id)
        own_id = message_id(event.id) if with_id else None
        options = _branch_of(session, event) if with_id else {}
        async with self.store.effects() as fx:
            fx.expect(handle, leaf=place.leaf)
            try:
                message = fx.append(handle, exact_draft(event, own_id), **options)
            except (InvalidInputError, CodecError):
                # An agent that runs elsewhere runs here.
                draft = opaque_draft(event, own_id)
                message = fx.append(handle, draft, **options)
            if delta.session:
                fx.update_metadata(handle, lambda it: _with_state(delta.session, it))
            key = AdkKey(session.app_name, session.user_id, session.id)
            _update_shared_states(fx, key, delta)
        assert message.seq is not None, "the unit is committed"
        return message.seq

    def _appended(self, session: Session, event: Event, place: AdkPlace) -> Event:
        """Add an event that is stored to the session of the caller."""
        if isinstance(session, AdkSession):
            session.move_to(place)
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    def _found(self, session: Session, event: Event, head: AdkHead) -> Event:
        """Add an event that was stored earlier, unless the caller's session has it."""
        if any(earlier.id == event.id for earlier in session.events):
            return event
        # With later events the session of the caller stays stale.
        is_last = head.last_event_id == event.id
        place = head.place if is_last else place_in(session) or head.place
        return self._appended(session, event, place)

    async def _place_of(self, session: Session, key: AdkKey) -> AdkPlace:
        """Return where the caller's session ends.

        An object without a place, made of JSON perhaps, is compared as ADK does it.
        """
        place = place_in(session)
        if place is not None:
            return place
        head = await self._existing_head(key)
        last_id = session.events[-1].id if session.events else None
        if head.updated > session.last_update_time and head.last_event_id != last_id:
            raise StaleSessionError(_STALE)
        return head.place

    # -- reads -------------------------------------------------------------------

    async def _head_and_state(
        self, key: AdkKey
    ) -> tuple[AdkHead, dict[str, Any]] | None:
        """Return a session, and the state that it shares; None for none."""
        rows = await self.store.select(
            sql.HEAD,
            {
                "source_id": key.source_id,
                "app": scopes_of_app(key.app)[0],
                "scope": key.scope,
            },
        )
        head = head_of(key.app, rows[0]) if rows else None
        if head is None:
            return None
        app_state, user_state = rows[0][sql.HEAD_WIDTH :]
        return head, shared_state(decoded_state(app_state), decoded_state(user_state))

    async def _existing_head(self, key: AdkKey) -> AdkHead:
        """Return a session; raises `SessionNotFoundError`."""
        row = await self._head_and_state(key)
        if row is None:
            raise SessionNotFoundError(f"Session {key.id} not found.")
        return row[0]

    async def _stored_event(self, place: AdkPlace, event_id: str) -> Event | None:
        """Return the event of a session that has an id; None for none."""
        own_id = message_id(event_id)
        if own_id is None:
            return None
        try:
            messages = await self.store.messages(
                SessionHandle(place.session_id), ids=[own_id], resolve=False
            )
        except NotFoundError:
            return None
        return event_of(messages[0]) if messages else None

    async def _values(
        self, *addresses: tuple[tuple[str, str], str]
    ) -> list[dict[str, Any]]:
        """Return the states at some addresses, in their order."""
        values = await self.store.values_of(addresses)
        return [state_of(value and value.value) for value in values]


def _branch_of(session: Session, event: Event) -> dict[str, Any]:
    """Return after which message an event is written; {} for the last one.

    ADK rewinds to before an invocation by an event: what follows is another branch.
    """
    invocation = event.actions.rewind_before_invocation_id
    if invocation is None:
        return {}
    previous_id = None
    for earlier in session.events:
        if earlier.invocation_id == invocation:
            return {"after": previous_id}
        previous_id = earlier.id
    return {}


def _update_shared_states(fx: Unit, key: AdkKey, delta: StateDelta) -> None:
    """Queue the changes of the state of an app and of a user."""
    if delta.app:
        app_key = scopes_of_app(key.app)[0]
        fx.update_value(OF_APPS, app_key, lambda it: updated_state(delta.app, it))
    if delta.user:
        fx.update_value(OF_USERS, key.scope, lambda it: updated_state(delta.user, it))


def _with_state(
    delta: dict[str, Any], metadata: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the metadata of a session with a change of its state."""
    facts = (metadata or {}).get("adk", {})
    state = updated_state(delta, facts.get("state"))
    return {**(metadata or {}), "adk": {**facts, "state": state}}
