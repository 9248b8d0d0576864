"""The messages of agents, and the states of graphs and swarms.

A message is stored under a name that its index decides, after the message before it:
the transaction compares, so that of two processes that write one index the second one
fails, as on any repository that does not overwrite messages. The states of graphs and
swarms are values beside the sessions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from strands.types.exceptions import SessionException
from strands.types.session import SessionMessage

from sessiondb.adapters.opening import Where, is_given, open_store
from sessiondb.adapters.strands.agents import (
    ATTEMPTS,
    AgentRepository,
    marked_unordered,
)
from sessiondb.adapters.strands.keys import (
    AgentKey,
    check_strands_id,
    printable_key,
    session_namespace,
)
from sessiondb.adapters.strands.messages import (
    exact_draft,
    message_of_agent,
    plain_draft,
)
from sessiondb.effects import SessionHandle, Unit
from sessiondb.errors import CodecError, ConflictError, InvalidInputError, NotFoundError
from sessiondb.model import Message, MessageDraft
from sessiondb.model.handles import MessageHandle

if TYPE_CHECKING:
    from strands.multiagent.base import MultiAgentBase


class SessionDBRepository(AgentRepository):
    """A repository of Strands' sessions on a database of sessiondb.

    *database* is a path, a URL, or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. Strands does not pass on which *model*
    of which *provider* answers: state them, and answers have their costs. It may be
    used from any thread and any number of processes, and is a context manager that
    closes the store it opened.
    """

    def __init__(
        self,
        database: Where = None,
        *,
        model: str | None = None,
        provider: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(open_store(database, **options))
        self._owns_store = not is_given(database)
        self._model, self._provider = model, provider

    def close(self) -> None:
        """Close the store, if this object opened it."""
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- messages ------------------------------------------------------------------

    def create_message(
        self,
        session_id: str,
        agent_id: str,
        session_message: SessionMessage,
        **_: Any,
    ) -> None:
        """Store a new message of an agent.

        Raises `SessionException` if there is no such agent, or the index is taken.
        """
        key = AgentKey.named_by(session_id, agent_id)
        index = session_message.message_id
        name = key.name_of_message(index)
        previous = key.name_of_message(index - 1)

        def append(fx: Unit, session: SessionHandle) -> None:
            # The path ends with the message before it, so nothing has its index.
            leaf = MessageHandle(session.id, previous) if index else None
            fx.expect(session, leaf=leaf)
            self._append(fx, session, session_message, name)

        session = self._handle_of(key)
        try:
            with self.store.effects() as fx:
                append(fx, session)
        except (ConflictError, NotFoundError):
            self._handles.pop(key, None)
            self._append_out_of_order(key, session_message, name, previous)

    def _append(
        self,
        fx: Unit,
        session: SessionHandle,
        message: SessionMessage,
        name: str,
        **place: Any,
    ) -> None:
        for make_draft in (self._draft_of, plain_draft):
            try:
                fx.append(session, make_draft(message, name), **place)
            except (InvalidInputError, CodecError):
                # An agent that runs elsewhere runs here.
                if make_draft is plain_draft:
                    raise
            else:
                return

    def _draft_of(self, message: SessionMessage, name: str) -> MessageDraft:
        return exact_draft(message, name, self._model, self._provider)

    def _append_out_of_order(
        self, key: AgentKey, message: SessionMessage, name: str, previous: str
    ) -> None:
        """Store a message that does not follow the one with the index before it."""
        for attempt in range(ATTEMPTS):
            session = self._handle_of(key)
            try:
                revision = self.store.session(session).revision
                names = [
                    stored.id
                    for stored in self.store.messages(session, ids=[name, previous])
                ]
                if name in names:
                    raise SessionException(
                        f"Message {message.message_id} already exists in agent "
                        f"{key.agent_id} in session {key.session_id}"
                    )
                place: dict[str, Any] = {}
                if previous in names:
                    place["after"] = MessageHandle(session.id, previous)
                with self.store.effects() as fx:
                    fx.expect(session, revision=revision)
                    fx.update_metadata(session, marked_unordered)
                    self._append(fx, session, message, name, **place)
            except (ConflictError, NotFoundError):
                self._handles.pop(key, None)
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_: Any
    ) -> SessionMessage | None:
        """Return the message with an index; None if there is none."""
        key = AgentKey.named_by(session_id, agent_id)
        name = key.name_of_message(message_id)
        stored = self._read_message(key, name)
        return None if stored is None else message_of_agent(stored, message_id)

    def _read_message(self, key: AgentKey, name: str) -> Message | None:
        while (session := self._find_handle(key)) is not None:
            try:
                messages = self.store.messages(session, ids=[name])
            except NotFoundError:
                # Removed since it was remembered; another one may have its name.
                self._handles.pop(key, None)
            else:
                return messages[0] if messages else None
        return None

    def update_message(
        self,
        session_id: str,
        agent_id: str,
        session_message: SessionMessage,
        **_: Any,
    ) -> None:
        """Replace a message, which keeps the time of its creation.

        Nothing of the former text stays, in the search neither. Of a message with a
        ``redact_message`` that alone is stored. Raises `SessionException` if there is
        no such message.
        """
        index = session_message.message_id
        key = AgentKey.named_by(session_id, agent_id)
        name = key.name_of_message(index)
        previous = self.read_message(session_id, agent_id, index)
        if previous is None:
            raise SessionException(f"Message {index} does not exist")
        session_message.created_at = previous.created_at

        def replace(fx: Unit, session: SessionHandle) -> None:
            place = MessageHandle(session.id, name)
            for make_draft in (self._draft_of, plain_draft):
                try:
                    fx.replace(session, place, make_draft(session_message, name))
                except (InvalidInputError, CodecError):
                    if make_draft is plain_draft:
                        raise
                else:
                    return

        try:
            self._write(key, replace)
        except NotFoundError as error:
            raise SessionException(f"Message {index} does not exist") from error

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **_: Any,
    ) -> list[SessionMessage]:
        """Return *limit* messages of an agent by their index, without the first ones.

        *offset* is how many of these. Raises `SessionException` if there is no such
        agent.
        """
        key = AgentKey.named_by(session_id, agent_id)
        stored = self._stored_agent(key)
        if stored is None:
            raise self._missing_agent(key)
        session = SessionHandle(stored.id)
        end = None if limit is None else offset + limit
        is_range = offset >= 0 and (limit is None or limit >= 0)
        if is_range and stored.is_ordered:
            last = stored.last_seq if end is None else min(end, stored.last_seq)
            messages = self._messages_in_order(key, session, range(offset, last))
            if messages is not None:
                return messages
        return self._all_messages(key, session)[offset:end]

    def _messages_in_order(
        self, key: AgentKey, session: SessionHandle, indexes: range
    ) -> list[SessionMessage] | None:
        """Return the messages with *indexes*, of which others may have the last ones.

        None if one is not where it should be, to which only removals lead.
        """
        names = [key.name_of_message(index) for index in indexes]
        try:
            stored = self.store.messages(session, ids=names)
        except NotFoundError as error:
            raise self._missing_agent(key) from error
        messages: list[SessionMessage] = []
        for message, name, index in zip(stored, names, indexes, strict=False):
            if message.id != name or message.seq != index + 1:
                return None
            messages.append(message_of_agent(message, index))
        return messages

    def _all_messages(
        self, key: AgentKey, session: SessionHandle
    ) -> list[SessionMessage]:
        messages = [
            message_of_agent(message, index)
            for message in self.store.messages(session, branches=True)
            if (index := key.index_of_message(message.id)) is not None
        ]
        messages.sort(key=lambda message: message.message_id)
        return messages

    # -- graphs and swarms ---------------------------------------------------------

    def create_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **_: Any
    ) -> None:
        """Store the state of a graph or swarm, in place of an earlier one.

        Raises `SessionException` if there is no such session.
        """
        address = _multi_agent_address(session_id, multi_agent.id)
        state = json.dumps(multi_agent.serialize_state())
        with self.store.effects() as fx:
            self._expect_session(fx, session_id)
            fx.set_value(*address, state)

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **_: Any
    ) -> dict[str, Any] | None:
        """Return the state of a graph or swarm; None if there is none."""
        address = _multi_agent_address(session_id, multi_agent_id)
        stored = self.store.value(*address)
        if stored is None:
            return None
        state: dict[str, Any] = json.loads(stored.value)
        return state

    def update_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **_: Any
    ) -> None:
        """Replace the state of a graph or swarm.

        Raises `SessionException` if there is none.
        """
        address = _multi_agent_address(session_id, multi_agent.id)
        state = multi_agent.serialize_state()

        def replace_state(stored: Any) -> Any:
            if stored is None:
                raise SessionException(
                    f"MultiAgent state {multi_agent.id} in session {session_id} "
                    "does not exist"
                )
            return json.dumps(state)

        self.store.update_value(*address, replace_state)


def _multi_agent_address(
    session_id: str, multi_agent_id: str
) -> tuple[tuple[str, ...], str]:
    """Return where the state of a graph or swarm is stored; raises `ValueError`."""
    name = printable_key(check_strands_id(multi_agent_id, "agent"))
    return (*session_namespace(session_id), "multi_agents"), name
