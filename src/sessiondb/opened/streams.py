"""Streams as the façades hand them out: the same stream, waited for in two ways."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable

from sessiondb.effects.handles import MessageHandle
from sessiondb.effects.stream import Done, Stream
from sessiondb.opened.sharing import Holding
from sessiondb.opened.waking import settle


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
        error = self._wait(self.inner.write)
        raised = self.inner.take_error() or error
        if raised is not None:
            raise raised

    def end(self, failure: BaseException | None, holding: Holding) -> None:
        """Write the end of the stream; a second failure never hides the first."""
        error = self._wait(lambda wake: self.inner.close(failure, holding.drop, wake))
        if error is not None and failure is None:
            raise error

    @staticmethod
    def _wait(begin: Callable[[Done], None]) -> BaseException | None:
        ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        begin(ended.put)
        return ended.get()


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
        error = await self._wait(self.inner.write)
        raised = self.inner.take_error() or error
        if raised is not None:
            raise raised

    async def end(self, failure: BaseException | None, holding: Holding) -> None:
        """Write the end of the stream; a second failure never hides the first.

        It is written even if whoever waits for it here is cancelled.
        """
        error = await self._wait(lambda wake: self.inner.close(failure, holding.drop, wake))
        if error is not None and failure is None:
            raise error

    @staticmethod
    def _wait(begin: Callable[[Done], None]) -> asyncio.Future[BaseException | None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[BaseException | None] = loop.create_future()

        begin(lambda error: settle(future, None, error))
        return future
