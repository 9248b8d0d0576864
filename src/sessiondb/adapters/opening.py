"""How an adapter gets its store: a path, a URL, or a store that is open already.

A store that is given stays that of the caller, who closes it; an adapter closes what it
opened itself.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from sessiondb.aio import AsyncStore
from sessiondb.errors import InvalidInputError
from sessiondb.store import Store

#: Where an adapter stores: None is the database of the project, or else the global one.
Where: TypeAlias = str | os.PathLike[str] | Store | AsyncStore | None


def open_store(database: Where, **options: Any) -> Store:
    """Return an open store, to be called; *options* are those of `Store.open`."""
    if isinstance(database, Store | AsyncStore):
        refuse_options(options)
        return database if isinstance(database, Store) else Store.sharing(database)
    return Store.open(database, **options)


def open_async_store(database: Where, **options: Any) -> AsyncStore:
    """Return a store to be awaited, opened by its first use; see `open_store`."""
    if isinstance(database, Store | AsyncStore):
        refuse_options(options)
        if isinstance(database, AsyncStore):
            return database
        return AsyncStore.sharing(database)
    return AsyncStore(database, **options)


def is_given(database: Where) -> bool:
    """Whether a store was given, which the caller closes."""
    return isinstance(database, Store | AsyncStore)


def refuse_options(options: dict[str, Any]) -> None:
    """Refuse options beside a store that is open: they would have no effect."""
    if options:
        raise InvalidInputError(
            f"{', '.join(options)}: the store is open already",
            hint="pass a path, or open the store with these options",
        )
