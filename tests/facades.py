"""One suite for two façades: a sync store is awaited like an async one, and never waits twice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from backends import Backend, Place

from sessiondb import AsyncStore, Change, SessionHandle, Store
from sessiondb.effects import Unit


class Awaited:
    """Any object whose methods may or may not have to be awaited, always awaited."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return call


@asynccontextmanager
async def entered(block: Any) -> AsyncGenerator[Any]:
    """Enter a block of either kind."""
    if hasattr(block, "__aenter__"):
        async with block as value:
            yield value
    else:
        with block as value:
            yield value


class AwaitedStream(Awaited):
    """A stream: adding is in memory in both façades, flushing is waited for."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.text, self.reasoning, self.tool = inner.text, inner.reasoning, inner.tool
        self.finish, self.message = inner.finish, inner.message


class AwaitedStore(Awaited):
    """A store of either façade."""

    def unit(self) -> Unit:
        """Return an empty unit, to be committed by hand."""
        made: Unit = self.inner._core.unit()
        return made

    def effects(self, **options: Any) -> Any:
        return entered(self.inner.effects(**options))

    def lease(self, *args: Any, **options: Any) -> Any:
        return entered(self.inner.lease(*args, **options))

    @asynccontextmanager
    async def stream(self, *args: Any, **options: Any) -> AsyncGenerator[AwaitedStream]:
        async with entered(self.inner.stream(*args, **options)) as out:
            yield AwaitedStream(out)

    def on_commit(
        self, callback: Callable[[list[Change]], object]
    ) -> Callable[[], None]:
        end: Callable[[], None] = self.inner.on_commit(callback)
        return end

    async def changes(self, *args: Any, **options: Any) -> AsyncGenerator[Change]:
        found = self.inner.changes(*args, **{"poll": 0.01, **options})
        if hasattr(found, "__anext__"):
            async for change in found:
                yield change
        else:
            while True:
                yield await asyncio.to_thread(next, found)


class Contract:
    """A database and the façade that a test uses it through."""

    def __init__(self, kind: str, backend: Backend, place: Place) -> None:
        self.kind, self.backend, self.place = kind, backend, place
        self._opened: list[AwaitedStore] = []
        self.store: AwaitedStore

    async def open(self, **options: Any) -> AwaitedStore:
        """Open the database (again); it is closed with the test."""
        options = {"durability": "normal", "source": "tests", **options}
        if self.kind == "sync":
            store = AwaitedStore(Store.open(self.place, **options))
        else:
            store = AwaitedStore(await AsyncStore.open(self.place, **options))
        self._opened.append(store)
        return store

    async def close(self) -> None:
        """Close every store."""
        for store in self._opened:
            await store.close()

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Return the rows that another program sees."""
        return self.backend.rows(self.place, sql, *params)

    def execute(self, sql: str) -> None:
        """Write as another program would."""
        self.backend.run(self.place, sql)

    def locked(self) -> AbstractContextManager[None]:
        """Keep every writer waiting, as another process that writes would."""
        return self.backend.locked(self.place)

    def check(self) -> None:
        """Assert that the database, its search index and its counters are intact."""
        self.backend.assert_intact(self.place)


async def eventually(test: Callable[[], Any], seconds: float = 5.0) -> Any:
    """Return the first true value of *test*; fails after *seconds*."""
    ends = asyncio.get_running_loop().time() + seconds
    while not (value := test()):
        assert asyncio.get_running_loop().time() < ends, "it did not happen"
        await asyncio.sleep(0.005)
    return value


@pytest_asyncio.fixture(params=["sync", "async"])
async def contract(
    request: pytest.FixtureRequest, backend: Backend
) -> AsyncGenerator[Contract]:
    """A fresh database with an open store of one of the two façades."""
    made = Contract(request.param, backend, backend.fresh())
    made.store = await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def session(contract: Contract, tmp_path: Path) -> SessionHandle:
    """An empty session in it."""
    handle: SessionHandle = await contract.store.create_session(directory=str(tmp_path))
    return handle
