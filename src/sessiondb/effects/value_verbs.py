"""The verbs of a unit for values by namespace and key: see `effects.values`."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

from sessiondb.arguments import checks_arguments
from sessiondb.effects.fold import CallerFold
from sessiondb.effects.queue import Queue
from sessiondb.effects.values import (
    DeleteExpired,
    DeleteValue,
    DeleteValues,
    RefreshValue,
    SetValue,
    UpdateValue,
    encode_value,
)
from sessiondb.model import bounds
from sessiondb.model.values import (
    Namespace,
    ValueHandle,
    names_in,
    namespace_names,
    range_below,
    value_address,
)


@checks_arguments
class ValueVerbs(Queue):
    """Writes of values, for state that belongs to no session.

    A namespace is one name or several. Neither a name nor a key is empty or has NUL,
    and a namespace and a key have at most 4,096 bytes each. A value is a JSON value,
    with strings as keys and without NaN, or bytes.
    """

    def set_value(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        *,
        ttl: float | None = None,
        expect_revision: int | None = None,
    ) -> ValueHandle:
        """Write a value in place of what is there.

        *ttl* is in seconds: after that time it is gone; None keeps it.
        *expect_revision* is that of the value that was read, 0 if there was none:
        `ConflictError` for another one. ``revision`` of the handle is known after the
        commit; a value never gets one that its key had before.
        """
        address = value_address(namespace, key)
        handle = ValueHandle(names_in(address[0]), key)
        stored = encode_value(value)
        lifetime = self._lifetime(ttl)
        expected = bounds.integer(expect_revision, "expect_revision", least=0)
        self.add(SetValue(address, handle, stored, lifetime, expected))
        return handle

    def update_value(
        self,
        namespace: Namespace,
        key: str,
        fold: Callable[[Any], Any],
        *,
        ttl: float | EllipsisType | None = ...,
    ) -> ValueHandle:
        """Write what *fold* makes of the present value, None if there is none.

        It is called inside the transaction, so no other write comes between, and all
        others wait for it: it has to be quick and pure, since it may be called several
        times, perhaps in another thread; a write in it is a `BusyError`. An error in it
        discards the unit and is raised as it is. Without *ttl* the value keeps its own,
        which begins again; an equal result then writes nothing.
        """
        address = value_address(namespace, key)
        handle = ValueHandle(names_in(address[0]), key)
        lifetime = ttl if isinstance(ttl, EllipsisType) else self._lifetime(ttl)
        self.add(UpdateValue(address, handle, CallerFold(fold), lifetime))
        return handle

    def delete_value(
        self, namespace: Namespace, key: str, *, expect_revision: int | None = None
    ) -> None:
        """Remove a value; nothing happens if there is none.

        With *expect_revision* only that one: `ConflictError` for another, or none.
        """
        expected = bounds.integer(expect_revision, "expect_revision", least=1)
        self.add(DeleteValue(value_address(namespace, key), expected))

    def delete_values(self, prefix: Namespace) -> DeleteValues:
        """Remove the values of a namespace and of all below it, in one transaction.

        ``()`` are all values of the database. ``.deleted`` counts them after the
        commit.
        """
        names = namespace_names(prefix, "prefix", least=0)
        range_below(names)  # refuses what is too long
        effect = DeleteValues(names)
        self.add(effect)
        self.is_alone = True
        return effect

    def delete_expired(self, prefix: Namespace = ()) -> DeleteExpired:
        """Remove what has expired in a namespace and below it, in one transaction.

        No read returns such values, and they are removed within about a second: this
        verb serves a program that counts them, or needs the space at once. ``.deleted``
        is their number after the commit. Raises `InvalidInputError` for a bad prefix.
        """
        names = namespace_names(prefix, "prefix", least=0)
        range_below(names)  # refuses what is too long
        effect = DeleteExpired(names)
        self.add(effect)
        self.is_alone = True
        return effect

    def refresh_value(self, namespace: Namespace, key: str) -> None:
        """Let a value with a ttl live that long from now; it keeps its revision.

        Nothing happens if there is none, or if it does not expire.
        """
        self.add(RefreshValue(value_address(namespace, key)))

    def _lifetime(self, ttl: float | None) -> int | None:
        """Return *ttl* in ms, and record it for the removal of what expires."""
        lifetime = bounds.ttl_ms(ttl)
        if lifetime is not None:
            self.shortest_ttl = min(lifetime, self.shortest_ttl or lifetime)
        return lifetime
