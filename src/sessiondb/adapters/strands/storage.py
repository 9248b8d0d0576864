"""The bytes that Strands stores by key, such as snapshots, as values of a database.

Keys are spelt as Strands' own storages spell them, so that data can be moved from one
to another. A value is bytes, exactly those that were written.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from strands.storage import InMemoryStorage
from strands.storage.search import KeywordSearchStrategy
from strands.storage.storage import StorageSearchResult
from strands.types.exceptions import StorageError

from sessiondb.adapters.opening import AsyncStoreUser, Where
from sessiondb.adapters.strands import statements as sql
from sessiondb.adapters.strands.keys import SOURCE
from sessiondb.errors import SessionDBError
from sessiondb.model.values import namespace_text

if TYPE_CHECKING:
    from strands.storage.search import SearchStrategy

_NAMESPACE = (SOURCE, "storage")
#: Values that a search reads at a time.
_PAGE = 100

# The class below has a method named list.
Keys: TypeAlias = list[str]
Results: TypeAlias = list[StorageSearchResult]


def _marks_of_scoped_storage() -> dict[str, Any]:
    """Return the attributes that a scoped storage of Strands has, and no other one.

    By these Strands recognises a storage that its user has scoped already, to which it
    adds no prefix of its own.
    """
    root = InMemoryStorage()
    scoped = vars(root.namespace("scope"))
    return {name: scoped[name] for name in scoped.keys() - vars(root).keys()}


class SessionDBStorage(AsyncStoreUser):
    """A storage of Strands on a database of sessiondb.

    *database* is a path, a URL, or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. It is opened by its first use, and may
    be used from any number of event loops and processes. With a *search_strategy*
    each write is indexed by it, and it searches.
    """

    def __init__(
        self,
        database: Where = None,
        *,
        search_strategy: SearchStrategy[Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(database, options)
        self._search_strategy = search_strategy
        self._prefix = ""

    def namespace(self, prefix: str) -> Self:
        """Return this storage with *prefix* and a slash before every key."""
        scoped = copy.copy(self)
        inner = normalized_prefix(prefix).rstrip("/")
        inner_prefix = f"{self._prefix}{inner}/" if inner else self._prefix
        vars(scoped).update(_marks_of_scoped_storage(), _prefix=inner_prefix)
        return scoped

    async def write(self, key: str, data: bytes) -> None:
        """Store *data* under a key, in place of what is there.

        Raises `StorageError`.
        """
        name = normalized_key(key)
        with _storage_errors(f"Failed to write '{key}'"):
            await self.store.set_value(_NAMESPACE, self._prefix + name, bytes(data))
        if self._search_strategy is not None:
            try:
                await self._search_strategy.index(self, name, data)
            except Exception as error:
                raise StorageError(f"Wrote '{key}' but indexing failed") from error

    async def read(self, key: str) -> bytes | None:
        """Return the bytes under a key; None if there are none.

        Raises `StorageError`.
        """
        name = normalized_key(key)
        with _storage_errors(f"Failed to read '{key}'"):
            stored = await self.store.value(_NAMESPACE, self._prefix + name)
        return None if stored is None else stored.value

    async def delete(self, key: str) -> None:
        """Remove what is under a key, if there is something; raises `StorageError`."""
        name = normalized_key(key)
        with _storage_errors(f"Failed to delete '{key}'"):
            await self.store.delete_value(_NAMESPACE, self._prefix + name)

    async def list(self, query: str = "") -> Keys:
        """Return the keys that begin with *query*, in order; raises `StorageError`."""
        prefix = self._prefix + normalized_prefix(query)
        with _storage_errors(f"Failed to list keys with prefix '{query}'"):
            statement, parameters = sql.keys_below(prefix)
            rows = await self.store.select(
                statement, {**parameters, "namespace": namespace_text(_NAMESPACE)}
            )
        return [key[len(self._prefix) :] for (key,) in rows]

    async def search(self, query: str) -> Results:
        """Return what matches *query*, the best first, with the bytes.

        Without a search strategy it is the number of words that decides, as in
        Strands' own storages. Raises `StorageError`.
        """
        if self._search_strategy is not None:
            return await self._search_strategy.search(self, query)
        results: Results = []
        keys = await self.list()
        for start in range(0, len(keys), _PAGE):
            page = await self._page(keys[start : start + _PAGE])
            results += await KeywordSearchStrategy().search(page, query)
        # A result does not depend on the others, nor on the page that it is in.
        results.sort(key=lambda result: result.score, reverse=True)
        return results

    async def _page(self, keys: Keys) -> InMemoryStorage:
        """Return a storage with the values of some keys, those that are still there."""
        with _storage_errors("Failed to search"):
            values = await self.store.values_of(
                [(_NAMESPACE, self._prefix + key) for key in keys]
            )
        page = InMemoryStorage()
        for key, stored in zip(keys, values, strict=True):
            if stored is not None:
                await page.write(key, stored.value)
        return page


@contextmanager
def _storage_errors(failure: str) -> Iterator[None]:
    """Raise what the database raises as the error of Strands."""
    try:
        yield
    except SessionDBError as error:
        raise StorageError(f"{failure}: {error}") from error


def normalized_key(key: str) -> str:
    """Return a key in its one spelling; raises `StorageError`, also for none."""
    name = normalized_prefix(key, "key").rstrip("/")
    if not name:
        raise StorageError("Storage key must not be empty")
    return name


def normalized_prefix(prefix: str, noun: str = "prefix") -> str:
    """Return the beginning of keys in its one spelling; raises `StorageError`."""
    refused = f"Invalid storage {noun} '{prefix}'"
    if "\\" in prefix:
        raise StorageError(f"{refused}: backslashes are not allowed")
    name = re.sub("/+", "/", prefix).lstrip("/")
    if ".." in name.split("/"):
        raise StorageError(f"{refused}: '..' path segments are not allowed")
    return name
