"""Lists that grow, stored once: which items a new list shares with the last one.

An item is compared by the digest of its serialized form, all of them and not only the
last: a graph may change an item anywhere. The digests that are known here save a read
of the list; the database decides whether they are still true.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

#: An object as the serializer of a graph returns it: its type, and its bytes.
Serialized = tuple[str, bytes]
#: The items of a list; the type that nearly all have is None.
StoredItems = list[tuple[str | None, bytes]]
#: The type of what LangGraph's own serializer writes.
USUAL_TYPE = "msgpack"
#: Bytes of messages whose digests are remembered; above it all are forgotten.
_MOST_BYTES = 16 * 1024 * 1024
_MESSAGES = frozenset([AIMessage, HumanMessage, SystemMessage, ToolMessage])
#: What MessagePack itself has, and nothing that only looks like it.
_OF_MSGPACK = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


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


class DigestedList:
    """A list that is to be stored: the digest of each item, serialized if it is new."""

    def __init__(
        self, items: Sequence[Any], serialize: Callable[[Any], Serialized]
    ) -> None:
        self._items, self._serialize = items, serialize
        self.digests: list[bytes] = []
        self._serialized: dict[int, Serialized] = {}

    def __len__(self) -> int:
        return len(self._items)

    def serialized(self, position: int) -> Serialized:
        """Return an item as it is stored."""
        item = self._serialized.get(position)
        if item is None:
            item = self._serialize(self._items[position])
            self._serialized[position] = item
        return item


class Digests:
    """The digests of messages by their content: one that stays is serialized once.

    Its fields are packed again each time, which takes a fifth of the time
    of the serializer: a program may have changed it in place.
    """

    def __init__(self) -> None:
        self._serde: SerializerProtocol | None = None
        self._by_content: dict[tuple[type, bytes], bytes] = {}
        self._bytes = 0

    def digested(self, items: Sequence[Any], serde: SerializerProtocol) -> DigestedList:
        """Return a list with the digests of its items, which *serde* serializes."""
        if serde is not self._serde:
            # LangGraph gives a checkpointer another one when it compiles a graph.
            self._by_content, self._serde = {}, serde
        digested = DigestedList(items, serde.dumps_typed)
        for position, item in enumerate(items):
            content = _content_of(item)
            digest = None if content is None else self._by_content.get(content)
            if digest is None:
                digest = digest_of(digested.serialized(position))
                if content is not None:
                    self._remember(content, digest)
            digested.digests.append(digest)
        return digested

    def _remember(self, content: tuple[type, bytes], digest: bytes) -> None:
        self._bytes += len(content[1])
        if self._bytes > _MOST_BYTES:
            self._by_content.clear()
            self._bytes = len(content[1])
        self._by_content[content] = digest


def _content_of(item: Any) -> tuple[type, bytes] | None:
    """Return what decides how an item is serialized; None if only that itself does."""
    kind = type(item)
    if kind not in _MESSAGES:
        return None
    fields = (item.__dict__, item.__pydantic_extra__)
    try:
        return kind, ormsgpack.packb(fields, None, _OF_MSGPACK)
    except (ormsgpack.MsgpackEncodeError, RecursionError):
        return None


def growth_of(items: DigestedList, stored: StoredList | None) -> Growth:
    """Return how a list of *items* is stored, after the last one of its channel.

    It is a length of that one if it only grew, lost items at its end, or stayed; any
    other list is a new one.
    """
    digests = items.digests
    if stored is None or not _is_beginning(digests, stored.digests):
        stored = StoredList(random.getrandbits(62), [])

    shared = len(stored.digests)
    new = [(at, *items.serialized(at)) for at in range(shared, len(items))]
    grown = StoredList(stored.number, digests) if new else stored
    return Growth(stored.number, new, grown)


def _is_beginning(one: list[bytes], other: list[bytes]) -> bool:
    """Return whether one of two lists is the beginning of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def loaded_list(serde: SerializerProtocol, items: StoredItems) -> list[Any]:
    """Return the items of a list as they were.

    Those of LangGraph's own serializer are the array of MessagePack that they are when
    they are written one after the other, and are read by one call.
    """
    kinds = {kind for kind, _ in items}
    if type(serde) is JsonPlusSerializer and kinds <= {None}:
        array = b"\xdd" + len(items).to_bytes(4, "big")
        joined: list[Any] = serde.loads_typed(
            (USUAL_TYPE, b"".join([array, *[body for _, body in items]]))
        )
        return joined
    return [serde.loads_typed((kind or USUAL_TYPE, body)) for kind, body in items]
