"""Namespaces: which of the sessions that a program calls by one id a session is.

The ids of some programs are unique in one of their stores alone: ``20251120_1`` is the
first session of a day on any machine, ``default`` a conversation of any application. A
store has no id of its own, and may be copied, moved, or reached by another path. So a
session is recognised by how it began, which its copies have in common.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kinship(IntEnum):
    """How well two namespaces agree; `UNLIKE` ones are those of two sessions."""

    UNLIKE = 0
    #: Made at one moment, and the first message of one of them is not known.
    CREATED_ALIKE = 1
    #: Under one name in one file: its first message was removed since.
    IN_PLACE = 2
    BEGINS_ALIKE = 3


class Namespace(NamedTuple):
    """Two marks of the beginning of a session; an unknown mark is empty.

    ``born`` never changes while the session exists, say the moment when it was made; it
    is left empty if the program may make a session again. ``first`` is a digest of its
    first message, which may be removed. A namespace is stored as text, both marks with
    a slash between them; an empty text is the namespace of ids that are unique
    everywhere.
    """

    born: str = ""
    first: str = ""

    @classmethod
    def of(cls, text: str) -> Namespace:
        """Return the namespace that is stored as *text*."""
        born, _, first = text.partition("/")
        return cls(born, first)

    def __str__(self) -> str:
        """Return the text that it is stored as."""
        return f"{self.born}/{self.first}"

    def kinship(self, other: Namespace, *, in_place: bool) -> Kinship:
        """Return how well a session agrees with another one of the same name.

        *in_place*: both were read from one path.
        """
        both_born = self.born and other.born
        if both_born and self.born != other.born:
            return Kinship.UNLIKE
        both_first = self.first and other.first
        if both_first and self.first == other.first:
            return Kinship.BEGINS_ALIKE
        if in_place:
            return Kinship.IN_PLACE
        if both_born and not both_first:
            return Kinship.CREATED_ALIKE
        return Kinship.UNLIKE
