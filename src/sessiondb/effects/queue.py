"""The queue of a unit: its effects, and enough to refuse at once what cannot commit.

Effects are added in the order of their verbs and never taken out. An effect that has
no verb of its own, such as the renewal of a lease, is added as it is. Only what the
unit wrote itself is known here; everything else is left to the transaction.
"""

from __future__ import annotations

from typing import Protocol

from sessiondb.effects.project import ProjectPlace
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Engine
from sessiondb.errors import ConflictError, InvalidInputError
from sessiondb.model.handles import MessageHandle, PartHandle, PartKey


class Effect(Protocol):
    """One validated write."""

    @property
    def verb(self) -> str:
        """The name that errors use."""

    def apply(self, tx: Transaction) -> None:
        """Apply it inside an open transaction."""


class Queue:
    """Effects that commit together.

    ``effects`` and ``places`` are read by others and filled by `add` alone;
    ``committed`` and ``tried`` belong to the writer.
    """

    def __init__(self, engine: Engine) -> None:
        #: That of the database to which the unit is committed.
        self.engine = engine
        self.effects: list[Effect] = []
        #: Directories whose facts git completes before the commit.
        self.places: list[ProjectPlace] = []
        #: By the id of an opened session: the handles of what is written into it.
        self.followers: dict[str, list[MessageHandle | PartHandle]] = {}
        #: After how many ms the first value that it writes expires; None if none does.
        self.shortest_ttl: int | None = None
        #: Whether it reads, or changes rows that no name tells before: then no other
        #: transaction writes until it ends.
        self.is_alone = False
        #: True once the unit is on disk.
        self.committed = False
        #: True once a transaction applied it: it may be on disk.
        self.tried = False

    def add(self, *effects: Effect) -> None:
        """Queue effects; raises `InvalidInputError` once the unit is committed."""
        if self.committed:
            raise InvalidInputError("this unit is committed; begin another one")
        self.effects += effects

    def follow_append(self, *handles: MessageHandle | PartHandle) -> None:
        """Let handles have the id that the commit gives to an opened session."""
        for handle in handles:
            if handle.session_id in self.followers:
                self.followers[handle.session_id].append(handle)

    def add_place(self, place: ProjectPlace) -> ProjectPlace:
        """Have the facts of *place* completed before the commit, and return it."""
        self.places.append(place)
        return place


class Staged:
    """The staged state of one unit, by session id."""

    def __init__(self) -> None:
        self._created: set[str] = set()
        self._deleted: set[str] = set()
        self._open: dict[tuple[str, str | int], bool] = {}
        self._settled: set[tuple[str, PartKey]] = set()

    def live(self, session_id: str) -> str:
        """Return the id; raises `ConflictError` if this unit deletes the session."""
        if session_id in self._deleted:
            raise ConflictError(f"this unit deletes session {session_id}")
        return session_id

    def create(self, session_id: str) -> None:
        """Record a new session; raises `ConflictError` if the unit makes it twice."""
        if session_id in self._created:
            raise ConflictError(f"this unit creates session {session_id} twice")
        self._created.add(self.take_id(session_id))

    def take_id(self, session_id: str) -> str:
        """Return the id of a new session, which this unit may have deleted before."""
        self._deleted.discard(session_id)
        return session_id

    def creates(self, name: str) -> bool:
        """Return whether the unit makes the session or message with this id."""
        return name in self._created or any(name == key for _, key in self._open)

    def delete(self, session_id: str) -> None:
        """Record that the unit deletes a session, whose id is free then."""
        # Twice is a conflict as well.
        self._deleted.add(self.live(session_id))
        self._created.discard(session_id)
        self._open = {
            key: is_open for key, is_open in self._open.items() if key[0] != session_id
        }

    def append(self, handle: MessageHandle, is_open: bool, own_id: bool) -> None:
        """Record a message and whether it is open."""
        key = (self.live(handle.session_id), handle.id)
        # Ids that were made here are new.
        if key in self._open and own_id:
            raise ConflictError(f"this unit writes message {handle.id} twice")
        self._open[key] = is_open

    def finish(self, session_id: str, message: str | int) -> None:
        """Record that a message is complete; twice in one unit is refused."""
        key = (self.live(session_id), message)
        if self._open.get(key) is False:
            raise InvalidInputError(f"message {message} is finished already")
        self._open[key] = False

    def start(self, session_id: str, part: PartKey) -> None:
        """Raise `InvalidInputError` for a call that this unit settled."""
        if (session_id, part) in self._settled:
            raise InvalidInputError(f"call {part.name} is settled already")

    def settle(self, session_id: str, part: PartKey) -> None:
        """Record the result of a call; a second one in one unit is refused."""
        self.start(session_id, part)
        self._settled.add((session_id, part))
