"""Streams as the façades hand them out: the same stream, waited for in two ways."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from sessiondb.effects.handles import MessageHandle
from sessiondb.effects.stream import Stream
from sessiondb.effects.unit import Unit
from sessiondb.opened.sharing import Holding


def resolve(future: asyncio.Future[Any], error: BaseException | None, value: Any = None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


class SyncStream:
    """A stream of a synchronous store: begin parts, add to them, `finish`."""

    def __init__(self, inner: Stream) -> None:
        self.inner = inner
        self.text = inner.text
        self.reasoning = inner.reasoning
        self.tool = inner.tool
        self.finish = inner.finish

    @property
    def message(self) -> MessageHandle:
        """The message that is being written."""
        assert self.inner.message is not None
        return self.inner.message

    def flush(self) -> None:
        """Return when all that was added is committed; raises the error of the write."""
        done = threading.Event()
        errors: list[BaseException | None] = []

        def wake(error: BaseException | None) -> None:
            errors.append(error)
            done.set()

        self.inner.write(wake)
        done.wait()
        raised = self.inner.take_error() or errors[0]
        if raised is not None:
            raise raised

    def end(
        self, commit: Callable[[Unit], None], failure: BaseException | None, holding: Holding
    ) -> None:
        """Write the end of the stream; a second failure never hides the first."""
        settled = threading.Event()
        self.inner.write(lambda _: settled.set())
        settled.wait()
        try:
            commit(self.inner.closing(failure, holding.drop))
        except Exception:
            if failure is None:
                raise


class AsyncStream:
    """A stream of an `AsyncStore`: begin parts, add to them, `finish`."""

    def __init__(self, inner: Stream) -> None:
        self.inner = inner
        self.text = inner.text
        self.reasoning = inner.reasoning
        self.tool = inner.tool
        self.finish = inner.finish

    @property
    def message(self) -> MessageHandle:
        """The message that is being written."""
        assert self.inner.message is not None
        return self.inner.message

    async def flush(self) -> None:
        """Return when all that was added is committed; raises the error of the write."""
        error = await self._settled()
        raised = self.inner.take_error() or error
        if raised is not None:
            raise raised

    async def _settled(self) -> BaseException | None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[BaseException | None] = loop.create_future()

        def wake(error: BaseException | None) -> None:
            loop.call_soon_threadsafe(resolve, future, None, error)

        self.inner.write(wake)
        return await future

    async def end(
        self,
        commit: Callable[[Unit], Awaitable[None]],
        failure: BaseException | None,
        holding: Holding,
    ) -> None:
        """Write the end of the stream; a second failure never hides the first."""
        await self._settled()
        try:
            await commit(self.inner.closing(failure, holding.drop))
        except Exception:
            if failure is None:
                raise
