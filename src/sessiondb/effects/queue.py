"""The queue of a unit: what its writer needs to know, without the verbs that fill it.

Effects are added in the order of their verbs and never taken out. An effect that has
no verb of its own, such as the renewal of a lease, is added as it is.
"""

from __future__ import annotations

from typing import Protocol

from sessiondb.effects.project import Place
from sessiondb.effects.transaction import Transaction
from sessiondb.errors import InvalidInputError


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

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        #: Directories whose facts git completes before the commit.
        self.places: list[Place] = []
        #: True once the unit is on disk.
        self.committed = False
        #: True once a transaction applied it: it may be on disk.
        self.tried = False

    def add(self, *effects: Effect) -> None:
        """Queue effects; raises `InvalidInputError` once the unit is committed."""
        if self.committed:
            raise InvalidInputError("this unit is committed; begin another one")
        self.effects += effects

    def add_place(self, place: Place) -> Place:
        """Have the facts of *place* completed before the commit, and return it."""
        self.places.append(place)
        return place
