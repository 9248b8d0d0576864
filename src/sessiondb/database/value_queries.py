"""The reads of values by namespace and key, see `queries`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessiondb.arguments import checks_arguments
from sessiondb.loading import load
from sessiondb.model import Page, bounds
from sessiondb.model.values import (
    KeyValue,
    Namespace,
    addresses_of,
    namespace_names,
    value_address,
)
from sessiondb.repository import Read


@checks_arguments
class ValueQueries:
    """Values that programs keep beside sessions."""

    def value(self, namespace: Namespace, key: str) -> Read[KeyValue | None]:
        """Return a value; None if there is none, or if it expired."""
        load("sessiondb.repository.values")
        from sessiondb.repository.values import value_at

        return (yield from value_at(value_address(namespace, key)))

    def values_of(
        self, addresses: Iterable[tuple[Namespace, str]]
    ) -> Read[list[KeyValue | None]]:
        """Return the values of pairs of a namespace and a key, in one statement.

        They come in the order of *addresses*, None where there is none.
        """
        load("sessiondb.repository.values")
        from sessiondb.repository.values import values_at

        return (yield from values_at(addresses_of(addresses)))

    def values(
        self,
        prefix: Namespace = (),
        *,
        where: Mapping[str, Any] | None = None,
        order: str = "key",
        reverse: bool = False,
        limit: int = 50,
        offset: int = 0,
        cursor: str | None = None,
    ) -> Read[Page[KeyValue]]:
        """Return one page of the values of a namespace and of those below it.

        ``()`` are those of all namespaces. *where* compares JSON objects:
        ``{"kind": "note", "author": {"name": "Ada"}, "score": {"$gte": 3}}`` with
        the operators ``$eq $ne $gt $gte $lt $lte``. Types are exact, numbers are
        compared by value, a missing key is null, and only numbers and texts have an
        order. *order* is ``key`` (namespace as text, then key) or ``updated``, the
        last one first; *reverse* turns it round. *offset* passes over so many of the
        list, which costs more the more there are; *cursor* does not. No match is an
        empty page; raises `InvalidInputError` for another condition, a bad cursor,
        limit or offset.
        """
        load("sessiondb.repository.values")
        from sessiondb.engine.conditions import parse_conditions
        from sessiondb.repository.values import list_values

        return (
            yield from list_values(
                namespace_names(prefix, "prefix", least=0), parse_conditions(where),
                order=order,
                reverse=reverse, limit=limit, offset=offset, cursor=cursor,
            )
        )  # fmt: skip

    def namespaces(
        self,
        prefix: Namespace = (),
        *,
        suffix: Namespace = (),
        depth: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Read[Page[tuple[str, ...]]]:
        """Return one page of the namespaces that have values, in order of their text.

        Those that begin with *prefix* and end with *suffix*; in both ``"*"`` is any
        name. With *depth* only that many names of each, and each once. None is an
        empty page; raises `InvalidInputError`.
        """
        load("sessiondb.repository.values")
        from sessiondb.repository.values import list_namespaces

        bounds.integer(depth, "depth", least=1)
        return (
            yield from list_namespaces(
                namespace_names(prefix, "prefix", least=0),
                namespace_names(suffix, "suffix", least=0),
                depth=depth, limit=limit, cursor=cursor,
            )
        )  # fmt: skip
