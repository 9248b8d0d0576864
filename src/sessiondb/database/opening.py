"""An `AsyncStore` that is being opened: an awaitable and a context manager."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

from sessiondb.database.core import Core
from sessiondb.database.executor import SerialExecutor
from sessiondb.errors import InvalidInputError, StoreClosedError
from sessiondb.writer.asyncio_loop import running_loop


class Closable(Protocol):
    """The object that is opened: the asynchronous façade."""

    async def close(self) -> None:
        """Close it."""


S = TypeVar("S", bound=Closable)
#: How a store is opened, as a hint.
HOW_TO_OPEN = (
    "`await AsyncStore.open(...)`, or `async with AsyncStore.open(...) as store`"
)


class NotOpenError(StoreClosedError, AttributeError):
    """The store is not open yet: it was never awaited."""


def _close_cores(cores: list[Core]) -> None:
    while cores:
        cores.pop().close()


async def open_soon(core: Core) -> None:
    """Open a database in a thread, if it is not open.

    A caller who is cancelled does not stop that. Raises the errors of `Core.open`.
    """
    if core.is_open:
        return
    executor = SerialExecutor("sessiondb-open")
    opened = executor.call(core.open)
    executor.end()
    await opened


class Opening(Generic[S]):
    """A store that is being opened: ``await`` it, or use it in ``async with``, once."""

    def __init__(self, cls: type[S], make: Callable[[], tuple[S, Core]]) -> None:
        self._cls, self._make = cls, make
        self._used = False
        self._store: S | None = None

    def __await__(self) -> Generator[Any, None, S]:
        return self._open_store().__await__()

    async def _open_store(self) -> S:
        """Open the store; a caller who is cancelled leaves nothing open.

        The step that may take long comes first and registers nothing. The second one is
        short, so a caller who is cancelled then waits until it is undone: right after
        that the file may be replaced and opened again.
        """
        if self._used:
            raise InvalidInputError(
                "this store was opened before", hint="call open() again"
            )

        self._used = True
        loop = running_loop()
        cores: list[Core] = []

        def make() -> S:
            store, core = self._make()
            core.prepare()
            cores.append(core)
            return store

        executor = SerialExecutor("sessiondb-open", last=partial(_close_cores, cores))
        try:
            store = await executor.call(make)
            try:
                await executor.call(cores[0].start)
            except (Exception, loop.Cancelled):
                closed = executor.call(partial(_close_cores, cores))
                await loop.wait_through(closed)
                raise

            cores.clear()
            return store
        finally:
            # The cores in *cores* were not handed out: the executor closes them.
            executor.end()

    async def __aenter__(self) -> S:
        self._store = await self._open_store()
        return self._store

    async def __aexit__(self, *_: object) -> None:
        if self._store is not None:
            await self._store.close()

    if not TYPE_CHECKING:  # a type checker refuses what these only explain

        def __enter__(self) -> NoReturn:
            raise self._not_open()

        def __exit__(self, *_: object) -> None: ...

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(self._cls, name):
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}"
                )

            raise self._not_open()

    @staticmethod
    def _not_open() -> NotOpenError:
        return NotOpenError("AsyncStore.open() was not awaited", hint=HOW_TO_OPEN)
