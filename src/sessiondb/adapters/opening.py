"""How an adapter gets its store: a path, a URL, or a store that is open already.

A store that is given stays that of the caller, who closes it; an adapter closes what it
opened itself. Frameworks that have an object for each session get one store for all of
a path: an opening costs some milliseconds, and a store three threads.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeAlias
from weakref import WeakSet, WeakValueDictionary

from sessiondb.aio import AsyncStore
from sessiondb.errors import InvalidInputError, SessionDBError
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


class AsyncStoreUser:
    """An adapter on an `AsyncStore`: a context manager that closes what it opened.

    Its first use opens the database. A store that was given stays open.
    """

    def __init__(self, database: Where, options: dict[str, Any]) -> None:
        self.store = open_async_store(database, **options)
        self._owns_store = not is_given(database)

    async def close(self) -> None:
        """Close the store, if this object opened it."""
        if self._owns_store:
            await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class LentStore:
    """A store and the objects that use it; the last one that is closed closes it.

    Objects that are collected do not count. With the last of them the store is
    collected as well, which closes it.
    """

    def __init__(self, store: AsyncStore, key: tuple[object, ...] | None) -> None:
        """*key* is that of `_lent`; None for a store that the caller closes."""
        self.store = store
        #: Whether anything was read or written: until then the file is not open.
        self.was_used = False
        self._key = key
        self._borrowers: WeakSet[Any] = WeakSet()

    def lend(self, borrower: object) -> None:
        """Count an object among those that use the store."""
        self._borrowers.add(borrower)

    def give_back(self, borrower: object) -> None:
        """Count an object no longer; close the store if none is left."""
        with _lock:
            self._borrowers.discard(borrower)
            if self._borrowers or self._key is None:
                return
            if _lent.get(self._key) is self:
                del _lent[self._key]
        if self.was_used:
            # A database that could not be opened is not closed, either.
            with suppress(SessionDBError):
                Store.sharing(self.store).close()


_lock = threading.Lock()
#: The stores that are lent, by place and options.
_lent: WeakValueDictionary[tuple[object, ...], LentStore] = WeakValueDictionary()


def borrow_store(borrower: object, database: Where, **options: Any) -> LentStore:
    """Return the store of a place, which objects of this process share.

    *database* and *options* are those of `open_async_store`.
    """
    if isinstance(database, Store | AsyncStore):
        single = LentStore(open_async_store(database, **options), None)
        single.lend(borrower)
        return single

    # A path is relative to the current directory, and a child of fork(2) opens its own.
    place = None if database is None else os.fspath(database)
    key = (os.getpid(), Path.cwd(), place, repr(sorted(options.items())))
    with _lock:
        lent_store = _lent.get(key)
        if lent_store is None or lent_store.store.closed or place == ":memory:":
            lent_store = LentStore(AsyncStore(database, **options), key)
            _lent[key] = lent_store
        lent_store.lend(borrower)
    return lent_store


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
