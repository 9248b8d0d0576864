"""Objects of this process, for as long as anything else refers to them.

A ``weakref.WeakSet`` raises RuntimeError where one thread adds to it while another one
iterates over it. Here an iteration is over a list that was made in one step.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class LivingObjects(Generic[T]):
    """Objects that were added, compared by identity, without those that are gone."""

    def __init__(self) -> None:
        self._by_id: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()

    def add(self, item: T) -> None:
        """Add an object; a second time does nothing."""
        self._by_id[id(item)] = item

    def discard(self, item: T) -> None:
        """Remove an object; nothing happens if it is not here."""
        self._by_id.pop(id(item), None)

    def clear(self) -> None:
        """Remove all objects."""
        self._by_id.clear()

    def __iter__(self) -> Iterator[T]:
        for reference in self._by_id.valuerefs():
            item = reference()
            if item is not None:
                yield item
