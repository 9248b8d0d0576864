"""Lists that grow, stored once: which items a new list shares with the last one.

An item is compared by the digest of its serialized form, all of them and not only the
last: a graph may change an item anywhere. The digests that are known here save a read
of the list; the database decides whether they are still true.
"""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import NamedTuple

#: An object as the serializer of a graph returns it: its type, and its bytes.
Serialized = tuple[str, bytes]


class StoredList(NamedTuple):
    """The number of a list, and the digests of its items."""

    number: int
    digests: list[bytes]


class Growth(NamedTuple):
    """The number of a list, the items that are new in it, and the list with them."""

    number: int
    #: (position, type, bytes) of each.
    new: list[tuple[int, str, bytes]]
    grown: StoredList


def digest_of(item: Serialized) -> bytes:
    """Return what equal items have in common."""
    kind, body = item
    return blake2b(body, digest_size=16, person=kind.encode()[:16]).digest()


def growth_of(items: list[Serialized], stored: StoredList | None) -> Growth:
    """Return how a list of *items* is stored, after the last one of its channel.

    It is a length of that one if it only grew, lost items at its end, or stayed; any
    other list is a new one.
    """
    digests = [digest_of(item) for item in items]
    if stored is None or not _is_beginning(digests, stored.digests):
        stored = StoredList(random.getrandbits(62), [])

    shared = len(stored.digests)
    new = [(position, *items[position]) for position in range(shared, len(items))]
    grown = StoredList(stored.number, digests) if new else stored
    return Growth(stored.number, new, grown)


def _is_beginning(one: list[bytes], other: list[bytes]) -> bool:
    """Return whether one of two lists is the beginning of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]
