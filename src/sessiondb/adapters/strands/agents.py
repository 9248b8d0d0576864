"""The sessions of Strands and their agents, each of which is a session here.

A session of Strands may have no agent yet, so its record is a value beside the
sessions. It counts the agents that were made: a session is removed with exactly those
agents that it has.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import (
    Session,
    SessionAgent,
    SessionType,
    decode_bytes_values,
)

from sessiondb.adapters.strands import statements as sql
from sessiondb.adapters.strands.keys import (
    SOURCE,
    AgentKey,
    session_namespace,
    session_scope,
)
from sessiondb.adapters.strands.messages import AS_JSON, milliseconds_of
from sessiondb.effects import SessionHandle, Unit
from sessiondb.errors import CodecError, ConflictError, NotFoundError
from sessiondb.store import Store

#: How often a unit is made that other processes come in between of. Each time one of
#: them has written, so no session stands still.
ATTEMPTS = 100
#: Agents whose sessions are remembered.
_MOST_AGENTS = 1024
_RECORD = "session"
#: The key of the metadata of an agent's session that states that its messages were not
#: written in the order of their indexes, or not all of them.
_UNORDERED = "unordered"
_AGENT_FIELDS = [field.name for field in fields(SessionAgent)]

Metadata = Mapping[str, Any]


class StoredAgent(NamedTuple):
    """The session of an agent, as `statements.AGENT` reads it."""

    id: str
    metadata: str
    message_count: int
    last_seq: int

    @property
    def is_ordered(self) -> bool:
        """Whether the message with index n is the one with seq n + 1."""
        if self.message_count != self.last_seq:
            return False
        # The states of an agent may be large: mostly they are not decoded for this.
        if f'"{_UNORDERED}"' not in self.metadata:
            return True
        return _UNORDERED not in json.loads(self.metadata)[SOURCE]


class AgentRepository(SessionRepository):
    """The part of a repository that is about sessions and agents."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # It saves reads, and is never trusted: a unit for a session that was removed
        # fails, whatever has its name now.
        self._handles: OrderedDict[AgentKey, SessionHandle] = OrderedDict()

    # -- sessions ------------------------------------------------------------------

    def create_session(self, session: Session, **_: Any) -> Session:
        """Store a new session; raises `SessionException` if it exists."""
        namespace = session_namespace(session.session_id)
        exists = f"Session {session.session_id} already exists"
        if self._agents_in(session.session_id):
            raise SessionException(exists)
        try:
            self.store.set_value(
                namespace, _RECORD, _new_record(session), expect_revision=0
            )
        except ConflictError as error:
            raise SessionException(exists) from error
        return session

    def read_session(self, session_id: str, **_: Any) -> Session | None:
        """Return a session; None if there is none."""
        stored = self.store.value(session_namespace(session_id), _RECORD)
        if stored is not None:
            return Session.from_dict(stored.value["session"])
        record = self._record_of_agents(session_id)
        return None if record is None else Session.from_dict(record["session"])

    def delete_session(self, session_id: str, **_: Any) -> None:
        """Remove a session with its agents and their messages; forks of them stay.

        Raises `SessionException` if there is none.
        """
        namespace = session_namespace(session_id)
        for attempt in range(ATTEMPTS):
            stored = self.store.value(namespace, _RECORD)
            agents = self._agents_in(session_id)
            if stored is None and not agents:
                raise SessionException(f"Session {session_id} does not exist")
            try:
                with self.store.effects() as fx:
                    if stored is not None:
                        # An agent that is made meanwhile changes the revision.
                        fx.delete_value(
                            namespace, _RECORD, expect_revision=stored.revision
                        )
                    fx.delete_values(namespace)
                    for agent in agents:
                        fx.delete(agent, keep_forks=True)
            except (ConflictError, NotFoundError):
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    def _agents_in(self, session_id: str) -> list[SessionHandle]:
        """Return the sessions of the agents of a session, oldest first."""
        rows = self.store.select(sql.AGENTS_IN, {"scope": session_scope(session_id)})
        return [SessionHandle(agent_session) for (agent_session,) in rows]

    def _record_of_agents(self, session_id: str) -> dict[str, Any] | None:
        """Return the record of a session whose agents were imported without it."""
        for agent in self._agents_in(session_id)[:1]:
            record = _agent_record(self.store.session(agent).metadata)
            times = record["created_at"], record["updated_at"]
            return _new_record(Session(session_id, SessionType.AGENT, *times))
        return None

    # -- agents --------------------------------------------------------------------

    def create_agent(
        self, session_id: str, session_agent: SessionAgent, **_: Any
    ) -> None:
        """Store a new agent of a session.

        Raises `SessionException` if there is no such session, or the agent exists.
        """
        key = AgentKey.named_by(session_id, session_agent.agent_id)

        def create(metadata: Metadata) -> None:
            with self.store.effects() as fx:
                self._expect_session(fx, session_id, new_agents=1)
                session = fx.open_session(
                    key.source_id,
                    source=SOURCE,
                    agent=key.agent_id,
                    scope=session_scope(session_id),
                    directory=None,
                    time=milliseconds_of(session_agent.created_at),
                    metadata={SOURCE: metadata},
                )
                fx.expect(session, absent=True)
            self._remember(key, SessionHandle(session.id))

        try:
            _with_metadata_of(session_agent, create)
        except ConflictError as error:
            raise SessionException(
                f"Agent {key.agent_id} already exists in session {session_id}"
            ) from error

    def _expect_session(self, fx: Unit, session_id: str, new_agents: int = 0) -> None:
        """Make a unit fail with `SessionException` if there is no such session."""
        namespace = session_namespace(session_id)
        imported = None
        if self.store.value(namespace, _RECORD) is None:
            imported = self._record_of_agents(session_id)

        def count_agents(record: Any) -> Any:
            present = record or imported
            if present is None:
                raise SessionException(f"Session {session_id} does not exist")
            return {**present, "agents": present["agents"] + new_agents}

        fx.update_value(namespace, _RECORD, count_agents)

    def read_agent(
        self, session_id: str, agent_id: str, **_: Any
    ) -> SessionAgent | None:
        """Return an agent of a session; None if there is none."""
        stored = self._stored_agent(AgentKey.named_by(session_id, agent_id))
        if stored is None:
            return None
        record = _agent_record(json.loads(stored.metadata))
        # As `SessionAgent.from_dict`, which inspects its own signature each time.
        values = {key: record[key] for key in _AGENT_FIELDS if key in record}
        return SessionAgent(**decode_bytes_values(values))

    def update_agent(
        self, session_id: str, session_agent: SessionAgent, **_: Any
    ) -> None:
        """Replace the states of an agent, which keeps the time of its creation.

        Raises `SessionException` if there is no such agent.
        """
        key = AgentKey.named_by(session_id, session_agent.agent_id)
        created_at = session_agent.created_at

        def update(metadata: Metadata) -> None:
            def replace_states(stored: Any) -> Any:
                nonlocal created_at
                created_at = _agent_record(stored)["created_at"]
                states = {**metadata, "created_at": created_at}
                if AS_JSON in metadata:
                    record = {**json.loads(metadata[AS_JSON]), "created_at": created_at}
                    states = {AS_JSON: json.dumps(record)}
                if _UNORDERED in stored[SOURCE]:
                    states[_UNORDERED] = True
                return {**stored, SOURCE: states}

            self._write(
                key, lambda fx, session: fx.update_metadata(session, replace_states)
            )

        _with_metadata_of(session_agent, update)
        session_agent.created_at = created_at

    def _stored_agent(self, key: AgentKey) -> StoredAgent | None:
        rows = self.store.select(sql.AGENT, {"source_id": key.source_id})
        if not rows:
            self._handles.pop(key, None)
            return None
        stored = StoredAgent(*rows[0])
        self._remember(key, SessionHandle(stored.id))
        return stored

    def _remember(self, key: AgentKey, session: SessionHandle) -> None:
        self._handles[key] = session
        while len(self._handles) > _MOST_AGENTS:
            self._handles.popitem(last=False)

    def _find_handle(self, key: AgentKey) -> SessionHandle | None:
        """Return the session of an agent, which may be gone; None if there is none."""
        session = self._handles.get(key)
        if session is None:
            stored = self._stored_agent(key)
            session = None if stored is None else SessionHandle(stored.id)
        return session

    def _handle_of(self, key: AgentKey) -> SessionHandle:
        """Return the session of an agent; raises `SessionException`."""
        session = self._find_handle(key)
        if session is None:
            raise self._missing_agent(key)
        return session

    def _missing_agent(self, key: AgentKey) -> SessionException:
        if self.read_session(key.session_id) is None:
            return SessionException(f"Session {key.session_id} does not exist")
        return SessionException(
            f"Agent {key.agent_id} in session {key.session_id} does not exist"
        )

    def _write(
        self, key: AgentKey, queue: Callable[[Unit, SessionHandle], object]
    ) -> None:
        """Commit what *queue* queues for the session of an agent.

        Raises `SessionException` if there is no such agent. If its session was
        removed, and perhaps made again, since it was remembered, it is looked up.
        """
        session = self._handles.get(key)
        if session is not None:
            try:
                with self.store.effects() as fx:
                    queue(fx, session)
            except NotFoundError:
                self._handles.pop(key, None)
            else:
                return
        session = self._handle_of(key)
        with self.store.effects() as fx:
            queue(fx, session)


def _new_record(session: Session) -> dict[str, Any]:
    """Return what is stored of a session; ``agents`` counts those that were made."""
    return {"session": session.to_dict(), "agents": 0}


def _agent_record(metadata: Metadata) -> dict[str, Any]:
    """Return an agent as `SessionAgent.to_dict` does, from the metadata it is in."""
    record: dict[str, Any] = metadata[SOURCE]
    if AS_JSON in record:
        record = json.loads(record[AS_JSON])
    return record


def _with_metadata_of(
    session_agent: SessionAgent, write: Callable[[Metadata], None]
) -> None:
    """Call *write* with an agent as metadata: as JSON text if a column refuses it."""
    record = session_agent.to_dict()
    try:
        write(record)
    except CodecError:
        write({AS_JSON: json.dumps(record)})


def marked_unordered(stored: Any) -> Any:
    """Return the metadata of an agent whose messages are not in order from now on."""
    return {**stored, SOURCE: {**stored[SOURCE], _UNORDERED: True}}
